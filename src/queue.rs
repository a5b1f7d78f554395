//! The line of one room: typed bindings of the scripts in `lua/`, over any [`Engine`](crate::store::Engine).

pub mod error;
pub mod keys;
pub mod lottery;
mod lua;
pub mod pace;
mod reply;
pub mod scripts;
pub mod sketch;
pub mod snapshot;
pub mod types;

pub use error::QueueError;
pub use pace::{NodeId, Pace, Reported};
pub use scripts::Queue;
pub use sketch::{RankSketch, SketchKeeper};
pub use snapshot::{Draw, Snapshot};
pub use types::{Arrival, Method, Mode, Past, Place, Policy, Proof, RoomName, Schedule, Score, VisitorId};
