//! The poll.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::{HeaderMap, StatusCode};
use serde::Serialize;

use super::{
    Room, Shared,
    visitor::{self, Visitor},
};
use crate::{
    admission::{LiveRoom, Standing, StatusDocument, Turn},
    gateway::{Body, Peer, body, identity, queued},
};

/// The status document, with the token that takes the place of the one an app without cookies sent.
#[derive(Debug, Serialize)]
struct Polled {
    #[serde(flatten)]
    status: StatusDocument,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_token: Option<String>,
}

/// Where the visitor stands. Whoever is called is let in by this answer.
pub(super) async fn poll(State(shared): Shared, Room(room): Room, visitor: Visitor) -> Response {
    let known = identity::identify(&room, &visitor.headers);
    let turn = match known.session {
        Some(session) => Turn::admitted(session, known.queue),
        None => room.look_up(known.queue).await,
    };
    let status = visitor.document(&room, &turn, &shared.prefix);
    let is_in = matches!(turn.standing, Standing::Admitted(_));
    let sends_tokens = visitor.headers.contains_key(identity::QUEUE_TOKEN);
    let new = turn.queue.as_ref().filter(|_| turn.is_new && sends_tokens && !is_in);
    let polled = Polled { status, queue_token: new.map(|claims| room.keyring().mint(claims)) };
    visitor::json(StatusCode::OK, queued::json(&polled).into(), &room, &turn, visitor.peer)
}

/// The same for a visitor who merely waits; `None` for anybody else.
pub(super) fn at_once(room: &Arc<LiveRoom>, headers: &HeaderMap, peer: Peer) -> Option<http::Response<Body>> {
    let known = identity::identify(room, headers);
    let turn = room.look_up_at_once(known.queue.as_ref().filter(|_| known.session.is_none())?)?;
    let body = body::full(queued::json(&room.status(&turn)));
    Some(visitor::json(StatusCode::OK, body, room, &turn, peer))
}
