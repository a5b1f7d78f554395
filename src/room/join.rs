//! Taking a place.

use axum::{extract::State, response::Response};
use http::StatusCode;
use serde::Serialize;

use super::{
    Room, Shared,
    visitor::{self, Visitor},
};
use crate::{
    admission::{LiveRoom, Standing, StatusDocument, Turn},
    gateway::{identity, queued::target, respond},
};

/// The status document, with tokens for apps that keep no cookies.
#[derive(Debug, Serialize)]
struct Joined {
    #[serde(flatten)]
    status: StatusDocument,
    queue_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_token: Option<String>,
}

/// Takes a place. Whoever has one keeps it; whoever lost theirs to absence joins anew, at the end.
pub(super) async fn join(State(shared): Shared, Room(room): Room, visitor: Visitor) -> Response {
    let known = identity::identify(&room, &visitor.headers);
    let turn = match known.session {
        Some(session) => Turn::admitted(session, known.queue),
        None => room.join_again(known.queue).await,
    };
    let is_in = matches!(turn.standing, Standing::Admitted(_));
    if respond::prefers_html(&visitor.headers) {
        let to = visitor.to(&shared.prefix);
        let page = if is_in { to.to_owned() } else { page_address(&shared.prefix, &room, to) };
        return visitor::see_other(&page, &room, &turn, visitor.peer);
    }
    let joined = Joined {
        status: visitor.document(&room, &turn, &shared.prefix),
        queue_token: turn.queue.as_ref().filter(|_| !is_in).map(|claims| room.keyring().mint(claims)),
        session_token: match &turn.standing {
            Standing::Admitted(session) => Some(room.keyring().mint(session)),
            _ => None,
        },
    };
    let waits = matches!(turn.standing, Standing::Waiting | Standing::Promised | Standing::Called { .. });
    let status = if waits { StatusCode::ACCEPTED } else { StatusCode::OK };
    let text = serde_json::to_string(&joined).unwrap_or_default();
    visitor::json(status, text.into(), &room, &turn, visitor.peer)
}

/// The waiting page for someone who wants to go to `to`.
fn page_address(prefix: &str, room: &LiveRoom, to: &str) -> String {
    format!("{prefix}/{}?to={}", room.name(), target::query_value(to))
}
