//! Configuration: one validated struct per area. Nothing is bound or opened while it is read, and every problem
//! is reported at once.

pub mod file;
pub mod keys;
pub mod problems;
pub mod room;
pub mod serve;

pub use problems::ConfigError;
pub use room::{BypassRule, RoomConfig};
pub use serve::{Overrides, ServeConfig};
