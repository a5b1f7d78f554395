//! What is the same for every visitor, so that a cache may answer for all of them.
//!
//! `sketch` lets a page compute its own position from the score in its token: the first pair whose score is not below it
//! says how many wait before that score. That is at most 8 % too high (one step of the sketch), never too low, and below
//! rank 12 exact; `status` knows better. Whoever is behind the last pair joined a moment ago. The document stays below
//! 8 kB (without the operator's message).

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
    /// Pairs of how many wait before a score, and that score, ascending. Empty while the line is being rebuilt.
    sketch: Vec<(u64, Score)>,
}

/// Most pairs of `sketch`. With scores of 16 digits they take 7 kB.
const MOST_PAIRS: usize = 256;

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
        sketch: view.sketch.outline(MOST_PAIRS),
    };
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "public, max-age=1, stale-while-revalidate=5")];
    (headers, serde_json::to_string(&line).unwrap_or_default()).into_response()
}
