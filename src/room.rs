//! The visitor endpoints: all public machinery under the prefix (`/__room` by default).
//!
//! | call | does |
//! | --- | --- |
//! | `GET {prefix}/{room}?to=` | shows the waiting page |
//! | `GET {prefix}/{room}/status` | the poll; claims when called |
//! | `POST {prefix}/{room}/join` | takes a place; a visitor whose place expired joins anew |
//! | `POST {prefix}/{room}/leave` | gives up place and session |
//! | `GET {prefix}/{room}/line.json` | what is the same for everyone; cacheable |
//! | `GET {prefix}/{room}/draw.json` | what is published of the lottery; cacheable |
//! | `GET {prefix}/{room}/receipt` | signed proof of having come in the pre-queue |
//! | `GET {prefix}/assets/{file}` | style and script, immutable |

mod assets;
mod draw;
mod join;
mod leave;
mod line;
mod page;
mod status;
mod visitor;

use std::sync::Arc;

use axum::{
    Router,
    extract::{FromRequestParts, Path},
    routing::{get, post},
};
use http::{HeaderMap, Method, Response, StatusCode, Uri, request::Parts};

use crate::{
    admission::{LiveRoom, Rooms},
    gateway::{AtOnce, Body, Peer, problem::Problem},
};

/// What the endpoints share.
#[derive(Debug)]
struct Endpoints {
    rooms: Rooms,
    prefix: String,
}

type Shared = axum::extract::State<Arc<Endpoints>>;

/// The endpoints of `rooms` under `prefix`, such as `/__room`. Requests carry a [`crate::gateway::Peer`] in their
/// extensions, as [`crate::gateway::Gateway`] sees to.
pub fn router(rooms: Rooms, prefix: &str) -> Router {
    let shared = Arc::new(Endpoints { rooms, prefix: prefix.to_owned() });
    Router::new()
        .route(&format!("{prefix}/assets/{{file}}"), get(assets::serve))
        .route(&format!("{prefix}/{{room}}"), get(page::show))
        .route(&format!("{prefix}/{{room}}/status"), get(status::poll))
        .route(&format!("{prefix}/{{room}}/join"), post(join::join))
        .route(&format!("{prefix}/{{room}}/leave"), post(leave::leave))
        .route(&format!("{prefix}/{{room}}/line.json"), get(line::line))
        .route(&format!("{prefix}/{{room}}/draw.json"), get(draw::published))
        .route(&format!("{prefix}/{{room}}/receipt"), get(draw::receipt))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "there is no such page", "Check the address."))
        .method_not_allowed_fallback(async || {
            let detail = "this address does not take that method";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail, "Use GET, or POST for join and leave.")
        })
        .with_state(shared)
}

/// Answers the polls of those who merely wait on the spot, as `{prefix}/{room}/status` would.
pub fn at_once(rooms: Rooms, prefix: &str) -> impl AtOnce {
    Endpoints { rooms, prefix: prefix.to_owned() }
}

impl AtOnce for Endpoints {
    fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap, peer: Peer) -> Option<Response<Body>> {
        let name = uri.path().strip_prefix(&*self.prefix)?.strip_prefix('/')?.strip_suffix("/status")?;
        let room = self.rooms.iter().find(|room| room.name().as_str() == name).filter(|_| method == Method::GET)?;
        status::at_once(room, headers, peer)
    }
}

/// The room that the path names.
#[derive(Debug)]
struct Room(Arc<LiveRoom>);

impl FromRequestParts<Arc<Endpoints>> for Room {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Endpoints>) -> Result<Self, Problem> {
        let name = Path::<String>::from_request_parts(parts, shared).await;
        let room = name.ok().and_then(|Path(name)| shared.rooms.iter().find(|room| room.name().as_str() == name));
        let unknown = || Problem::new(StatusCode::NOT_FOUND, "there is no such room", "Check the room's name.");
        room.map(|room| Self(Arc::clone(room))).ok_or_else(unknown)
    }
}
