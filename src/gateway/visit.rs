//! One connection from its first byte to its last.
//!
//! A connection spends nearly all its life idle, so what HTTP needs (buffers of 16 kB, for one) is set up when a request
//! begins to come and taken down when for a second none did. What idles is a socket and a timer.

mod http1;
mod http2;

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, ready};
use http::{HeaderValue, StatusCode, Version, header::CONNECTION};
use hyper::{
    body::Incoming,
    server::conn::{http1 as hyper1, http2 as hyper2},
};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{
    Body, Gatekeeper, Gateway, GatewayError, Limits, Peer,
    answer_body::AnswerBody,
    client_stream::ClientStream,
    connection::{Closing, Connection},
    crowd::Place,
    doors::Welcome,
    framing::HeadLimits,
    greeting, respond,
};

/// Heads up to [`Limits::head`] are served; somewhat larger ones get a page; beyond this nobody reads them.
pub(super) const fn most_of_head(limits: &Limits) -> usize {
    // hyper takes no smaller buffer.
    if limits.head < 4_096 { 8_192 } else { 2 * limits.head }
}

/// What all connections share.
#[derive(Debug)]
pub(super) struct House<G> {
    pub(super) gateway: Gateway<G>,
    http1: hyper1::Builder,
    http2: hyper2::Builder<TokioExecutor>,
    head: HeadLimits,
}

/// A connection just accepted.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) peer: Peer,
    pub(super) welcome: Welcome,
    pub(super) place: Place,
    pub(super) closing: Closing,
    pub(super) core: usize,
}

/// A client that cannot know that the gateway stops may have sent its next request already: it is answered if it comes
/// within this time, far more than a round trip takes.
const LAST_CALL: Duration = Duration::from_millis(500);

/// The first bytes of HTTP/2 (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

impl<G: Gatekeeper> House<G> {
    /// HTTP/1.1 and HTTP/2 with every bound that hyper offers.
    pub(super) fn new(gateway: Gateway<G>) -> Self {
        let (limits, deadlines) = (&gateway.limits, &gateway.limits.deadlines);
        let most = most_of_head(limits);
        let mut http1 = hyper1::Builder::new();
        // Without a timer hyper ignores its deadlines.
        http1.timer(TokioTimer::new()).header_read_timeout(deadlines.head).max_buf_size(most);
        let mut http2 = hyper2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(100)
            .max_header_list_size(u32::try_from(most).unwrap_or(u32::MAX))
            // A peer that resets what it asked for, over and over, is cut off (CVE-2023-44487), and so is one that provokes us to.
            .max_pending_accept_reset_streams(20)
            .max_local_error_reset_streams(100)
            // A peer that vanished answers no ping.
            .keep_alive_interval(deadlines.connection_idle / 3)
            .keep_alive_timeout(deadlines.connection_idle / 3);
        let head = HeadLimits { bytes: most, fields: limits.headers, target: limits.target };
        Self { gateway, http1, http2, head }
    }
}

/// Serves one connection to its end.
pub(super) async fn attend<G: Gatekeeper>(mut stream: TcpStream, arrival: Arrival, house: Arc<House<G>>) {
    let Arrival { mut peer, welcome, mut place, closing, core } = arrival;
    let (trust, deadlines) = (&house.gateway.trust, &house.gateway.limits.deadlines);
    let rest = place.rest();
    let greeted = async {
        let proxied = if welcome.proxy_protocol {
            greeting::proxied_for(&mut stream, peer, trust, deadlines.handshake).await?
        } else {
            peer
        };
        Ok::<_, greeting::Unwelcome>((proxied, greeting::secured(stream, &welcome, deadlines.handshake).await?))
    };
    let greeted = tokio::select! {
        greeted = Box::pin(greeted) => greeted,
        () = rest.ended() => return,
        () = closing.soft.stopped() => return,
    };
    drop(rest);
    let (proxied, socket) = match greeted {
        Ok(greeted) => greeted,
        Err(why) => return tracing::debug!(%why, "a connection was closed before its first request"),
    };
    peer = proxied;
    if welcome.proxy_protocol && !trust.is_trusted(peer.addr.ip()) && !place.belongs_to(peer.addr.ip()) {
        return;
    }
    peer.tls |= welcome.tls.is_some();
    let connection = Arc::new(Connection::new(peer, trust.is_trusted(peer.addr.ip()), closing, core, place));
    let stream = ClientStream::new(socket, Arc::clone(&connection), deadlines);
    serve(stream, &connection, &house).await;
}

