//! Who calls an endpoint, and the cookies that go back.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
};

use axum::{
    extract::{FromRequestParts, Query},
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, LOCATION},
    request::Parts,
};
use serde::Deserialize;

use crate::{
    admission::{LiveRoom, Standing, StatusDocument, Turn},
    gateway::{
        Peer,
        queued::{self, target},
    },
};

/// The sender's side and head.
#[derive(Debug)]
pub(super) struct Visitor {
    pub(super) peer: Peer,
    pub(super) headers: HeaderMap,
    /// Where they want to go, as they said it.
    to: String,
}

#[derive(Deserialize)]
struct To {
    #[serde(default)]
    to: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        // A query nobody can read leads to the front page, like any other target that is none.
        let to = Query::<To>::try_from_uri(&parts.uri).map_or(String::new(), |Query(query)| query.to);
        let unknown = Peer::new(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), false);
        let peer = parts.extensions.get::<Peer>().copied().unwrap_or(unknown);
        Ok(Self { peer, headers: parts.headers.clone(), to: target::encoded(&to) })
    }
}

impl Visitor {
    /// Where they go once let in: a path on this site.
    pub(super) fn to(&self, prefix: &str) -> &str {
        target::same_site(&self.to, prefix)
    }

    /// The status document for `turn`, which says where to go when let in.
    pub(super) fn document(&self, room: &LiveRoom, turn: &Turn, prefix: &str) -> StatusDocument {
        let mut document = room.status(turn);
        if matches!(turn.standing, Standing::Admitted(_)) {
            document.location = Some(self.to(prefix).to_owned());
        }
        document
    }
}

/// A JSON answer that nobody keeps, with the cookies that `turn` brings.
pub(super) fn json<B>(status: StatusCode, body: B, room: &LiveRoom, turn: &Turn, peer: Peer) -> http::Response<B> {
    let mut answer = http::Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    queued::never_cached(&mut answer);
    queued::remember(&mut answer, room, turn, peer);
    answer
}

/// Sends the visitor on, with the cookies that `turn` brings.
pub(super) fn see_other(to: &str, room: &LiveRoom, turn: &Turn, peer: Peer) -> Response {
    let mut answer = StatusCode::SEE_OTHER.into_response();
    if let Ok(to) = HeaderValue::from_str(to) {
        answer.headers_mut().insert(LOCATION, to);
    }
    queued::never_cached(&mut answer);
    queued::remember(&mut answer, room, turn, peer);
    answer
}
