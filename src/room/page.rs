//! The waiting page under its own address.

use axum::{body::Body, extract::State, response::Response};
use http::{StatusCode, request};

use super::{
    Endpoints, Room, Shared,
    visitor::{self, Visitor},
};
use crate::{
    admission::{LiveRoom, Standing, Turn},
    gateway::{
        gate::{
            intent::{Format, Intent, Reach},
            path,
        },
        identity, queued,
    },
};

/// Shows the waiting page; whoever comes here wants to wait, so they join. Whoever is let in is sent on.
pub(super) async fn show(State(shared): Shared, Room(room): Room, visitor: Visitor, head: request::Parts) -> Response {
    let known = identity::identify(&room, &visitor.headers);
    let turn = match known.session {
        Some(session) => Turn::admitted(session, known.queue),
        None => match path::Path::read(head.uri.path()).map(|path| Intent::of(&head, &path).reach) {
            Ok(Reach::Join { may_enter }) => room.come(known.queue, may_enter).await,
            Ok(Reach::LookUp) => room.look_up(known.queue).await,
            Ok(Reach::Peek) | Err(_) => room.peek(known.queue),
        },
    };
    if matches!(turn.standing, Standing::Admitted(_)) {
        return visitor::see_other(visitor.to(&shared.prefix), &room, &turn, visitor.peer);
    }
    answer(&shared, &room, &turn, &visitor)
}

/// The page that shows `turn`. Here it is what was asked for, so the status is 200.
pub(super) fn answer(shared: &Endpoints, room: &LiveRoom, turn: &Turn, visitor: &Visitor) -> Response {
    let asked = queued::Asked {
        format: Format::Html,
        to: visitor.to(&shared.prefix),
        was_submitted: false,
        peer: visitor.peer,
        prefix: &shared.prefix,
    };
    let mut answer = queued::response(room, turn, &asked);
    *answer.status_mut() = StatusCode::OK;
    answer.map(Body::new)
}