async fn serve<G: Gatekeeper>(mut stream: ClientStream, connection: &Arc<Connection>, house: &Arc<House<G>>) {
    let deadlines = &house.gateway.limits.deadlines;
    let mut patience = deadlines.first_request;
    loop {
        if stream.ahead().is_empty() && !wait(&mut stream, connection, patience).await {
            return stream.leave().await;
        }
        match timeout(deadlines.head, is_http2(&mut stream)).await {
            Ok(Ok(true)) => return Box::pin(http2::serve(stream, connection, house)).await,
            Ok(Ok(false)) => {}
            // The preface broke off or took too long.
            Ok(Err(_)) | Err(_) => return close(stream).await,
        }
        match Box::pin(http1::serve(stream, connection, house)).await {
            http1::Ended::Idle(idle) => stream = *idle,
            http1::Ended::Gone => return,
        }
        patience = deadlines.connection_idle;
    }
}

/// Whether something came before anything else did.
async fn wait(stream: &mut ClientStream, connection: &Connection, patience: Duration) -> bool {
    let rest = connection.place.rest();
    let patience = pin!(sleep(patience));
    tokio::select! {
        more = stream.read_ahead() => more.unwrap_or(false),
        () = patience => false,
        () = rest.ended() => false,
        () = last_call(connection) => false,
        () = connection.closing.hard.cancelled() => false,
    }
}

/// Resolves when the gateway is to stop and whatever was on its way by then has arrived.
async fn last_call(connection: &Connection) {
    connection.closing.soft.stopped().await;
    sleep(LAST_CALL).await;
}

/// Which of the two the client speaks.
async fn is_http2(stream: &mut ClientStream) -> std::io::Result<bool> {
    loop {
        let (ahead, agreed) = (stream.ahead(), stream.agreed_on_http2());
        let common = ahead.len().min(PREFACE.len());
        match (ahead.get(..common), PREFACE.get(..common)) {
            _ if agreed => return Ok(true),
            (one, other) if one != other => return Ok(false),
            _ if common == PREFACE.len() => return Ok(true),
            _ => {}
        }
        if !stream.read_ahead().await? {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Answers what never became a request, and closes.
async fn refuse(mut stream: ClientStream, error: GatewayError) {
    if stream.write_all(&respond::raw(error)).await.is_ok() && stream.flush().await.is_ok() {
        close(stream).await;
    }
}

/// Closes in a way that the client can tell from a failure. Lasts no longer than the deadlines of the stream.
async fn close(mut stream: ClientStream) {
    stream.take_framing();
    let _gone_already = stream.shutdown().await;
}

/// One request. In a box, because hyper moves what it gets about, and the long way's future is large.
fn answer<G: Gatekeeper>(
    house: &Arc<House<G>>,
    request: http::Request<Incoming>,
    connection: &Arc<Connection>,
) -> BoxFuture<'static, Result<http::Response<AnswerBody>, Infallible>> {
    let is_http2 = request.version() == Version::HTTP_2;
    if let Some(mut answer) = house.gateway.answer_at_once(&request, connection) {
        say_if_last(&mut answer, is_http2, connection);
        return Box::pin(ready(Ok(answer.map(|body| AnswerBody::plain(body, None)))));
    }
    let (house, connection) = (Arc::clone(house), Arc::clone(connection));
    // Counted to the end of the answer, so that a connection in use is not taken for an idle one.
    let in_progress = connection.begin();
    Box::pin(async move {
        let mut answer = house.gateway.answer(request, &connection).await;
        say_if_last(&mut answer, is_http2, &connection);
        Ok(answer.map(|body| {
            if is_http2 {
                AnswerBody::watched(body, in_progress, &connection.answers)
            } else {
                AnswerBody::plain(body, Some(in_progress))
            }
        }))
    })
}

/// `Connection: close` while the gateway stops. HTTP/2 says `GOAWAY` instead, and an upgrade has other words.
fn say_if_last(answer: &mut http::Response<Body>, is_http2: bool, connection: &Connection) {
    let is_last = connection.closing.soft.is_stopping() && !is_http2;
    if is_last && answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}
