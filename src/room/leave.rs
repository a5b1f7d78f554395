//! Giving up a place or a session.

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{StatusCode, header::SET_COOKIE};

use super::{Room, Shared, page, visitor::Visitor};
use crate::{
    admission::{Standing, Turn},
    gateway::{cookies, identity, queued, respond},
};

/// Frees the place or the slot and removes the cookies. Without a store the place lapses by itself.
pub(super) async fn leave(State(shared): Shared, Room(room): Room, visitor: Visitor) -> Response {
    let known = identity::identify(&room, &visitor.headers);
    let claims = known.session.as_ref().or(known.queue.as_ref());
    if let Some(claims) = claims {
        room.leave(claims.sub, known.session.as_ref()).await;
    }
    let mut answer = if respond::prefers_html(&visitor.headers) {
        let turn = Turn { standing: Standing::NotQueued, queue: None, is_new: false };
        page::answer(&shared, &room, &turn, &visitor)
    } else {
        StatusCode::NO_CONTENT.into_response()
    };
    queued::never_cached(&mut answer);
    for cookie in cookies::clear(&room, visitor.peer) {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    answer
}
