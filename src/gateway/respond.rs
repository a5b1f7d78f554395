//! Turns every [`GatewayError`] into an answer: a page for people, a problem document (RFC 9457) for programs.

use http::{
    HeaderMap, HeaderValue, Request, Response, Version,
    header::{ACCEPT, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER},
};

use super::{Body, GatewayError, body, forward_headers::X_REQUEST_ID};
use crate::pages::ErrorPage;

/// What the answer to a request depends on, noted before the request is given away.
#[derive(Debug)]
pub(super) struct Asked {
    /// Made here for every request and never taken from it, so that it means one request in our logs.
    pub(super) request_id: HeaderValue,
    html: bool,
    http1: bool,
}

impl Asked {
    pub(super) fn new<B>(request: &Request<B>) -> Self {
        Self {
            request_id: request_id(),
            html: prefers_html(request.headers()),
            http1: request.version() <= Version::HTTP_11,
        }
    }

    fn id(&self) -> &str {
        self.request_id.to_str().unwrap_or_default()
    }
}

/// Whether a person will look at the answer: a browser says so itself, anyone else by asking for HTML.
pub fn prefers_html(headers: &HeaderMap) -> bool {
    match headers.get("sec-fetch-mode") {
        Some(mode) => mode == "navigate",
        None => headers.get_all(ACCEPT).iter().any(|accept| {
            let accept = accept.as_bytes().to_ascii_lowercase();
            accept.windows(9).any(|part| part == b"text/html")
        }),
    }
}

/// The answer to a request that failed.
pub(super) fn refuse(error: GatewayError, asked: &Asked) -> Response<Body> {
    tracing::debug!(error = error.label(), status = error.status().as_u16(), request_id = asked.id(), "refused");
    let (text, content_type, csp) = if asked.html { page(error, asked) } else { problem(error, asked) };
    let mut answer = Response::new(body::full(text));
    *answer.status_mut() = error.status();
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(&X_REQUEST_ID, asked.request_id.clone());
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    if let Some(csp) = csp.and_then(|csp| HeaderValue::from_str(&csp).ok()) {
        headers.insert("content-security-policy", csp);
    }
    if let Some(seconds) = error.retry_after() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if asked.http1 && error.leaves_request_unread() {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// The answer to what never became a request, byte by byte: nothing is known of who asks but that it speaks HTTP/1.
pub(super) fn raw(error: GatewayError) -> Vec<u8> {
    let asked = Asked { request_id: request_id(), html: false, http1: true };
    tracing::debug!(error = error.label(), status = error.status().as_u16(), request_id = asked.id(), "refused unread");
    let (text, content_type, _) = problem(error, &asked);
    let (status, id) = (error.status(), asked.id());
    format!(
        "HTTP/1.1 {} {}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         x-request-id: {id}\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n{text}",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default(),
        text.len(),
    )
    .into_bytes()
}

fn request_id() -> HeaderValue {
    let id = format!("{:032x}", rand::random::<u128>());
    HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("unknown"))
}

type Rendered = (String, &'static str, Option<String>);

fn problem(error: GatewayError, asked: &Asked) -> Rendered {
    let document = serde_json::json!({
        "type": "about:blank",
        "title": error.title(),
        "status": error.status().as_u16(),
        "detail": error.to_string(),
        "error": error.label(),
        "what_to_do": error.cure(),
        "request_id": asked.id(),
    });
    (document.to_string(), "application/problem+json", None)
}

fn page(error: GatewayError, asked: &Asked) -> Rendered {
    let explanation = format!("Sorry: {error}.");
    let page = ErrorPage {
        status: error.status().as_u16(),
        title: error.title(),
        explanation: &explanation,
        what_to_do: error.cure(),
        request_id: asked.id(),
    };
    let page = page.render();
    (page.html, "text/html; charset=utf-8", Some(page.csp))
}
