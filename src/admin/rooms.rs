//! Rooms as the operator sees them.

use std::sync::Arc;

use axum::{
    Json,
    body::Bytes,
    extract::{
        Path, State,
        rejection::{BytesRejection, PathRejection},
    },
};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Admin, Shared};
use crate::{
    admission::{LiveRoom, rfc3339, steering::Outlook},
    gateway::problem::Problem,
    queue::{Method, Mode, QueueError, lottery::Published},
};

/// A room, from this node's last snapshot.
#[derive(Debug, Serialize)]
pub(super) struct RoomView {
    room: String,
    /// A reset begins a new one.
    epoch: u64,
    mode: Mode,
    method: Method,
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
    /// What the gateways of the room do not agree about, each with its cure.
    warnings: Vec<String>,
    /// What is published of the draw; `None` without a lottery.
    draw: Option<Published>,
    /// When it opens, RFC 3339; null when no time is set.
    opens_at: Option<String>,
}

impl RoomView {
    pub(super) fn of(room: &LiveRoom) -> Self {
        let view = room.view();
        let snapshot = &view.snapshot;
        Self {
            room: room.name().to_string(),
            epoch: snapshot.epoch,
            mode: view.mode(room.now_ms()),
            method: room.config().policy.schedule.method,
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
            warnings: room.warnings().to_vec(),
            draw: room.published_draw(),
            opens_at: snapshot.opens_at_ms.and_then(rfc3339),
        }
    }
}

/// The path's room; a name that is no text is no room's.
pub(super) type Named = Result<Path<String>, PathRejection>;

impl Admin {
    pub(super) fn room(&self, name: &Named) -> Result<&LiveRoom, Problem> {
        self.find(name).map(AsRef::as_ref)
    }

    /// The room, for an answer that outlives the request.
    pub(super) fn shared_room(&self, name: &Named) -> Result<Arc<LiveRoom>, Problem> {
        self.find(name).cloned()
    }

    fn find(&self, name: &Named) -> Result<&Arc<LiveRoom>, Problem> {
        let named = |Path(name): &Path<String>| self.rooms.iter().find(|room| room.name().as_str() == name);
        name.as_ref()
            .ok()
            .and_then(named)
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

/// What was sent, as JSON; `cure` says what it should be.
pub(super) fn body<T: DeserializeOwned>(sent: Result<Bytes, BytesRejection>, cure: &'static str) -> Result<T, Problem> {
    let body = sent.map_err(|error| Problem::new(error.status(), error.body_text(), "Send less, and all of it."))?;
    serde_json::from_slice(&body)
        .map_err(|error| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string(), cure))
}

/// The answer when a change could not be made.
pub(super) fn store_is_away(room: &LiveRoom, error: &QueueError) -> Problem {
    tracing::warn!(room = %room.name(), %error, "what the operator wanted could not be done");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the store is not answering", "Try again in a moment.")
}

/// The room, and what the operator should know of the mode they set.
#[derive(Debug, Serialize)]
pub(super) struct ModeSet {
    #[serde(flatten)]
    room: RoomView,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

impl ModeSet {
    /// `wanted` was set in `room`, whose mode is the one that holds since.
    fn of(room: RoomView, wanted: Mode) -> Self {
        let note = match (room.mode, wanted) {
            (Mode::Scheduled | Mode::Prequeue, Mode::Open) => Some(
                "the schedule decides: the room opens at opens_at. To open now, set an earlier opens_at and restart",
            ),
            (Mode::Drawing, Mode::Open) => {
                Some("those who came before the opening draw first: the room opens by itself then")
            }
            (Mode::Scheduled | Mode::Prequeue, Mode::Paused) => {
                Some("the room is paused from its opening on, at opens_at")
            }
            (Mode::Closed, Mode::Open | Mode::Paused) => Some("closes_at has passed: set a later one and restart"),
            _ => None,
        };
        Self { room, note }
    }
}

/// Sets what a room does. Answers with the mode that holds now, and the rest as the node last saw it.
pub(super) async fn set_mode(
    State(admin): Shared,
    room: Named,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<ModeSet>, Problem> {
    admin.token.check(&headers)?;
    let room = admin.room(&room)?;
    let wanted: NewMode = self::body(body, "Send {\"mode\":\"open\"}, or paused, sold_out, closed.")?;
    let mode = Mode::from(wanted.mode);
    let now = room.set_mode(mode).await.map_err(|error| store_is_away(room, &error))?;
    tracing::info!(room = %room.name(), mode = mode.as_str(), "mode set by the operator");
    Ok(Json(ModeSet::of(RoomView { mode: now, ..RoomView::of(room) }, mode)))
}
