//! The event, and its audit.

use std::sync::Arc;

use axum::{
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};

use super::{SOLD_OUT, accept::wants_page, json, page, problem::Problem};
use crate::box_office::{
    metrics,
    office::{Office, OfficeError},
    pages,
};

/// `GET /events/{event}`.
pub async fn show(
    State(office): State<Arc<Office>>,
    Path(event): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    known(&office, &event)?;
    let shown = office.shown().await?;
    let mut response = if wants_page(&headers) {
        page::html(StatusCode::OK, shown.page.get_or_init(|| pages::event_page(&shown.view)))
    } else {
        json(StatusCode::OK, shown.json.clone())
    };
    if shown.sold_out {
        response.headers_mut().insert(SOLD_OUT, HeaderValue::from_static("1"));
    }
    Ok(response)
}

/// `GET /events/{event}/audit`, on the private listener.
pub async fn audit(State(office): State<Arc<Office>>, Path(event): Path<String>) -> Result<Response, Problem> {
    known(&office, &event)?;
    let audit = office.audit().await?;
    let body = serde_json::to_vec(&audit).map_err(|error| OfficeError::Defect(error.to_string()))?;
    Ok(json(StatusCode::OK, body))
}

/// `GET /metrics`, on the private listener.
pub async fn metrics(State(office): State<Arc<Office>>) -> Result<Response, Problem> {
    let text = metrics::text(&office.audit().await?);
    let headers = [(header::CONTENT_TYPE, metrics::CONTENT_TYPE), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, text).into_response())
}

/// 404 for any event but ours.
pub fn known(office: &Office, event: &str) -> Result<(), Problem> {
    if event == office.config.event.id { Ok(()) } else { Err(Problem::not_found("There is no such event.")) }
}
