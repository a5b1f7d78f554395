//! The page for a request the gateway could not serve.

use std::sync::LazyLock;

use askama::Template;
use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{Page, or_bare};

/// What went wrong, and what the visitor can do about it. Stands alone: it brings its style with it, because whatever
/// broke may break the next request too.
#[derive(Debug, Clone, Copy)]
pub struct ErrorPage<'a> {
    /// The response's status.
    pub status: u16,
    /// The headline.
    pub title: &'a str,
    /// What happened, in plain words.
    pub explanation: &'a str,
    /// What to do now.
    pub what_to_do: &'a str,
    /// What support can find this request by; empty shows none.
    pub request_id: &'a str,
}

const STYLE: &str = concat!(include_str!("../../static/base.css"), include_str!("../../static/error.css"));

/// Allows exactly [`STYLE`] and nothing else.
static CSP: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, STYLE.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; img-src data:; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'"
    )
});

#[derive(Template)]
#[template(path = "room/error.html")]
struct View<'a> {
    page: &'a ErrorPage<'a>,
    style: &'static str,
}

impl ErrorPage<'_> {
    /// The document. Never fails towards the visitor.
    pub fn render(&self) -> Page {
        Page { html: or_bare(View { page: self, style: STYLE }.render()), csp: CSP.clone() }
    }
}
