//! Who sends a request: the genuine tokens among what the head carries. No store is asked.

use std::sync::Arc;

use http::{HeaderMap, header::AUTHORIZATION};

use super::cookies;
use crate::{
    admission::LiveRoom,
    tokens::{Claims, TokenError, TokenType},
};

/// What a request proves about its sender.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Identity {
    /// A live session.
    pub session: Option<Claims>,
    /// A place in the line.
    pub queue: Option<Claims>,
    /// `Authorization` holds a token of ours, live or not, which is none of the origin's business.
    pub is_bearer_ours: bool,
}

/// Header in which apps without cookies send the queue token.
pub const QUEUE_TOKEN: &str = "stanchion-queue-token";

/// Each verification costs a hash over a kilobyte, so only so many copies of one cookie are tried.
const MOST_TRIES: usize = 8;

/// Identifies the sender towards `room`. Forged, expired and foreign tokens count as none.
pub fn identify(room: &Arc<LiveRoom>, headers: &HeaderMap) -> Identity {
    let now = room.now_ms() / 1_000;
    let epoch = room.view().snapshot.epoch;
    let verify = |token: &str, typ| match room.keyring().verify(token, typ, room.name(), now) {
        Ok(claims) if claims.epoch == epoch || room.has_reached(claims.epoch) => Some(claims),
        _ => None,
    };
    let bearer = bearer(headers);
    let session = cookies::session_values(headers, room.name())
        .take(MOST_TRIES)
        .find_map(|token| verify(token, TokenType::Session))
        .or_else(|| verify(bearer?, TokenType::Session))
        .filter(|session| room.is_live(session));
    let queue = cookies::queue_values(headers, room.name())
        .take(MOST_TRIES)
        .find_map(|token| verify(token, TokenType::Queue))
        .or_else(|| verify(headers.get(QUEUE_TOKEN)?.to_str().ok()?, TokenType::Queue));
    let is_bearer_ours = bearer.is_some_and(|token| {
        !matches!(
            room.keyring().verify(token, TokenType::Session, room.name(), now),
            Err(TokenError::Malformed | TokenError::UnknownKey | TokenError::BadSignature)
        )
    });
    Identity { session, queue, is_bearer_ours }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim())
}
