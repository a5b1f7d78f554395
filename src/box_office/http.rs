//! The box office over HTTP: JSON for programs, pages for people, problem documents (RFC 9457) for both.

mod accept;
mod assets;
mod body;
mod events;
mod forms;
mod holds;
mod orders;
mod page;
mod payments;
mod problem;

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware,
    response::{IntoResponse as _, Redirect, Response},
    routing::{delete, get, post},
};

use self::problem::Problem;
use super::office::Office;

/// Tells a gateway in front: the buyer is done, their slot is free.
const COMMAND: HeaderName = HeaderName::from_static("stanchion-command");
/// Tells a gateway in front: keep this buyer's session at least this many seconds.
const PIN: HeaderName = HeaderName::from_static("stanchion-pin");
/// Tells a gateway in front: nothing is left.
const SOLD_OUT: HeaderName = HeaderName::from_static("stanchion-sold-out");
/// From the gateway: whose visit a request belongs to.
const VISITOR: HeaderName = HeaderName::from_static("stanchion-visitor");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What buyers and the provider reach.
pub fn router(office: Arc<Office>) -> Router {
    let routes = Router::new()
        .route("/", get(home))
        .route("/events/{event}", get(events::show))
        .route("/events/{event}/holds", post(holds::create))
        .route("/holds/{hold}", delete(holds::cancel).get(forms::show).post(forms::give_back))
        .route("/orders", post(orders::create))
        .route("/orders/{order}", get(orders::show))
        .route("/webhooks/payments", post(payments::receive))
        .route("/box-office/assets/{file}", get(assets::show))
        .with_state(office);
    finish(routes)
}

/// What the operator reaches: never public.
pub fn admin_router(office: Arc<Office>) -> Router {
    finish(Router::new().route("/events/{event}/audit", get(events::audit)).with_state(office))
}

/// What the operator's monitoring reaches; never public. Apart, as others who share the listener may have such a path.
pub fn metrics_router(office: Arc<Office>) -> Router {
    let routes = Router::new().route("/metrics", get(events::metrics)).with_state(office);
    routes.layer(middleware::from_fn(problem::render))
}

/// Every failure, the router's own too, leaves as a problem document or its page.
fn finish(routes: Router) -> Router {
    routes
        .fallback(async || Problem::not_found("There is nothing at this address."))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "This address does not do that.")
        })
        .layer(middleware::from_fn(problem::render))
}

async fn home(State(office): State<Arc<Office>>) -> Response {
    let to = format!("/events/{}", office.config.event.id);
    ([(header::CACHE_CONTROL, "no-store")], Redirect::to(&to)).into_response()
}

/// State of the moment, which no cache may keep.
fn json(status: StatusCode, body: impl Into<axum::body::Body>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, JSON),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::VARY, HeaderValue::from_static("Accept")),
    ];
    (status, headers, body.into()).into_response()
}
