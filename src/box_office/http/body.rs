//! Request bodies: small, whole within a deadline, and the JSON that was asked for.

use std::time::Duration;

use axum::{
    body::{Body, Bytes, to_bytes},
    http::{HeaderMap, StatusCode, header},
};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::problem::Problem;

/// Nothing we are sent is bigger.
const LIMIT: usize = 64 * 1024;
/// A client that takes longer to send so little is not worth waiting for.
const DEADLINE: Duration = Duration::from_secs(10);

/// The exact bytes.
pub async fn bytes(body: Body) -> Result<Bytes, Problem> {
    let read = tokio::time::timeout(DEADLINE, to_bytes(body, LIMIT)).await.map_err(|_| {
        Problem::new(StatusCode::REQUEST_TIMEOUT, "body-too-slow", "The body did not arrive within 10 seconds.")
    })?;
    read.map_err(|error| {
        let source = std::error::Error::source(&error);
        if source.is_some_and(<dyn std::error::Error>::is::<http_body_util::LengthLimitError>) {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "Send at most 64 kB.")
        } else {
            Problem::new(StatusCode::BAD_REQUEST, "body-broken", "The body could not be read to its end.")
        }
    })
}

/// The body as JSON. Browsers cannot send this type across sites without asking first, so no other site can order.
pub async fn json<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let detail = "Send the body with Content-Type: application/json.";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", detail));
    }
    serde_json::from_slice(&bytes(body).await?).map_err(|error| match error.classify() {
        Category::Data => Problem::unprocessable("body-unfit", format!("The JSON does not fit: {error}.")),
        _ => Problem::new(StatusCode::BAD_REQUEST, "json-malformed", format!("This is not JSON: {error}.")),
    })
}
