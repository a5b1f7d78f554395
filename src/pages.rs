//! Every page the waiting room shows a visitor, and their assets.
//!
//! A page is a value with everything it shows; [`WaitingPage::render`] and [`ErrorPage::render`] cannot fail towards
//! the visitor. The caller adds the headers a queued response needs; [`Page::csp`] is the
//! `Content-Security-Policy` that goes with the markup.

pub mod assets;
mod error;
mod text;
mod waiting;

pub use error::ErrorPage;
pub use waiting::WaitingPage;

/// A page ready to send as `text/html; charset=utf-8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The document.
    pub html: String,
    /// Value of `Content-Security-Policy`.
    pub csp: String,
}

/// What a visitor reads if a template failed, which no input is known to cause. Reloads itself: the place is in a cookie.
const BARE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"20\">\
<meta name=\"robots\" content=\"noindex\"><title>Waiting room</title><h1>Please wait</h1>\
<p>This browser keeps your place. The page tries again by itself.</p></html>";

fn or_bare(rendered: Result<String, askama::Error>) -> String {
    rendered.unwrap_or_else(|error| {
        tracing::error!(%error, "a page template failed; the bare page was sent");
        BARE.to_owned()
    })
}
