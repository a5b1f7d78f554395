//! The pages in a real browser: what a visitor sees and can do. Screenshots land in `target/screenshots`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc, missing_docs)]

mod axe;
#[expect(dead_code, reason = "the integration tests' own, and they use more of it")]
#[path = "../integration/support/browser.rs"]
mod browser;
#[path = "../integration/support/eventually.rs"]
mod eventually;
mod gallery;
#[expect(dead_code, reason = "likewise")]
#[path = "../integration/support/house.rs"]
mod gateway;
mod house;
#[expect(dead_code, reason = "likewise")]
#[path = "../integration/support/http.rs"]
mod http;
mod lottery;
mod opening;
#[expect(dead_code, reason = "likewise")]
#[path = "../integration/support/program.rs"]
mod program;
mod sale;
mod shop_page;
mod stage;
mod support;
mod waiting_page;
