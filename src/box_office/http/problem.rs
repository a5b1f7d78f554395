//! Problem documents (RFC 9457): one error type for every answer that is not the one hoped for.

use axum::{
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use super::{accept::wants_page, page};
use crate::box_office::{ledger::LedgerError, office::OfficeError, pages};

/// What went wrong, and what to do about it.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    kind: &'static str,
    detail: String,
    members: Map<String, Value>,
    retry_after_seconds: Option<u32>,
}

impl Problem {
    /// A problem; `kind` ends its type URI, `detail` is for the reader.
    pub fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        Self { status, kind, detail: detail.into(), members: Map::new(), retry_after_seconds: None }
    }

    /// 404.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", detail)
    }

    /// 409.
    pub fn conflict(kind: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, kind, detail)
    }

    /// 422.
    pub fn unprocessable(kind: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, kind, detail)
    }

    /// With one more member for programs.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// With `Retry-After`.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    fn title(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or("Problem")
    }

    fn document(&self) -> String {
        let mut document = json!({
            "type": format!("urn:stanchion:problem:{}", self.kind),
            "title": self.title(),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        if let Some(object) = document.as_object_mut() {
            object.extend(self.members.clone());
        }
        document.to_string()
    }
}

impl From<OfficeError> for Problem {
    fn from(error: OfficeError) -> Self {
        let transient = match &error {
            OfficeError::Store(error) => error.is_transient(),
            OfficeError::Ledger(error) => error.is_transient(),
            OfficeError::Lost => true,
            OfficeError::Plan { .. } | OfficeError::Defect(_) => false,
        };
        if transient {
            tracing::warn!(%error, "a request could not be served now");
            let detail = "The box office is catching its breath. Nothing is lost: try the same again in a moment.";
            Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail).retry_after(1)
        } else {
            tracing::error!(%error, "a request failed");
            let detail = "Something broke on our side. Trying the same again does no harm.";
            Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
        }
    }
}

impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        OfficeError::from(error).into()
    }
}

impl IntoResponse for Problem {
    /// Leaves the writing to [`render`], which knows whether a program or a person reads it.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes every problem, as a document or as a page; also those of the router, which have only a status.
pub async fn render(request: Request, next: Next) -> Response {
    let page = wants_page(request.headers());
    let (mut parts, body) = next.run(request).await.into_parts();
    if !(parts.status.is_client_error() || parts.status.is_server_error()) {
        return Response::from_parts(parts, body);
    }
    let problem = parts
        .extensions
        .remove::<Problem>()
        .unwrap_or_else(|| Problem::new(parts.status, "about-the-request", "The request could not be understood."));
    let mut response = if page {
        page::html(
            problem.status,
            &pages::problem_page(problem.status.as_u16(), problem.title(), &problem.detail, Some("/")),
        )
    } else {
        let mut response = super::json(problem.status, problem.document());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    };
    // What the router knows better: Allow, for one.
    if let Some(allow) = parts.headers.remove(header::ALLOW) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    if let Some(seconds) = problem.retry_after_seconds {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}
