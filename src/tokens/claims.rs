//! What a token says.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::TokenError;
use crate::queue::{RoomName, Score, VisitorId};

/// Which of the two tokens it is, so that one is never taken for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenType {
    /// A place in the line.
    Queue,
    /// An admitted visitor's right to reach the origin.
    Session,
}

/// The claims of a queue or session token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// `typ`: which token it is.
    pub typ: TokenType,
    /// `room`: the room it is for.
    pub room: RoomName,
    /// `sub`: whose it is.
    pub sub: VisitorId,
    /// `score`: their order in the line.
    pub score: Score,
    /// `iat`: when it was issued, Unix seconds.
    pub iat: u64,
    /// `exp`: the first second in which it is no longer good, Unix seconds.
    pub exp: u64,
    /// `epoch`: the room's epoch when it was issued. Whoever knows the present epoch compares.
    pub epoch: u64,
    /// `draw`: a receipt of the pre-queue. `score` is only when they came; what they draw takes its place.
    pub draw: bool,
    /// `arrival`: when someone who drew came, as in the roster. What is in `score` until they draw.
    pub arrival: Option<Score>,
    /// `since_ms`: when the history of the store began in whose roster they are, Unix milliseconds. Only of those who came
    /// before it and were put back: the token of anybody else tells by its age.
    pub since_ms: Option<u64>,
    /// `ahead`: how many waited before the visitor at joining, if that is known: never more since. Only in queue tokens.
    pub ahead: Option<u64>,
    /// `called_ms`: when the visitor was called, Unix milliseconds. Only in session tokens.
    pub called_ms: Option<u64>,
    /// `admitted_ms`: when the visitor was let in, Unix milliseconds. Only in session tokens.
    pub admitted_ms: Option<u64>,
}

/// The claims as JSON. Claims it does not know are ignored (RFC 7519 §4), so a newer node's tokens stay good.
#[derive(Serialize, Deserialize)]
struct Payload<'a> {
    typ: TokenType,
    #[serde(borrow)]
    room: Cow<'a, str>,
    #[serde(borrow)]
    sub: Cow<'a, str>,
    score: Score,
    iat: u64,
    exp: u64,
    epoch: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    draw: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrival: Option<Score>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ahead: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    called_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    admitted_ms: Option<u64>,
}

impl Claims {
    /// The JSON that is signed.
    #[expect(clippy::expect_used, reason = "strings and whole numbers always have a JSON form")]
    pub(super) fn to_json(&self) -> Vec<u8> {
        let payload = Payload {
            typ: self.typ,
            room: self.room.as_str().into(),
            sub: self.sub.to_string().into(),
            score: self.score,
            iat: self.iat,
            exp: self.exp,
            epoch: self.epoch,
            draw: self.draw,
            arrival: self.arrival,
            since_ms: self.since_ms,
            ahead: self.ahead,
            called_ms: self.called_ms,
            admitted_ms: self.admitted_ms,
        };
        serde_json::to_vec(&payload).expect("plain JSON")
    }

    /// Reads a payload whose signature has been checked.
    pub(super) fn from_json(json: &[u8]) -> Result<Self, TokenError> {
        let payload: Payload<'_> = serde_json::from_slice(json).map_err(|_| TokenError::Malformed)?;
        Ok(Self {
            typ: payload.typ,
            room: payload.room.parse().map_err(|_| TokenError::Malformed)?,
            sub: payload.sub.parse().map_err(|_| TokenError::Malformed)?,
            score: payload.score,
            iat: payload.iat,
            exp: payload.exp,
            epoch: payload.epoch,
            draw: payload.draw,
            arrival: payload.arrival,
            since_ms: payload.since_ms,
            ahead: payload.ahead,
            called_ms: payload.called_ms,
            admitted_ms: payload.admitted_ms,
        })
    }

    /// Whether these claims are good for this use at this second. No leeway: at `exp` the token is expired.
    pub(super) fn check(&self, expect: TokenType, room: &RoomName, now_seconds: u64) -> Result<(), TokenError> {
        if self.typ != expect {
            return Err(TokenError::WrongType);
        }
        if self.room != *room {
            return Err(TokenError::WrongRoom);
        }
        if self.exp <= now_seconds {
            return Err(TokenError::Expired { at: self.exp });
        }
        Ok(())
    }
}
