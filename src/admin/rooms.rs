//! Rooms as the operator sees them.

use axum::{
    Json,
    body::Bytes,
    extract::{
        Path, State,
        rejection::{BytesRejection, PathRejection},
    },
};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};

use super::{Admin, Shared};
use crate::{
    admission::{LiveRoom, steering::Outlook},
    gateway::problem::Problem,
    queue::Mode,
};

/// A room, from this node's last snapshot.
#[derive(Debug, Serialize)]
pub(super) struct RoomView {
    room: String,
    mode: Mode,
    capacity: u32,
    rate: f64,
    burst: u32,
    line: u64,
    called: u64,
    inside: u64,
    joined_total: u64,
    called_total: u64,
    admitted_total: u64,
    no_shows_total: u64,
    /// Why capacity and rate are what they are; null before the node heard.
    pace: Option<Outlook>,
}

impl RoomView {
    fn of(room: &LiveRoom) -> Self {
        let view = room.view();
        let snapshot = &view.snapshot;
        Self {
            room: room.name().to_string(),
            mode: view.mode(room.now_ms()),
            capacity: snapshot.capacity,
            rate: snapshot.rate,
            burst: room.config().policy.burst,
            line: snapshot.line,
            called: snapshot.called,
            inside: snapshot.inside,
            joined_total: snapshot.joined_total,
            called_total: snapshot.called_total,
            admitted_total: snapshot.admitted_total,
            no_shows_total: snapshot.no_shows_total,
            pace: room.outlook().map(|outlook| (*outlook).clone()),
        }
    }
}

/// The path's room; a name that is no text is no room's.
type Named = Result<Path<String>, PathRejection>;

impl Admin {
    fn room(&self, name: &Named) -> Result<&LiveRoom, Problem> {
        let named = |Path(name): &Path<String>| self.rooms.iter().find(|room| room.name().as_str() == name);
        name.as_ref()
            .ok()
            .and_then(named)
            .map(AsRef::as_ref)
            .ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such room", "See GET /api/rooms."))
    }
}

/// All rooms.
pub(super) async fn list(State(admin): Shared) -> Json<Vec<RoomView>> {
    Json(admin.rooms.iter().map(|room| RoomView::of(room)).collect())
}

/// One room.
pub(super) async fn show(State(admin): Shared, room: Named) -> Result<Json<RoomView>, Problem> {
    admin.room(&room).map(|room| Json(RoomView::of(room)))
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewMode {
    mode: Settable,
}

/// What an operator may set; `open` follows the schedule.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Settable {
    Open,
    Paused,
    SoldOut,
    Closed,
}

impl From<Settable> for Mode {
    fn from(settable: Settable) -> Self {
        match settable {
            Settable::Open => Self::Open,
            Settable::Paused => Self::Paused,
            Settable::SoldOut => Self::SoldOut,
            Settable::Closed => Self::Closed,
        }
    }
}

/// Sets what a room does. Answers with the room as the node last saw it, which may be from before the change.
pub(super) async fn set_mode(
    State(admin): Shared,
    room: Named,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<RoomView>, Problem> {
    admin.token.check(&headers)?;
    let room = admin.room(&room)?;
    let body = body.map_err(|error| Problem::new(error.status(), error.body_text(), "Send less, and all of it."))?;
    let wanted: NewMode = serde_json::from_slice(&body).map_err(|error| {
        let cure = "Send {\"mode\":\"open\"}, or paused, sold_out, closed.";
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string(), cure)
    })?;
    room.set_mode(wanted.mode.into()).await.map_err(|error| {
        tracing::warn!(room = %room.name(), %error, "the mode could not be set");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the store is not answering", "Try again in a moment.")
    })?;
    tracing::info!(room = %room.name(), mode = ?wanted.mode, "mode set by the operator");
    Ok(Json(RoomView { mode: wanted.mode.into(), ..RoomView::of(room) }))
}
