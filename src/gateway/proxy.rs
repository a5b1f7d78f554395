//! Forwards admitted requests to the origin and streams the answer back. Touches no store and keeps no state but
//! the pools of connections and the counts of requests in flight.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{
    HeaderValue, Method, Request, Response, StatusCode, Uri, Version,
    header::{CONTENT_LENGTH, TRANSFER_ENCODING},
    request, response,
    uri::{Authority, Scheme},
};
use http_body::Body as _;
use hyper::{body::Incoming, upgrade::OnUpgrade};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};

use super::{
    Body, GatewayError, Limits, Route, body,
    connection::Connection,
    forward_headers, hop_by_hop,
    idle::Idle,
    origin_answer::{self, OriginBody},
    parallel::Share,
    request_body::{Pace, RequestBody, Upload},
    trust::Sender,
    tunnel::Tunnel,
    upstream::{self, Client, OriginResponse, Upstream},
};

/// The way to the origins.
#[derive(Debug)]
pub struct Proxy {
    origins: HashMap<Authority, Upstream>,
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

/// A WebSocket that the visitor asks for.
struct Wanted {
    protocol: HeaderValue,
    visitor: OnUpgrade,
    permit: OwnedSemaphorePermit,
}

impl Proxy {
    /// A proxy to these origins. Connects to none yet.
    ///
    /// # Errors
    /// When an origin is not of the form `http://host:port`.
    pub fn new(origins: impl IntoIterator<Item = Uri>, limits: &Limits) -> Result<Self, InvalidOrigin> {
        let mut known = HashMap::new();
        for origin in origins {
            let fits = origin.scheme() == Some(&Scheme::HTTP) && origin.path_and_query().is_none_or(|path| path == "/");
            match origin.authority() {
                Some(authority) if fits => known.insert(authority.clone(), Upstream::new(limits)),
                _ => return Err(InvalidOrigin(origin)),
            };
        }
        let tunnels = Arc::new(Semaphore::new(limits.tunnels));
        Ok(Self { origins: known, tunnels, limits: limits.clone() })
    }

    /// Sends one request to its origin. Resolves with the head of the answer; both bodies stream meanwhile and after.
    /// Dropping the future or the answer ends the request at the origin. `share` is held as long as the request lasts.
    pub(super) async fn forward(
        &self,
        request: Request<Incoming>,
        context: ForwardContext<'_>,
        share: Option<Share>,
    ) -> Result<Response<Body>, GatewayError> {
        let authority = context.route.origin.authority().ok_or(GatewayError::UnknownOrigin)?;
        let upstream = self.origins.get(authority).ok_or(GatewayError::UnknownOrigin)?;
        let (mut head, body) = request.into_parts();
        let pace = Pace::new(&self.limits);
        let (body, upload) = RequestBody::new(body, self.limits.request_body, pace, context.connection)?;
        let wanted = self.wanted_websocket(&mut head)?;
        let permit = self.permit(&upstream.in_flight).await?;
        let client_version = head.version;

        let protocol = wanted.as_ref().map(|wanted| wanted.protocol.clone());
        let outgoing = outgoing(head, body, protocol, context)?;
        let client = upstream.client(context.connection.core).ok_or(GatewayError::UnknownOrigin)?;
        let mut answer = self.send(client, outgoing, upload.as_deref()).await?;

        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let origin = answer.extensions_mut().remove::<OnUpgrade>();
            let (Some(wanted), Some(origin)) = (wanted, origin) else { return Err(GatewayError::OriginInvalid) };
            let (head, _) = answer.into_parts();
            return Ok(self.switch(head, wanted, origin, context, share));
        }
        let (mut head, body) = answer.into_parts();
        origin_answer::clean(&mut head, &context.route.origin);
        if let Some(length) = body.size_hint().exact().filter(|_| !body.is_end_stream()) {
            // Once and plain, however the origin wrote it (`2, 2`).
            head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        let ends_with_connection = client_version == Version::HTTP_10 && !head.headers.contains_key(CONTENT_LENGTH);
        let reset_when_cut = ends_with_connection.then(|| Arc::clone(context.connection));
        let body = OriginBody::new(body, Idle::new(self.limits.deadlines.body_idle), reset_when_cut, (permit, share));
        Ok(Response::from_parts(head, body::streamed(body)))
    }

    /// Sends, and sends once more if all that happened is that a kept-alive connection had ended.
    async fn send(
        &self,
        client: &Client,
        request: Request<RequestBody>,
        upload: Option<&Upload>,
    ) -> Result<OriginResponse, GatewayError> {
        let again = (upload.is_none() && request.method().is_idempotent()).then(|| copy(&request));
        let error = match self.answer(client, request, upload).await? {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let error = match again {
            Some(again) if upstream::died_in_the_pool(&error) => match self.answer(client, again, None).await? {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            },
            _ => error,
        };
        Err(match upload.and_then(Upload::failure) {
            Some(failure) => failure,
            None if upstream::connect_timed_out(&error) => GatewayError::OriginTimeout,
            None if error.is_connect() => GatewayError::OriginUnreachable,
            None => GatewayError::OriginInvalid,
        })
    }

    /// One attempt, under the deadline for the head of the answer.
    async fn answer(
        &self,
        client: &Client,
        request: Request<RequestBody>,
        upload: Option<&Upload>,
    ) -> Result<Result<OriginResponse, hyper_util::client::legacy::Error>, GatewayError> {
        let limit = self.limits.deadlines.response_head;
        let stalls = async {
            match upload {
                Some(upload) => upload.origin_stalls(limit).await,
                None => sleep(limit).await,
            }
        };
        let answer = tokio::select! {
            answer = client.request(request) => answer,
            () = stalls => return Err(GatewayError::OriginTimeout),
        };
        Ok(answer.inspect(upstream::note_served))
    }

    async fn permit(&self, in_flight: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, GatewayError> {
        let waited = timeout(self.limits.deadlines.permit, Arc::clone(in_flight).acquire_owned()).await;
        waited.ok().and_then(Result::ok).ok_or(GatewayError::Busy)
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
        context: ForwardContext<'_>,
        share: Option<Share>,
    ) -> Response<Body> {
        let protocol = head.headers.remove(http::header::UPGRADE).unwrap_or(wanted.protocol);
        origin_answer::clean(&mut head, &context.route.origin);
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
    let mut target = context.route.origin.clone().into_parts();
    target.path_and_query = head.uri.into_parts().path_and_query;
    let mut request = Request::new(body);
    *request.method_mut() = head.method;
    *request.uri_mut() = Uri::from_parts(target).map_err(|_| GatewayError::UnknownOrigin)?;
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
