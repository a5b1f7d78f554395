//! The public listener: every request of the shop's visitors passes here.

pub mod body;
pub mod error;
pub mod gate;
pub mod gatekeeper;
pub mod limits;
pub mod proxy;

pub use body::{Body, BoxError};
pub use error::GatewayError;
pub use gatekeeper::{Gatekeeper, Passage, Peer, Route, Verdict};
pub use limits::{Deadlines, Limits};
pub use proxy::Proxy;
