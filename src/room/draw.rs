//! What everybody may know of the draw, and what whoever takes part may keep.

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{
    HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE},
};

use super::{Room, Shared, visitor::Visitor};
use crate::gateway::{identity, problem::Problem, queued};

/// The draw as it is published so far.
pub(super) async fn published(Room(room): Room) -> Result<Response, Problem> {
    let draw = room.published_draw().ok_or_else(no_draw)?;
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "public, max-age=1")];
    Ok((headers, serde_json::to_string(&draw).unwrap_or_default()).into_response())
}

/// The receipt of whoever came in the pre-queue.
pub(super) async fn receipt(State(_): Shared, Room(room): Room, visitor: Visitor) -> Result<Response, Problem> {
    if room.view().snapshot.draw.is_none() {
        return Err(no_draw());
    }
    let known = identity::identify(&room, &visitor.headers);
    let receipt = match &known.queue {
        Some(claims) => room.receipt(claims).await,
        None => None,
    };
    let receipt = receipt.ok_or_else(|| {
        let cure = "Send the queue token, or the cookie that holds it, of somebody who came in the pre-queue.";
        Problem::new(
            StatusCode::NOT_FOUND,
            "there is no receipt for whoever did not come in the pre-queue, left it or was sent away",
            cure,
        )
    })?;
    let file = format!("attachment; filename=\"receipt-{}-{}.json\"", receipt.room, receipt.epoch);
    let text = serde_json::to_string_pretty(&receipt).unwrap_or_default() + "\n";
    let mut answer = ([(CONTENT_TYPE, "application/json")], text).into_response();
    if let Ok(file) = HeaderValue::try_from(file) {
        answer.headers_mut().insert(CONTENT_DISPOSITION, file);
    }
    queued::never_cached(&mut answer);
    Ok(answer)
}

fn no_draw() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "this room has no lottery", "Check the room's name.")
}
