//! Forwards admitted requests to the origin and streams the answer back. Touches no store and keeps no state but
//! the pools of connections and the counts of requests in flight.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_util::future::join_all;
use http::{
    HeaderValue, Method, Request, Response, StatusCode, Uri, Version,
    header::{CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING},
    request, response,
    uri::Scheme,
};
use http_body::Body as _;
use hyper::{body::Incoming, upgrade::OnUpgrade};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::sleep,
};

use super::{
    Body, GatewayError, Limits, Route, body,
    connection::Connection,
    forward_headers, hop_by_hop,
    idle::Idle,
    origin_answer::{self, EndsWithConnection, OriginBody},
    parallel::Share,
    request_body::{Pace, RequestBody, Upload},
    trust::Sender,
    tunnel::Tunnel,
    upstream::{Lease, Line, Origin, OriginResponse, SendError, Upstream},
};
use crate::{config::Origins, queue::RoomName};

/// Forms and calls are smaller than this; whatever is larger is passed on while it comes.
const SMALL_BODY: u64 = 16 * 1_024;

/// The way to the origins.
#[derive(Debug)]
pub struct Proxy {
    upstreams: HashMap<RoomName, Upstream>,
    tunnels: Arc<Semaphore>,
    limits: Limits,
}

/// An address that cannot be an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("origin {0}: use http://HOST:PORT, without a path")]
pub struct InvalidOrigin(pub Uri);

/// Beside the request itself, what forwarding it needs to know.
#[derive(Debug, Clone, Copy)]
pub(super) struct ForwardContext<'a> {
    pub(super) route: &'a Route,
    pub(super) connection: &'a Arc<Connection>,
    pub(super) sender: &'a Sender,
    pub(super) request_id: &'a HeaderValue,
}

/// Why an attempt brought no answer.
enum Attempt {
    Send(SendError),
    TimedOut,
}

/// A WebSocket that the visitor asks for.
struct Wanted {
    protocol: HeaderValue,
    visitor: OnUpgrade,
    permit: OwnedSemaphorePermit,
}

impl Proxy {
    /// A proxy to these rooms' shops. Connects to none yet.
    ///
    /// # Errors
    /// When an origin is not of the form `http://host:port`.
    pub fn new(shops: impl IntoIterator<Item = (RoomName, Origins)>, limits: &Limits) -> Result<Self, InvalidOrigin> {
        let mut upstreams = HashMap::new();
        for (room, origins) in shops {
            for origin in &origins.addresses {
                let is_bare = origin.path_and_query().is_none_or(|path| path == "/");
                if origin.scheme() != Some(&Scheme::HTTP) || !is_bare {
                    return Err(InvalidOrigin(origin.clone()));
                }
            }
            let first = origins.addresses.first().cloned().unwrap_or_default();
            let upstream = Upstream::new(&origins, limits).ok_or(InvalidOrigin(first))?;
            upstreams.insert(room, upstream);
        }
        let tunnels = Arc::new(Semaphore::new(limits.tunnels));
        Ok(Self { upstreams, tunnels, limits: limits.clone() })
    }

    /// Asks the origins of every shop that has a health check how they are, for ever.
    pub(super) async fn watch(&self) {
        join_all(self.upstreams.values().map(Upstream::watch)).await;
    }

