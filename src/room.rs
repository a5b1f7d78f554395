//! The visitor endpoints: all public machinery under the prefix (`/__room` by default).
//!
//! | call | does |
//! | --- | --- |
//! | `GET {prefix}/{room}?to=` | shows the waiting page |
//! | `GET {prefix}/{room}/status` | the poll; claims when called |
//! | `POST {prefix}/{room}/join` | takes a place; a visitor whose place expired joins anew |
//! | `POST {prefix}/{room}/leave` | gives up place and session |
//! | `GET {prefix}/{room}/line.json` | what is the same for everyone; cacheable |
//! | `GET {prefix}/assets/{file}` | style and script, immutable |

mod assets;
mod join;
mod leave;
mod line;
mod page;
mod status;
mod visitor;

use std::sync::Arc;

use axum::{
    Router,
    routing::{get, post},
};
use http::StatusCode;

use crate::{
    admission::{LiveRoom, Rooms},
    gateway::problem::Problem,
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
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "there is no such page", "Check the address."))
        .method_not_allowed_fallback(async || {
            let detail = "this address does not take that method";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail, "Use GET, or POST for join and leave.")
        })
        .with_state(shared)
}

impl Endpoints {
    fn room(&self, name: &str) -> Result<&Arc<LiveRoom>, Problem> {
        let unknown = || Problem::new(StatusCode::NOT_FOUND, "there is no such room", "Check the room's name.");
        self.rooms.iter().find(|room| room.name().as_str() == name).ok_or_else(unknown)
    }
}
