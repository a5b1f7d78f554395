//! The poll.

use axum::{
    extract::{Path, State},
    response::Response,
};
use http::StatusCode;

use super::{
    Shared,
    visitor::{self, Visitor},
};
use crate::{
    admission::{Standing, Turn},
    gateway::{identity, problem::Problem, queued},
};

/// Where the visitor stands. Whoever is called is let in by this answer.
pub(super) async fn poll(
    State(shared): Shared,
    Path(room): Path<String>,
    visitor: Visitor,
) -> Result<Response, Problem> {
    let room = shared.room(&room)?;
    let known = identity::identify(room, &visitor.headers);
    let turn = match known.session {
        Some(session) => Turn { standing: Standing::Admitted(Box::new(session)), queue: known.queue, is_new: false },
        None => room.look_up(known.queue).await,
    };
    let document = visitor.document(room, &turn, &shared.prefix);
    Ok(visitor::json(StatusCode::OK, queued::json(&document), room, &turn, visitor.peer))
}
