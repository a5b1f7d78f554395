//! What a node knows and does for each room, whatever the protocol: it keeps a snapshot fresh, calls visitors,
//! collects who is present, and turns a visitor's token into their standing.
//!
//! Nothing here waits for the store on behalf of an admitted visitor or of a waiting visitor far from the front.

pub mod attendance;
pub mod cadence;
mod discord;
mod draw;
mod ended;
pub mod flow;
pub mod joins;
mod kept;
pub mod live_room;
mod page;
pub mod policy;
mod prequeue;
pub mod presence;
pub mod recent;
mod roster_copy;
mod runner;
pub mod sessions;
pub mod signals;
pub mod status;
pub mod steering;
pub mod turn;
pub mod view;

pub use live_room::LiveRoom;
pub use status::{State, StatusDocument, rfc3339};
pub use turn::{Standing, Turn};
pub use view::View;

use std::sync::Arc;

/// The rooms of a node, in the order of the configuration.
pub type Rooms = Arc<[Arc<LiveRoom>]>;
