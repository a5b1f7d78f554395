//! The poll.

use axum::{extract::State, response::Response};
use http::StatusCode;

use super::{
    Room, Shared,
    visitor::{self, Visitor},
};
use crate::{
    admission::Turn,
    gateway::{identity, queued},
};

/// Where the visitor stands. Whoever is called is let in by this answer.
pub(super) async fn poll(State(shared): Shared, Room(room): Room, visitor: Visitor) -> Response {
    let known = identity::identify(&room, &visitor.headers);
    let turn = match known.session {
        Some(session) => Turn::admitted(session, known.queue),
        None => room.look_up(known.queue).await,
    };
    let document = visitor.document(&room, &turn, &shared.prefix);
    visitor::json(StatusCode::OK, queued::json(&document), &room, &turn, visitor.peer)
}