    /// Sends one request to its origin. Resolves with the head of the answer; both bodies stream meanwhile and after.
    /// Dropping the future or the answer ends the request at the origin. `share` is held as long as the request lasts.
    pub(super) async fn forward(
        &self,
        mut head: request::Parts,
        body: Option<Incoming>,
        context: ForwardContext<'_>,
        share: Option<Share>,
    ) -> Result<Response<Body>, GatewayError> {
        let upstream = self.upstreams.get(&context.route.room).ok_or(GatewayError::UnknownOrigin)?;
        let pace = Pace::new(&self.limits);
        let (mut body, upload) = match body {
            Some(body) => RequestBody::new(body, self.limits.request_body, pace, context.connection)?,
            None => (RequestBody::empty(), None),
        };
        let wanted = self.wanted_websocket(&mut head)?;
        // Whoever waits for a word before they send is to have the shop's word.
        let is_whole = !head.headers.contains_key(EXPECT) && body.gather(SMALL_BODY).await?;
        let patience = self.limits.deadlines.permit;
        let permit = upstream.bulkheads.enter(&head.method, head.uri.path(), is_whole, patience).await?;
        let client_version = head.version;

        let protocol = wanted.as_ref().map(|wanted| wanted.protocol.clone());
        let outgoing = outgoing(head, body, protocol, context)?;
        let (mut answer, mut lease) = self.send(upstream, outgoing, upload.as_deref(), context.connection.core).await?;

        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let origin = answer.extensions_mut().remove::<OnUpgrade>();
            let (Some(wanted), Some(origin)) = (wanted, origin) else { return Err(GatewayError::OriginInvalid) };
            let (head, _) = answer.into_parts();
            return Ok(self.switch(head, wanted, origin, (context, lease.address()), share));
        }
        let (mut head, body) = answer.into_parts();
        let is_coded = head.headers.contains_key(TRANSFER_ENCODING);
        origin_answer::clean(&mut head, lease.address());
        if body.is_end_stream() {
            lease.give_back();
        } else if let Some(length) = body.size_hint().exact() {
            // Once and plain, however the origin wrote it (`2, 2`).
            head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        } else if !is_coded {
            head.extensions.insert(EndsWithConnection);
        }
        let ends_with_connection = client_version == Version::HTTP_10 && !head.headers.contains_key(CONTENT_LENGTH);
        let reset_when_cut = ends_with_connection.then(|| Arc::clone(context.connection));
        let idle = Idle::new(self.limits.deadlines.body_idle);
        let body = OriginBody::new(body, idle, reset_when_cut, lease, (permit, share));
        Ok(Response::from_parts(head, body::streamed(body)))
    }

    /// Sends; again where the request never left, and once more if all that happened is that a connection ended before its
    /// answer and the request may be repeated (RFC 9110 §9.2.2).
    async fn send(
        &self,
        upstream: &Upstream,
        mut request: Request<RequestBody>,
        upload: Option<&Upload>,
        core: usize,
    ) -> Result<(OriginResponse, Lease), GatewayError> {
        let may_repeat = upload.is_none() && request.method().is_idempotent();
        let mut again = may_repeat.then(|| copy(&request));
        let mut tried: Option<Arc<Origin>> = None;
        loop {
            let origin = upstream.choose(tried.as_ref()).ok_or(GatewayError::UnknownOrigin)?;
            // Nothing has left yet, so another origin may have it whatever it is.
            let line = match origin.connect(core, self.limits.deadlines.connect).await {
                Ok(line) => line,
                Err(error) => {
                    origin.health.failed();
                    if tried.is_none() && upstream.has_others() {
                        tried = Some(Arc::clone(origin));
                        continue;
                    }
                    return Err(error.into());
                }
            };
            request.headers_mut().entry(HOST).or_insert_with(|| origin.host.clone());
            let was_used = line.was_used;
            let error = match self.answer(line, request, upload).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            request = match error {
                // A pooled connection had ended; the pool runs out of those.
                Attempt::Send(SendError::NotSent(request)) if was_used => *request,
                Attempt::Send(SendError::DiedInPool) if let Some(again) = again.take() => again,
                Attempt::Send(_) => {
                    // The client's failure is not the origin's.
                    if let Some(failure) = upload.and_then(Upload::failure) {
                        return Err(failure);
                    }
                    origin.health.failed();
                    match again.take() {
                        Some(again) if upstream.has_others() => {
                            tried = Some(Arc::clone(origin));
                            again
                        }
                        _ => return Err(GatewayError::OriginInvalid),
                    }
                }
                Attempt::TimedOut => {
                    origin.health.failed();
                    return Err(GatewayError::OriginTimeout);
                }
            };
        }
    }

    /// One attempt, under the deadline for the head of the answer.
    async fn answer(
        &self,
        line: Line,
        request: Request<RequestBody>,
        upload: Option<&Upload>,
    ) -> Result<(OriginResponse, Lease), Attempt> {
        let limit = self.limits.deadlines.response_head;
        let stalls = async {
            match upload {
                Some(upload) => upload.origin_stalls(limit).await,
                None => sleep(limit).await,
            }
        };
        tokio::select! {
            biased;
            answer = line.send(request) => answer.map_err(Attempt::Send),
            () = stalls => Err(Attempt::TimedOut),
        }
    }

    fn wanted_websocket(&self, head: &mut request::Parts) -> Result<Option<Wanted>, GatewayError> {
        let Some(protocol) = hop_by_hop::wanted_websocket(head) else { return Ok(None) };
        let Some(visitor) = head.extensions.remove::<OnUpgrade>() else { return Ok(None) };
        let permit = Arc::clone(&self.tunnels).try_acquire_owned().map_err(|_| GatewayError::Busy)?;
        Ok(Some(Wanted { protocol, visitor, permit }))
    }

    /// Answers 101 and opens the tunnel, which waits for both ends to have switched.
    fn switch(
        &self,
        mut head: response::Parts,
        wanted: Wanted,
        origin: OnUpgrade,
        (context, address): (ForwardContext<'_>, &Uri),
        share: Option<Share>,
    ) -> Response<Body> {
        let protocol = head.headers.remove(http::header::UPGRADE).unwrap_or(wanted.protocol);
        origin_answer::clean(&mut head, address);
        hop_by_hop::offer_upgrade(&mut head.headers, protocol);
        let tunnel = Tunnel {
            visitor: wanted.visitor,
            origin,
            connection: Arc::clone(context.connection),
            permits: (wanted.permit, share),
            idle: self.limits.deadlines.tunnel_idle,
            life: self.limits.deadlines.tunnel_life.min(left_of_session(context.route)),
        };
        tunnel.open();
        Response::from_parts(head, body::empty())
    }
}

