//! Sending a visitor away.

use axum::{
    Json,
    body::Bytes,
    extract::{State, rejection::BytesRejection},
};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};

use super::{
    Shared,
    rooms::{Named, body, store_is_away},
};
use crate::{gateway::problem::Problem, queue::VisitorId};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whom {
    visitor: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Revoked {
    visitor: String,
    /// Whether the store knew a place or session of theirs. When not, tokens of theirs are refused all the same.
    was_known: bool,
}

/// Ends a visitor's place and session, on every node within a second.
pub(super) async fn revoke(
    State(admin): Shared,
    room: Named,
    headers: HeaderMap,
    sent: Result<Bytes, BytesRejection>,
) -> Result<Json<Revoked>, Problem> {
    admin.token.check(&headers)?;
    let room = admin.room(&room)?;
    let cure = "Send {\"visitor\":\"…\"}, as the shop is told in Stanchion-Visitor.";
    let Whom { visitor } = body(sent, cure)?;
    let whom: VisitorId =
        visitor.parse().map_err(|_| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "that is no visitor", cure))?;
    let was_known = room.revoke(whom).await.map_err(|error| store_is_away(room, &error))?;
    tracing::info!(room = %room.name(), %whom, was_known, "place and session taken away by the operator");
    Ok(Json(Revoked { visitor, was_known }))
}
