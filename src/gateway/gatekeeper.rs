//! The seam between the stack and the gate: who may pass, and with what.

use std::net::SocketAddr;

use http::{HeaderValue, Response, request, response};

use super::{Body, GatewayError, parallel::Share};
use crate::queue::{RoomName, VisitorId};

/// The other end of the visitor's connection. Also put into the extensions of requests to the room's endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its address; never an IPv4-mapped IPv6 one.
    pub addr: SocketAddr,
    /// Whether the visitor's side is TLS: decides `Secure` on cookies and `X-Forwarded-Proto`.
    pub tls: bool,
    /// Whether what it says of the sender may be believed, if it is a trusted proxy: not of one that passed a connection on
    /// and did not say whose, because then nobody looked at what the sender wrote.
    pub vouches: bool,
}

impl Peer {
    /// A peer; `::ffff:1.2.3.4` becomes `1.2.3.4`, so that one visitor has one address whatever socket took the call.
    pub fn new(addr: SocketAddr, tls: bool) -> Self {
        Self { addr: SocketAddr::new(addr.ip().to_canonical(), addr.port()), tls, vouches: true }
    }
}

/// Decides about every request that is not for the room's own endpoints.
///
/// The head it sees is already normalised: `uri` is origin-form (path and query, byte-exact), and `Host` is there
/// once and valid. Only an HTTP/1.0 request may lack `Host`.
pub trait Gatekeeper: Send + Sync + 'static {
    /// What [`Gatekeeper::decide`] wants to find again in [`Gatekeeper::after_origin`]: the room, the claims.
    type Memo: Send + Sync + 'static;

    /// Who may pass. The body is not read meanwhile, so a refused upload costs nothing.
    fn decide(&self, head: &request::Parts, peer: Peer) -> impl Future<Output = Verdict<Self::Memo>> + Send;

    /// Reads and removes the `Stanchion-*` headers of the origin's answer, and corrects [`Passage::set_cookies`] to
    /// what they ask for. May wait for the store under its deadline, where the visitor's token depends on its word;
    /// anything else is handed to a task. The stack adds the cookies afterwards, also when the origin failed and this
    /// was not called.
    fn after_origin(
        &self,
        passage: &mut Passage<Self::Memo>,
        head: &mut response::Parts,
    ) -> impl Future<Output = ()> + Send;

    /// Hears that a request it let pass got no answer from the origin.
    fn origin_failed(&self, _passage: &mut Passage<Self::Memo>, _error: GatewayError) {}
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Verdict<M> {
    /// It goes to the origin.
    Forward(Passage<M>),
    /// It is answered here: the waiting page, its JSON twin.
    Answer(Response<Body>),
    /// It is refused; the stack makes the page or problem document.
    Refuse(GatewayError),
}

/// The right of one request to reach the origin.
#[derive(Debug)]
pub struct Passage<M> {
    /// Where it goes and what the origin is told.
    pub route: Route,
    /// Complete `Set-Cookie` values that the stack appends to whatever answer the visitor gets, errors included: a
    /// session claimed by this request must not be lost because the origin was down.
    pub set_cookies: Vec<HeaderValue>,
    /// The request's place among the parallel ones of its session, which the stack holds until the answer or the tunnel
    /// has ended; `None` where nothing is counted.
    pub share: Option<Share>,
    /// The gatekeeper's own.
    pub memo: M,
}

/// Where a request goes and what the origin is told about its sender.
#[derive(Debug, Clone)]
pub struct Route {
    /// Whose shop it goes to, one of those given to [`super::Proxy::new`]; sent as `Stanchion-Room`.
    pub room: RoomName,
    /// Sent as `Stanchion-Visitor`; `None` for bypassed requests.
    pub visitor: Option<VisitorId>,
    /// Sent as `Stanchion-Session-Expires`, seconds since the Unix epoch; also ends an upgraded connection.
    pub session_expires: Option<u64>,
    /// Whether `Authorization` held one of our tokens and must not reach the origin.
    pub drop_authorization: bool,
    /// Whether the answer may be kept for others; `None` if it is for this visitor alone.
    pub sharing: Option<Sharing>,
}

/// Who may get an answer that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Whoever is admitted.
    Admitted,
    /// Everybody: the origin is asked without cookies, and told of no visitor.
    Everyone,
}