fn left_of_session(route: &Route) -> Duration {
    let Some(expires) = route.session_expires else { return Duration::MAX };
    let expires = UNIX_EPOCH + Duration::from_secs(expires);
    expires.duration_since(SystemTime::now()).unwrap_or_default()
}

/// The request as the origin gets it.
fn outgoing(
    head: request::Parts,
    body: RequestBody,
    websocket: Option<HeaderValue>,
    context: ForwardContext<'_>,
) -> Result<Request<RequestBody>, GatewayError> {
    let malformed = |_| GatewayError::BadRequest("a header field cannot be forwarded");
    let mut headers = head.headers;
    let takes_trailers = hop_by_hop::takes_trailers(&headers);
    hop_by_hop::strip(&mut headers);
    forward_headers::replace(&mut headers, context.route, context.sender, context.request_id).map_err(malformed)?;
    if takes_trailers {
        hop_by_hop::offer_trailers(&mut headers);
    }
    if let Some(protocol) = websocket {
        hop_by_hop::offer_upgrade(&mut headers, protocol);
    }
    if !headers.contains_key(CONTENT_LENGTH) {
        if !body.is_end_stream() {
            // Said explicitly, because hyper takes a GET of unknown length for one without a body and drops it.
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        } else if matches!(head.method, Method::POST | Method::PUT | Method::PATCH) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
    }
    let mut request = Request::new(body);
    *request.method_mut() = head.method;
    *request.uri_mut() = head.uri;
    *request.headers_mut() = headers;
    Ok(request)
}

/// A second copy of a request without body.
fn copy(request: &Request<RequestBody>) -> Request<RequestBody> {
    let mut copy = Request::new(RequestBody::empty());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}
