//! The pages in a real browser: what a visitor sees and can do. Screenshots land in `target/screenshots`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc, missing_docs)]

mod gallery;
mod shop_page;
mod stage;
mod support;
mod waiting_page;
