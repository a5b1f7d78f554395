//! What is answered on the spot.

use std::fmt;

use http::{HeaderMap, Method, Response, Uri};

use super::{Body, Peer};

/// Answers requests for which nobody has to wait, before any of the machinery that waiting takes is set up: at a sale's
/// opening nearly all requests are such.
pub trait AtOnce: fmt::Debug + Send + Sync + 'static {
    /// The answer; `None` when this is not for it, and then nothing happened.
    fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap, peer: Peer) -> Option<Response<Body>>;
}
