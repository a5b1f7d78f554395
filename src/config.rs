//! Configuration: one validated struct per area. Nothing is bound or opened while it is read, and every problem
//! is reported at once.

pub mod adaptive;
pub mod cache;
pub mod file;
pub mod keys;
pub mod origins;
pub mod problems;
pub mod room;
pub mod secret;
pub mod serve;
pub mod server;

pub use adaptive::Adaptive;
pub use cache::CacheRule;
pub use origins::Origins;
pub use problems::ConfigError;
pub use room::{BypassRule, RoomConfig};
pub use secret::Secret;
pub use serve::{Overrides, ServeConfig};
pub use server::{ListenerConfig, ServerConfig};
