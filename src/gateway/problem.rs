//! Problem documents (RFC 9457) of the endpoints that the gateway itself serves.

use axum::response::IntoResponse;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};

/// An error as the client reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Status of the answer.
    pub status: StatusCode,
    /// What is wrong this time.
    pub detail: String,
    /// What the client can do about it.
    pub what_to_do: &'static str,
}

impl Problem {
    /// A problem.
    pub fn new(status: StatusCode, detail: impl Into<String>, what_to_do: &'static str) -> Self {
        Self { status, detail: detail.into(), what_to_do }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<axum::body::Body> {
        let document = serde_json::json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "what_to_do": self.what_to_do,
        });
        let mut answer = Response::new(axum::body::Body::from(document.to_string()));
        *answer.status_mut() = self.status;
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        answer
    }
}
