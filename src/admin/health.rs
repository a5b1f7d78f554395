//! Whether the process lives, and whether it should get traffic.

use axum::extract::State;
use http::StatusCode;

use super::Shared;

/// The process is alive. Says nothing of the store, because a restart would not cure that.
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// Every room's snapshot is recent, and the gateway is not about to stop.
pub(super) async fn ready(State(admin): Shared) -> (StatusCode, String) {
    if admin.shutdown.is_announced() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n".to_owned());
    }
    let stale: Vec<&str> =
        admin.rooms.iter().filter(|room| !room.is_fresh()).map(|room| room.name().as_str()).collect();
    if stale.is_empty() {
        (StatusCode::OK, "ready\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("the store has not been heard of; rooms: {}\n", stale.join(", ")))
    }
}
