//! Configuration: one validated struct per area. Nothing is bound or opened while it is read, and every problem
//! is reported at once.

pub mod keys;
pub mod room;

pub use room::{BypassRule, RoomConfig};
