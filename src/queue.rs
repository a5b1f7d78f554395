//! The line of one room: typed bindings of the scripts in `lua/`, over any [`Engine`](crate::store::Engine).

pub mod keys;
mod lua;
mod reply;
pub mod scripts;
pub mod sketch;
pub mod snapshot;
pub mod types;

pub use scripts::Queue;
pub use sketch::{RankSketch, SketchKeeper};
pub use snapshot::Snapshot;
pub use types::{Arrival, Mode, Place, Policy, Proof, RoomName, Score, VisitorId};
