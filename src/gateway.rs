//! The public listener: every request of the shop's visitors passes here.
//!
//! [`Gateway`] is the whole public stack; [`serve`] runs it on a listener. A [`Gatekeeper`] decides who may pass, the
//! [`Proxy`] forwards, the cache keeps what many may share, and one enum, [`GatewayError`], becomes every answer that is an error.

mod answer_body;
mod at_once;
pub mod body;
mod cache;
mod client_stream;
mod connection;
pub mod cookies;
mod cores;
mod crowd;
mod doors;
pub mod error;
mod forward_headers;
mod framing;
pub mod gate;
pub mod gatekeeper;
mod greeting;
mod head;
mod hop_by_hop;
pub mod identity;
mod idle;
pub mod limits;
mod origin_answer;
pub mod parallel;
pub mod problem;
pub mod proxy;
mod proxy_protocol;
pub mod queued;
mod request_body;
pub mod respond;
pub mod server;
mod socket;
pub mod trust;
mod tunnel;
mod upstream;
mod visit;

use std::sync::Arc;

pub use at_once::AtOnce;
use axum::Router;
pub use body::{Body, BoxError};
pub use doors::{Door, Doors};
pub use error::GatewayError;
pub use gate::Gate;
pub use gatekeeper::{Gatekeeper, Passage, Peer, Route, Sharing, Verdict};
use http::{
    HeaderMap, HeaderValue, Request, Response, Version,
    header::{CACHE_CONTROL, EXPIRES, HOST, SET_COOKIE},
    request,
};
use hyper::body::{Body as _, Incoming};
pub use limits::{Deadlines, Limits};
pub use proxy::{InvalidOrigin, Proxy};
pub use server::serve;
use tokio::time::timeout;
use tower::ServiceExt as _;
pub use trust::Trust;

use self::{
    cache::{Advice, Cache, Served, Wish},
    connection::Connection,
    parallel::Share,
    proxy::ForwardContext,
    request_body::{Pace, RequestBody},
    respond::Asked,
};

/// Where the room's own endpoints live unless [`Gateway::with_prefix`] says otherwise.
pub const DEFAULT_PREFIX: &str = "/__room";

/// The public stack.
#[derive(Debug)]
pub struct Gateway<G> {
    gatekeeper: G,
    proxy: Proxy,
    cache: Cache,
    endpoints: Router,
    at_once: Option<Box<dyn AtOnce>>,
    prefix: String,
    trust: Trust,
    limits: Limits,
}

impl<G: Gatekeeper> Gateway<G> {
    /// A stack in which `endpoints` answers everything under [`DEFAULT_PREFIX`] (it sees full paths, and a [`Peer`] in
    /// the request's extensions), and everything else goes past `gatekeeper` to `proxy`.
    pub fn new(gatekeeper: G, proxy: Proxy, endpoints: Router, limits: Limits) -> Self {
        let (prefix, trust, cache) = (DEFAULT_PREFIX.to_owned(), Trust::default(), Cache::new(limits.cache));
        Self { gatekeeper, proxy, cache, endpoints, at_once: None, prefix, trust, limits }
    }

    /// Moves the room's own endpoints, say to `/queue`: a leading slash, none at the end.
    #[must_use]
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Takes the word of these proxies about their clients.
    #[must_use]
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Asks this before everything else.
    #[must_use]
    pub fn with_at_once(mut self, at_once: impl AtOnce) -> Self {
        self.at_once = Some(Box::new(at_once));
        self
    }

    /// The answer to a request that nobody has to wait for. Only plain requests are looked at: one `Host`, a path, no body;
    /// whatever needs a closer look takes the long way.
    fn answer_at_once(&self, request: &Request<Incoming>, connection: &Arc<Connection>) -> Option<Response<Body>> {
        let at_once = self.at_once.as_ref()?;
        let is_plain = request.version() == Version::HTTP_11
            && request.uri().authority().is_none()
            && request.body().is_end_stream()
            && request.headers().get_all(HOST).iter().count() == 1;
        if !is_plain {
            return None;
        }
        let peer = if connection.is_trusted {
            self.trust.sender(request.headers(), connection.peer).visitor
        } else {
            connection.peer
        };
        let answer = at_once.answer(request.method(), request.uri(), request.headers(), peer)?;
        connection.count();
        Some(answer)
    }

    /// One request, from its head to the head of its answer.
    async fn answer(&self, request: Request<Incoming>, connection: &Arc<Connection>) -> Response<Body> {
        // Noted first, so that even the refusal of a malformed request carries its id and its kind of document.
        let asked = Asked::new(&request);
        // Errors are values up to here and become answers in one place.
        self.pass(request, connection, &asked).await.unwrap_or_else(|error| respond::refuse(error, &asked))
    }

