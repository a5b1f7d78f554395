//! What callers are told when a call is refused: RFC 9457 problem documents.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

use super::{book::Refusal, clerk::JournalLost};

/// A refused call.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }
}

impl From<JournalLost> for Problem {
    fn from(_: JournalLost) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the provider cannot write its journal; try again later")
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::KeyReused => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "this Idempotency-Key was used for another request: use a new key for a new request",
            ),
            Refusal::NoSuchCharge => Self::new(StatusCode::NOT_FOUND, "there is no such charge"),
            Refusal::NotCaptured => Self::new(
                StatusCode::CONFLICT,
                "the charge is not captured, so there is nothing to refund: read its status first",
            ),
            Refusal::TooMuch { refundable_minor } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                format!("only {refundable_minor} (minor units) of this charge can still be refunded"),
            ),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::json!({
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/problem+json"));
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, header::HeaderValue::from_static("5"));
            }
            _ => {}
        }
        response
    }
}
