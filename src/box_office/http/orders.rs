//! Orders: placed, and followed.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use serde::Deserialize;

use super::{
    COMMAND, PIN, SOLD_OUT, VISITOR,
    accept::wants_page,
    body, forms,
    holds::{gone, unknown},
    json, page,
    problem::Problem,
};
use crate::box_office::{
    ids::{HoldId, OrderId},
    ledger::StoredAnswer,
    office::{Office, OfficeError},
    orders::Placement,
    pages,
    views::{OrderStatus, OrderView},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    hold: String,
}

/// `POST /orders`.
pub async fn create(State(office): State<Arc<Office>>, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    if forms::is_form(&headers) {
        return forms::order(office, &headers, body).await;
    }
    let key = key(&headers)?;
    let wish: Wish = body::json(&headers, body).await?;
    place(office, key, &wish.hold, visit(&headers)).await
}

/// Orders what is held.
pub async fn place(office: Arc<Office>, key: String, hold: &str, visit: Option<String>) -> Result<Response, Problem> {
    let hold: HoldId = hold.parse().map_err(|_| unknown())?;
    let pin = office.paying_ttl().as_secs();
    // On a task of its own: a client that leaves does not stop its order half way.
    let placed = tokio::spawn(async move { office.place_order(key, hold, visit).await }).await;
    let placed = placed.map_err(|error| OfficeError::Defect(error.to_string()))??;
    match placed {
        Placement::Answer { answer, replayed } => accepted(answer, replayed, pin),
        Placement::StillRunning => {
            let detail = "The first request with this Idempotency-Key still runs. Send the same again in a second.";
            Err(Problem::conflict("still-running", detail).retry_after(1))
        }
        Placement::OtherRequest => {
            let detail = "This Idempotency-Key came with another request before. Use a new key for a new order.";
            Err(Problem::unprocessable("key-reused", detail))
        }
        Placement::UnknownHold => Err(unknown()),
        Placement::HoldGone => {
            Err(gone("This hold is over: it lapsed, was given back or became an order. Choose again."))
        }
        Placement::HoldUsed => {
            Err(Problem::conflict("hold-used", "This hold already became an order, under another Idempotency-Key."))
        }
        Placement::Taken => {
            Err(Problem::conflict("taken", "Somebody else has these tickets. Nothing was charged; choose others."))
        }
    }
}

fn accepted(answer: StoredAnswer, replayed: bool, pin_seconds: u64) -> Result<Response, Problem> {
    let status = u16::try_from(answer.status).ok().and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.ok_or_else(|| OfficeError::Defect("a stored answer without a status".to_owned()))?;
    let order: OrderView =
        serde_json::from_str(&answer.answer).map_err(|error| OfficeError::Defect(error.to_string()))?;
    let mut response = json(status, answer.answer);
    let headers = response.headers_mut();
    if let Ok(location) = HeaderValue::from_str(&format!("/orders/{}", order.order)) {
        headers.insert(header::LOCATION, location);
    }
    if replayed {
        headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
    } else {
        headers.insert(PIN, pin_seconds.into());
    }
    Ok(response)
}

/// The visit that the request belongs to, if a gateway in front names it.
pub fn visit(headers: &HeaderMap) -> Option<String> {
    let name = headers.get(VISITOR)?.to_str().ok()?;
    (1..=64).contains(&name.len()).then(|| name.to_owned())
}

/// 1 to 255 visible characters.
pub fn key(headers: &HeaderMap) -> Result<String, Problem> {
    let bad = |detail| Problem::new(StatusCode::BAD_REQUEST, "idempotency-key", detail);
    let mut keys = headers.get_all("idempotency-key").iter();
    let key = keys.next().ok_or_else(|| bad("Send an Idempotency-Key: a new random one for each order."))?;
    let fits = (1..=255).contains(&key.len()) && key.as_bytes().iter().all(u8::is_ascii_graphic);
    match key.to_str() {
        Ok(text) if fits && keys.next().is_none() => Ok(text.to_owned()),
        _ => Err(bad("Send one Idempotency-Key of 1 to 255 visible ASCII characters, without spaces.")),
    }
}

/// `GET /orders/{order}`.
pub async fn show(
    State(office): State<Arc<Office>>,
    Path(order): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let unknown = || Problem::not_found("There is no such order.");
    let id: OrderId = order.parse().map_err(|_| unknown())?;
    let order = office.ledger.order(&id).await?.ok_or_else(unknown)?;
    let view = order.view();
    let mut response = if wants_page(&headers) {
        page::html(StatusCode::OK, &pages::order_page(&view, &office.config.event.name))
    } else {
        json(StatusCode::OK, serde_json::to_vec(&view).map_err(|error| OfficeError::Defect(error.to_string()))?)
    };
    // Only a checkout that succeeded is over: whoever was refused will want to choose again. And it ends the visit it
    // belongs to, not a later one in which the buyer looks at the ticket.
    let is_done = view.status == OrderStatus::Confirmed && order.visit.is_some() && order.visit == visit(&headers);
    if is_done {
        response.headers_mut().insert(COMMAND, HeaderValue::from_static("release"));
        // Said with the release, before the slot goes to somebody who would find nothing left.
        if office.shown().await?.sold_out {
            response.headers_mut().insert(SOLD_OUT, HeaderValue::from_static("1"));
        }
    }
    Ok(response)
}
