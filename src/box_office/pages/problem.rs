//! The page form of a problem document (RFC 9457), for browsers.

use askama::Template;

use super::{PageHtml, asset_url, page};

/// What went wrong, and a way on: `back` is a path of this shop, `None` shows no link.
pub fn problem_page(status: u16, title: &str, detail: &str, back: Option<&str>) -> PageHtml {
    page(View { status, title, detail, back, css: asset_url("shop.css") }.render())
}

#[derive(Template)]
#[template(path = "box_office/problem.html")]
struct View<'a> {
    status: u16,
    title: &'a str,
    detail: &'a str,
    back: Option<&'a str>,
    css: String,
}