    async fn pass(
        &self,
        request: Request<Incoming>,
        connection: &Arc<Connection>,
        asked: &Asked,
    ) -> Result<Response<Body>, GatewayError> {
        let (mut head, body) = request.into_parts();
        // Before anyone looks: gate and origin must not see two different requests in the same bytes.
        head::normalise(&mut head, &self.limits)?;
        let sender = self.trust.sender(&head.headers, connection.peer);
        if let Some(host) = &sender.host {
            head.headers.insert(HOST, host.clone());
        }
        // The room's endpoints come before the gate, because those who wait need them.
        if self.is_own(head.uri.path()) {
            return self.endpoint(head, body, sender.visitor, connection).await;
        }
        // The gate sees the head only: an upload is not read for someone who may not pass.
        let mut passage = match self.gatekeeper.decide(&head, sender.visitor).await {
            Verdict::Forward(passage) => passage,
            Verdict::Answer(answer) => return Ok(answer),
            Verdict::Refuse(error) => return Err(error),
        };
        let share = passage.share.take();
        let context =
            ForwardContext { route: &passage.route, connection, sender: &sender, request_id: &asked.request_id };
        let served = match Wish::of(&mut head, &passage.route, sender.visitor.tls) {
            Some(wish) => self.shared(&wish, head, context, share).await,
            None => self.proxy.forward(head, Some(body), context, share).await.map(Served::Asked),
        };
        let mut answer = match served {
            Ok(Served::Kept(answer)) => answer,
            Ok(Served::Asked(answer)) => self.told_by_origin(&mut passage, answer).await,
            Err(error) => {
                self.gatekeeper.origin_failed(&mut passage, error);
                respond::refuse(error, asked)
            }
        };
        // On errors too: the session this request claimed is the visitor's, whatever the origin does.
        append_cookies(&mut answer, passage.set_cookies);
        Ok(answer)
    }

    /// An answer that may be others' too: from the cache, or from the origin, which is asked once for all. No body goes with
    /// such a request: a GET has none that would mean anything (RFC 9110 §9.3.1).
    async fn shared(
        &self,
        wish: &Wish,
        mut head: request::Parts,
        context: ForwardContext<'_>,
        share: Option<Share>,
    ) -> Result<Served, GatewayError> {
        let patience = self.limits.deadlines.permit;
        let anonymous;
        let context = if context.route.sharing == Some(Sharing::Everyone) {
            anonymous = Route { visitor: None, session_expires: None, ..context.route.clone() };
            ForwardContext { route: &anonymous, ..context }
        } else {
            context
        };
        match self.cache.advise(wish, patience).await? {
            Advice::Serve(answer) => Ok(Served::Kept(answer.to(wish))),
            Advice::Ask(lead) => {
                let asked = self.proxy.forward(head, None, context, share).await;
                lead.land(wish, asked, patience).await
            }
            Advice::Pass => {
                wish.only_mine(&mut head);
                self.proxy.forward(head, None, context, share).await.map(Served::Asked)
            }
        }
    }

    /// What the origin said to us is acted on and does not leave the house.
    async fn told_by_origin(&self, passage: &mut Passage<G::Memo>, answer: Response<Body>) -> Response<Body> {
        let (mut head, body) = answer.into_parts();
        self.gatekeeper.after_origin(passage, &mut head).await;
        forward_headers::strip_commands(&mut head.headers);
        Response::from_parts(head, body)
    }

    fn is_own(&self, path: &str) -> bool {
        path.strip_prefix(self.prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    async fn endpoint(
        &self,
        head: request::Parts,
        body: Incoming,
        peer: Peer,
        connection: &Arc<Connection>,
    ) -> Result<Response<Body>, GatewayError> {
        let deadlines = &self.limits.deadlines;
        let pace = Pace::new(&self.limits);
        let (body, _) = RequestBody::new(body, self.limits.endpoint_body, pace, connection)?;
        let mut request = Request::from_parts(head, axum::body::Body::new(body));
        request.extensions_mut().insert(peer);
        match timeout(deadlines.endpoint, self.endpoints.clone().oneshot(request)).await {
            Ok(Ok(answer)) => Ok(answer.map(body::streamed)),
            Ok(Err(never)) => match never {},
            Err(_) => Err(GatewayError::Busy),
        }
    }
}

fn append_cookies(answer: &mut Response<Body>, cookies: Vec<HeaderValue>) {
    if !cookies.is_empty() {
        keep_from_shared_caches(answer.headers_mut());
    }
    for cookie in cookies {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
}

/// An answer that others may keep, and that now carries one visitor's token: a cache in front of the gateway would give it to the
/// next visitor.
fn keep_from_shared_caches(headers: &mut HeaderMap) {
    let is_kept_back = |line: &HeaderValue| {
        let line = line.as_bytes().to_ascii_lowercase();
        [&b"private"[..], b"no-store"].iter().any(|word| line.windows(word.len()).any(|part| part == *word))
    };
    let says_how_long = headers.contains_key(CACHE_CONTROL) || headers.contains_key(EXPIRES);
    if says_how_long && !headers.get_all(CACHE_CONTROL).iter().any(is_kept_back) {
        headers.append(CACHE_CONTROL, HeaderValue::from_static("private"));
    }
}
