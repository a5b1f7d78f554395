//! The private listener: health, what every room does, and the few things an operator changes by hand.
//!
//! Reading needs no token, because the listener is never public. Changing anything does, and so does the roster.

mod auth;
mod draw;
mod health;
mod revoke;
mod rooms;

use std::sync::Arc;

use axum::{
    Router,
    routing::{get, post},
};
use http::StatusCode;

pub use self::auth::AdminToken;
use crate::{admission::Rooms, gateway::problem::Problem, shutdown::Shutdown};

#[derive(Debug)]
struct Admin {
    rooms: Rooms,
    token: AdminToken,
    shutdown: Shutdown,
}

type Shared = axum::extract::State<Arc<Admin>>;

/// The admin API over `rooms`; `token` is what changes are authorised with. With `shutdown` the gateway is no longer ready.
pub fn router(rooms: Rooms, token: AdminToken, shutdown: Shutdown) -> Router {
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/api/rooms", get(rooms::list))
        .route("/api/rooms/{room}", get(rooms::show))
        .route("/api/rooms/{room}/mode", post(rooms::set_mode))
        .route("/api/rooms/{room}/reset", post(draw::reset))
        .route("/api/rooms/{room}/beacon", post(draw::beacon))
        .route("/api/rooms/{room}/roster", get(draw::roster))
        .route("/api/rooms/{room}/revoke", post(revoke::revoke))
        .fallback(async || {
            Problem::new(
                StatusCode::NOT_FOUND,
                "there is no such address",
                "Known are /healthz, /readyz, /api/rooms, /api/rooms/{room}, and below that mode, reset, beacon, roster, revoke.",
            )
        })
        .method_not_allowed_fallback(async || {
            let detail = "this address does not take that method";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail, "Use GET to read and POST to change.")
        })
        .with_state(Arc::new(Admin { rooms, token, shutdown }))
}
