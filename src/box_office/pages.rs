//! The pages of the box office: an event with its seat map, an order with its tickets, and what to do when neither can
//! be shown. The pages act through the JSON API, or by plain forms where there is no JavaScript; whatever they can do, a client can do.

mod event;
mod hold;
mod money;
mod order;
mod problem;

use std::sync::LazyLock;

pub use event::event_page;
pub use hold::hold_page;
pub use order::order_page;
pub use problem::problem_page;

pub use crate::embed::Asset;
use crate::embed::{Bundle, PAGE_CSP};

/// A page ready to send as `text/html; charset=utf-8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageHtml {
    /// The document.
    pub html: String,
    /// Value of `Content-Security-Policy`.
    pub csp: &'static str,
}

/// Where the pages look for their assets.
pub const ASSETS_PATH: &str = "/box-office/assets/";

static BUNDLE: LazyLock<Bundle> = LazyLock::new(|| {
    Bundle::new(&[
        // One file for one request: the shared base, then what only these pages need.
        (
            "shop.css",
            concat!(
                include_str!("../../static/base.css"),
                include_str!("../../static/shop.css"),
                include_str!("../../static/ticket.css")
            ),
        ),
        ("shop.js", concat!(include_str!("../../static/hall.js"), include_str!("../../static/shop.js"))),
        ("order.js", include_str!("../../static/order.js")),
    ])
});

/// The asset with this hashed file name (what follows [`ASSETS_PATH`]); `None` answers 404.
pub fn asset(file_name: &str) -> Option<&'static Asset> {
    BUNDLE.find(file_name)
}

fn asset_url(logical_name: &str) -> String {
    format!("{ASSETS_PATH}{}", BUNDLE.file_name(logical_name))
}

/// What a buyer reads if a template failed, which no input is known to cause.
const BARE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"robots\" content=\"noindex\">\
<title>Box office</title><h1>This page could not be shown</h1><p>Please load it again. Nothing was lost.</p></html>";

fn page(rendered: Result<String, askama::Error>) -> PageHtml {
    let html = rendered.unwrap_or_else(|error| {
        tracing::error!(%error, "a page template failed; the bare page was sent");
        BARE.to_owned()
    });
    PageHtml { html, csp: PAGE_CSP }
}

/// `B12` → (`B`, `12`): the row's letters and the seat's number.
fn row_and_number(seat: &str) -> (&str, &str) {
    seat.split_at(seat.find(|char: char| char.is_ascii_digit()).unwrap_or(seat.len()))
}
