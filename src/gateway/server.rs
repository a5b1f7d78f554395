//! Accepts the visitors' connections, serves HTTP/1 and HTTP/2 on them under deadlines, and drains them at the end.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, ready};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Body, Gatekeeper, Gateway, Limits, Peer,
    connection::{Activity, ClientStream, Closing, Connection},
    cores::Cores,
};
use crate::shutdown::Shutdown;

/// More than [`Limits::head`], so that a head somewhat too large is answered with a page; beyond this hyper answers
/// 431 itself.
const READ_BUFFER: usize = 32 * 1_024;
/// After a failed accept, usually for want of file descriptors, which only time can bring back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves `gateway` on `listener` until `shutdown` asks to stop, then drains: nothing is accepted any more, idle
/// connections are closed at once, running requests end with `Connection: close`, and what still runs after
/// [`super::Deadlines::drain`] is cut off. Returns when nothing runs.
pub async fn serve<G: Gatekeeper>(listener: TcpListener, gateway: Gateway<G>, shutdown: Shutdown) {
    let gateway = Arc::new(gateway);
    let protocol = Arc::new(protocol(&gateway.limits));
    let places = Arc::new(Semaphore::new(gateway.limits.connections));
    let Ok(cores) =
        Cores::start(gateway.limits.cores).inspect_err(|error| tracing::error!(%error, "no threads to serve on"))
    else {
        return shutdown.stop();
    };
    let watched = Arc::clone(&gateway);
    let _health_checks = AbortOnDropHandle::new(tokio::spawn(async move { watched.proxy.watch().await }));
    let closing = Closing { soft: shutdown.clone(), ..Closing::default() };
    loop {
        let (stream, peer, place) = tokio::select! {
            () = shutdown.stopped() => break,
            accepted = accept(&listener, &places) => match accepted {
                Some(accepted) => accepted,
                None => continue,
            },
        };
        let (core, runtime) = cores.next();
        let connection = Arc::new(Connection::new(peer, closing.clone(), core, place));
        let (gateway, protocol) = (Arc::clone(&gateway), Arc::clone(&protocol));
        let serving = async move {
            // Readiness is told to the runtime that a socket was made on.
            match TcpStream::from_std(stream) {
                Ok(stream) => drive(stream, connection, gateway, protocol).await,
                Err(error) => tracing::warn!(%error, "a connection could not be served"),
            }
        };
        closing.tasks.spawn_on(serving, &runtime);
    }
    drop(listener);
    closing.tasks.close();
    if timeout(gateway.limits.deadlines.drain, closing.tasks.wait()).await.is_err() {
        tracing::warn!(left = closing.tasks.len(), "connections were cut off at the drain deadline");
        closing.hard.cancel();
        closing.tasks.wait().await;
    }
}

/// HTTP/1.1 and HTTP/2 with every bound that hyper offers.
fn protocol(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let deadlines = &limits.deadlines;
    let mut protocol = auto::Builder::new(TokioExecutor::new());
    protocol
        .http1()
        // Without a timer hyper ignores its deadlines.
        .timer(TokioTimer::new())
        .header_read_timeout(deadlines.head)
        .max_buf_size(READ_BUFFER);
    protocol
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(100)
        .max_header_list_size(u32::try_from(READ_BUFFER).unwrap_or(u32::MAX))
        // A peer that vanished answers no ping.
        .keep_alive_interval(deadlines.connection_idle / 3)
        .keep_alive_timeout(deadlines.connection_idle / 3);
    protocol
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(std::net::TcpStream, Peer, OwnedSemaphorePermit)> {
    // The place first: a connection that cannot be served waits in the backlog, where it costs us nothing.
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, addr)) => {
            // Fails only on a socket that is gone already, which the first read will tell.
            let _ = stream.set_nodelay(true);
            stream.into_std().ok().map(|stream| (stream, Peer::new(addr, false), place))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// One request. In a box, because hyper moves what it gets about, and the long way's future is large.
fn answer<G: Gatekeeper>(
    gateway: &Arc<Gateway<G>>,
    request: http::Request<Incoming>,
    connection: &Arc<Connection>,
) -> BoxFuture<'static, Result<http::Response<Body>, Infallible>> {
    if let Some(answer) = gateway.answer_at_once(&request, connection) {
        return Box::pin(ready(Ok(answer)));
    }
    let (gateway, connection) = (Arc::clone(gateway), Arc::clone(connection));
    Box::pin(async move { Ok(gateway.answer(request, &connection).await) })
}

/// Serves one connection to its end.
async fn drive<G: Gatekeeper>(
    stream: TcpStream,
    connection: Arc<Connection>,
    gateway: Arc<Gateway<G>>,
    protocol: Arc<auto::Builder<TokioExecutor>>,
) {
    let deadlines = gateway.limits.deadlines.clone();
    let closing = connection.closing.clone();
    let stream = TokioIo::new(ClientStream::new(stream, Arc::clone(&connection), &deadlines));
    let watched = Arc::clone(&connection);
    let service = service_fn(move |request| answer(&gateway, request, &connection));
    let mut serving = pin!(protocol.serve_connection_with_upgrades(stream, service));
    let mut check = pin!(sleep(deadlines.first_request));
    let mut draining = false;
    loop {
        tokio::select! {
            // Errors are the client's affair: it broke off, or sent what is not HTTP and was told so.
            _ = serving.as_mut() => return,
            () = closing.hard.cancelled() => return,
            () = closing.soft.stopped(), if !draining => {
                draining = true;
                serving.as_mut().graceful_shutdown();
            }
            // hyper has no deadline for a client that says nothing at all, nor for an idle HTTP/2 connection.
            () = check.as_mut() => {
                match watched.activity_since_last_check() {
                    Activity::Silent => return,
                    Activity::Idle if draining => return,
                    Activity::Idle => {
                        draining = true;
                        serving.as_mut().graceful_shutdown();
                    }
                    Activity::Busy => {}
                }
                check.as_mut().reset(Instant::now() + deadlines.connection_idle);
            }
        }
    }
}
