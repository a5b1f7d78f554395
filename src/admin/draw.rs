//! The draw by the operator's hand: a new epoch, the beacon's value, the roster.

use axum::{
    Json,
    body::{Body, Bytes},
    extract::{State, rejection::BytesRejection},
    response::{IntoResponse as _, Response},
};
use bytes::BytesMut;
use futures_util::stream;
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;

use super::{
    Shared,
    rooms::{Named, RoomView, body, store_is_away},
};
use crate::{
    admission::LiveRoom,
    gateway::problem::Problem,
    queue::{
        Score,
        lottery::{RosterDigest, roster_line},
    },
};

/// Most characters of a beacon's value.
const LONGEST_VALUE: usize = 256;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Beacon {
    value: String,
}

/// Begins a new epoch: nobody waits, nobody is inside, no token of before counts.
pub(super) async fn reset(State(admin): Shared, room: Named, headers: HeaderMap) -> Result<Json<RoomView>, Problem> {
    admin.token.check(&headers)?;
    let room = admin.room(&room)?;
    may_begin_anew(room)?;
    let epoch = room.reset().await.map_err(|error| store_is_away(room, &error))?;
    tracing::warn!(room = %room.name(), epoch, "reset by the operator: everybody joins anew");
    Ok(Json(RoomView::of(room)))
}

/// A lottery that begins after its own opening would draw among nobody at once.
fn may_begin_anew(room: &LiveRoom) -> Result<(), Problem> {
    let (view, now_ms) = (room.view(), room.now_ms());
    let has_opened = view.snapshot.opens_at_ms.is_some_and(|opens_at_ms| opens_at_ms <= now_ms);
    if view.snapshot.draw.is_some() && has_opened {
        let detail = "opens_at is in the past, so that the next draw would begin at once, with nobody in it";
        let cure =
            "Set prequeue_at and opens_at of the next sale in the configuration, start the gateways again, then reset.";
        return Err(conflict(detail, cure));
    }
    Ok(())
}

/// Gives the draw what the beacon said.
pub(super) async fn beacon(
    State(admin): Shared,
    room: Named,
    headers: HeaderMap,
    sent: Result<Bytes, BytesRejection>,
) -> Result<Json<RoomView>, Problem> {
    admin.token.check(&headers)?;
    let room = admin.room(&room)?;
    let Beacon { value } = body(sent, "Send {\"value\":\"…\"}, as the beacon says it.")?;
    let is_printable = value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && value.trim() == value;
    if value.is_empty() || value.len() > LONGEST_VALUE || !is_printable {
        let detail = "the value is not 1 to 256 printable ASCII characters without spaces around them";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail, "Send it as the beacon says it."));
    }
    may_take_a_beacon(room)?;
    let public = room.set_beacon(&value).await.map_err(|error| store_is_away(room, &error))?;
    match public {
        Some(public) if public == value => {
            tracing::info!(room = %room.name(), value, "the beacon's value was given by the operator");
            Ok(Json(RoomView::of(room)))
        }
        Some(_) => Err(conflict("another value is public already", "It decides the draw, and stays.")),
        None => Err(conflict("the roster is not fixed yet", "Try again in a moment.")),
    }
}

fn may_take_a_beacon(room: &LiveRoom) -> Result<(), Problem> {
    let view = room.view();
    let draw = view.snapshot.draw.as_ref().ok_or_else(no_lottery)?;
    if draw.beacon().is_none() {
        let cure = "A beacon's round must be named in the configuration before the commitment is published.";
        return Err(conflict("no beacon was named for this draw", cure));
    }
    if draw.digest.is_none() {
        let cure = "Give the value when the pre-queue is over and draw.json says the roster's digest.";
        return Err(conflict("the pre-queue is not closed yet", cure));
    }
    Ok(())
}

/// Everybody who takes part, in order of arrival, a line each: visitor and arrival.
pub(super) async fn roster(State(admin): Shared, room: Named, headers: HeaderMap) -> Result<Response, Problem> {
    admin.token.check(&headers)?;
    let room = admin.shared_room(&room)?;
    let draw = room.view().snapshot.draw.clone().ok_or_else(no_lottery)?;
    let Some(digest) = draw.digest else {
        let cure = "Ask again when draw.json says the roster's digest.";
        return Err(conflict("the roster is not fixed yet", cure));
    };
    // Written down before the digest was published, so it is there also when the store lost it.
    if let Some(file) = room.kept_roster().await {
        let chunks = stream::try_unfold(file, |mut file| async move {
            let mut chunk = BytesMut::with_capacity(1 << 16);
            let read = file.read_buf(&mut chunk).await?;
            Ok::<_, std::io::Error>((read > 0).then(|| (chunk.freeze(), file)))
        });
        return Ok(text(Body::from_stream(chunks)));
    }
    // An empty answer would look like the roster of a sale to which nobody came.
    let first = room.roster(Score(0)).await.map_err(|error| store_is_away(&room, &error))?;
    if first.is_empty() && digest != RosterDigest::new().finish() {
        let cure =
            "Ask the other gateways: those that saw it whole have a copy in --data. Else use what was exported before.";
        return Err(conflict("the store lost the roster, and this gateway has no copy", cure));
    }
    // Page by page, as fast as it is read. An error cuts the answer off, so that nobody takes a part for all of it.
    let lines = stream::try_unfold(Score(0), move |after| {
        let room = room.clone();
        async move {
            let page = room.roster(after).await?;
            let Some(&(_, last)) = page.last() else { return Ok(None) };
            let lines: String = page.into_iter().map(|(visitor, arrival)| roster_line(visitor, arrival)).collect();
            Ok::<_, crate::queue::QueueError>(Some((Bytes::from(lines), last)))
        }
    });
    Ok(text(Body::from_stream(lines)))
}

fn text(body: Body) -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response()
}

fn conflict(detail: &str, cure: &'static str) -> Problem {
    Problem::new(StatusCode::CONFLICT, detail, cure)
}

fn no_lottery() -> Problem {
    conflict("this room has no lottery", "Set method = \"lottery\" and prequeue_at for it.")
}
