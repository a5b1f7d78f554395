//! The provider's HTTP API.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Path, Query, Request, State, rejection::BytesRejection},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use subtle::ConstantTimeEq as _;

use super::{
    Provider,
    behaviour::Behaviour,
    faults,
    problem::Problem,
    records::{ChargeRequest, RefundRequest, Summary},
};

/// A call, its body included, is over by then.
const CALL_DEADLINE: Duration = Duration::from_secs(10);
const MAX_BODY_BYTES: usize = 16 * 1024;
/// Longest idempotency key and order id, in bytes.
const MAX_NAME_BYTES: usize = 255;
/// Largest amount, in minor units: keeps every sum far from overflow.
const MAX_AMOUNT_MINOR: u64 = 1_000_000_000_000;

type Answer = Result<Response, Problem>;
type Body = Result<Bytes, BytesRejection>;

pub(super) fn router(provider: Arc<Provider>) -> Router {
    Router::new()
        .route("/charges", post(make_charge).get(find_charges))
        .route("/charges/{charge}", get(show_charge))
        .route("/refunds", post(make_refund))
        .route_layer(middleware::from_fn(within_deadline))
        // Outside of the deadline, because a stalled call is to outlast every caller's patience.
        .route_layer(middleware::from_fn_with_state(Arc::clone(&provider), faults::misbehave))
        .merge(operator_routes())
        .route_layer(middleware::from_fn_with_state(Arc::clone(&provider), require_key))
        .route("/summary", get(summary))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "there is no such path"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not take this method")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(provider)
}

/// These are never ill-mannered.
fn operator_routes() -> Router<Arc<Provider>> {
    Router::new()
        .route("/records", get(records))
        .route("/behaviour", get(show_behaviour).put(behave))
        .route_layer(middleware::from_fn(within_deadline))
}

async fn within_deadline(request: Request, next: Next) -> Answer {
    let late = |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the request took too long to arrive or to answer");
    tokio::time::timeout(CALL_DEADLINE, next.run(request)).await.map_err(late)
}

async fn require_key(State(provider): State<Arc<Provider>>, request: Request, next: Next) -> Answer {
    let presented = request.headers().get(header::AUTHORIZATION).map(http::HeaderValue::as_bytes);
    let presented = presented.and_then(|value| value.strip_prefix(b"Bearer ")).unwrap_or_default();
    if bool::from(presented.ct_eq(provider.api_key.expose().as_bytes())) {
        Ok(next.run(request).await)
    } else {
        Err(Problem::new(StatusCode::UNAUTHORIZED, "send the API key as Authorization: Bearer …"))
    }
}

async fn make_charge(State(provider): State<Arc<Provider>>, headers: HeaderMap, body: Body) -> Answer {
    let key = idempotency_key(&headers)?;
    let request: ChargeRequest = read(body)?;
    check_amount(request.amount_minor)?;
    if request.order.is_empty() || request.order.len() > MAX_NAME_BYTES {
        return Err(unprocessable("order must be 1 to 255 bytes long"));
    }
    if request.currency.len() != 3 || !request.currency.bytes().all(|letter| letter.is_ascii_uppercase()) {
        return Err(unprocessable("currency must be an ISO 4217 code such as EUR"));
    }
    let plan = provider.behaviour().plan(&request.order);
    let now_ms = provider.clock.unix_millis();
    let charge = provider.clerk.ask(move |book| book.charge(key, request, plan, now_ms)).await??;
    provider.charge_made.notify_one();
    Ok((StatusCode::ACCEPTED, Json(charge)).into_response())
}

async fn make_refund(State(provider): State<Arc<Provider>>, headers: HeaderMap, body: Body) -> Answer {
    let key = idempotency_key(&headers)?;
    let request: RefundRequest = read(body)?;
    check_amount(request.amount_minor)?;
    let now_ms = provider.clock.unix_millis();
    let refund = provider.clerk.ask(move |book| book.refund(key, request, now_ms)).await??;
    provider.event_made.notify_one();
    Ok((StatusCode::ACCEPTED, Json(refund)).into_response())
}

async fn show_charge(State(provider): State<Arc<Provider>>, Path(charge): Path<String>) -> Answer {
    let charge = provider.clerk.ask(move |book| book.find(&charge)).await?;
    let charge = charge.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such charge"))?;
    Ok(Json(charge).into_response())
}

#[derive(Deserialize)]
struct ByOrder {
    order: Option<String>,
}

async fn find_charges(State(provider): State<Arc<Provider>>, Query(by): Query<ByOrder>) -> Answer {
    let order = by.order.ok_or_else(|| Problem::new(StatusCode::BAD_REQUEST, "say which: /charges?order=…"))?;
    let charges = provider.clerk.ask(move |book| book.find_by_order(&order)).await?;
    Ok(Json(json!({ "charges": charges })).into_response())
}

async fn summary(State(provider): State<Arc<Provider>>) -> Result<Json<Summary>, Problem> {
    Ok(Json(provider.clerk.ask(|book| book.summary()).await?))
}

async fn records(State(provider): State<Arc<Provider>>) -> Answer {
    let records = provider.clerk.ask(|book| book.records()).await?;
    let answer = json!({
        "summary": records.summary,
        "orders": records.orders,
        "webhooks_unacknowledged": records.unacknowledged,
        "faults": provider.tally(|tally| *tally),
    });
    Ok(Json(answer).into_response())
}

async fn show_behaviour(State(provider): State<Arc<Provider>>) -> Json<Behaviour> {
    Json(provider.behaviour())
}

async fn behave(State(provider): State<Arc<Provider>>, body: Body) -> Answer {
    let behaviour: Behaviour = read(body)?;
    behaviour.check().map_err(|error| unprocessable(error.to_string()))?;
    provider.behave(behaviour);
    Ok(Json(behaviour).into_response())
}

fn idempotency_key(headers: &HeaderMap) -> Result<String, Problem> {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).unwrap_or_default();
    if key.is_empty() || key.len() > MAX_NAME_BYTES {
        let detail = "send an Idempotency-Key of 1 to 255 ASCII characters, the same one on every retry";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    Ok(key.to_owned())
}

fn read<T: DeserializeOwned>(body: Body) -> Result<T, Problem> {
    let body = body.map_err(|rejection| Problem::new(rejection.status(), rejection.body_text()))?;
    serde_json::from_slice(&body).map_err(|error| {
        let status = if error.is_data() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::BAD_REQUEST };
        Problem::new(status, format!("the body is not the JSON wanted here: {error}"))
    })
}

fn check_amount(amount_minor: u64) -> Result<(), Problem> {
    if (1..=MAX_AMOUNT_MINOR).contains(&amount_minor) {
        Ok(())
    } else {
        Err(unprocessable(format!("amount_minor must be 1 to {MAX_AMOUNT_MINOR}")))
    }
}

fn unprocessable(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}
