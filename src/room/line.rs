//! What is the same for every visitor, so that a cache may answer for all of them.

use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde::Serialize;

use super::Room;
use crate::queue::{Mode, Score};

#[derive(Debug, Serialize)]
struct Line<'a> {
    room: &'a str,
    /// What the room does.
    state: Mode,
    /// Whoever's score is at most this may have been called and asks for their status.
    watermark: Score,
    /// How many wait.
    #[serde(rename = "line")]
    waiting: u64,
    /// How many were let in per minute of late.
    admitted_per_minute: f64,
    /// When it opens, milliseconds since the epoch.
    opens_at_ms: Option<u64>,
    /// The room's time, milliseconds since the epoch.
    now_ms: u64,
    message: Option<&'a str>,
}

/// The line as everybody may know it.
pub(super) async fn line(Room(room): Room) -> Response {
    let (view, now_ms) = (room.view(), room.now_ms());
    let line = Line {
        room: room.name().as_str(),
        state: view.mode(now_ms),
        watermark: view.snapshot.watermark,
        waiting: view.snapshot.line,
        admitted_per_minute: (view.flow.admitted * 600.0).round() / 10.0,
        opens_at_ms: view.snapshot.opens_at_ms,
        now_ms,
        message: room.config().message.as_deref(),
    };
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "public, max-age=1, stale-while-revalidate=5")];
    (headers, serde_json::to_string(&line).unwrap_or_default()).into_response()
}
