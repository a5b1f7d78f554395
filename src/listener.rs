//! Listeners for our own pages and APIs: bind with a message that helps, serve an axum router with deadlines, drain.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

use crate::shutdown::Shutdown;

/// A request head that takes longer than this is not worth waiting for, nor is a peer that says nothing for as long.
const HEADER_DEADLINE: Duration = Duration::from_secs(10);
/// How long requests in flight may take to finish once the process was asked to stop.
const DRAIN_DEADLINE: Duration = Duration::from_secs(10);
/// Connections at once: more wait in the kernel's queue.
const MOST_CONNECTIONS: usize = 4096;

/// The address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {}", cure(source))]
pub struct BindError {
    address: SocketAddr,
    source: io::Error,
}

fn cure(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program already does. Stop it, or choose another address (port 0 takes any free one)".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "not permitted. Ports below 1024 need CAP_NET_BIND_SERVICE; choose a higher one".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address. Use 127.0.0.1, 0.0.0.0 or [::]".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Binds a listener.
///
/// # Errors
/// When the address is taken, forbidden or not this machine's; the message says what to do.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).await.map_err(|source| BindError { address, source })
}

/// Serves `router` until `shutdown`, then lets requests in flight finish within a bounded time.
pub async fn serve(listener: TcpListener, router: Router, shutdown: Shutdown) {
    let builder = Arc::new(connection_builder());
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let open = GracefulShutdown::new();
    loop {
        // The semaphore is never closed; were it, there would be nothing left to serve.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _peer)) => stream,
                Err(error) => {
                    // Out of descriptors, mostly: accepting again at once would only spin.
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = shutdown.stopped() => break,
        };
        let connection = serve_connection(&builder, stream, router.clone(), &open, shutdown.clone());
        tokio::spawn(async move {
            connection.await;
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_DEADLINE, open.shutdown()).await.is_err() {
        tracing::warn!(drain_deadline_s = DRAIN_DEADLINE.as_secs(), "requests were cut off by the drain deadline");
    }
}

fn connection_builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_DEADLINE);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(20));
    builder
}

fn serve_connection(
    builder: &Arc<auto::Builder<TokioExecutor>>,
    stream: TcpStream,
    router: Router,
    open: &GracefulShutdown,
    shutdown: Shutdown,
) -> impl Future<Output = ()> + Send + 'static {
    // Answers are written whole; waiting to fill a segment would only add latency.
    let _best_effort = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router);
    let (builder, watcher) = (Arc::clone(builder), open.watcher());
    async move {
        // hyper's own deadline begins with the first byte.
        let mut first = [0];
        tokio::select! {
            said = tokio::time::timeout(HEADER_DEADLINE, stream.peek(&mut first)) => match said {
                Ok(Ok(1)) => {}
                _ => return,
            },
            () = shutdown.stopped() => return,
        }
        // A peer that goes away in mid-request is its own business.
        let _ended = watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned()).await;
    }
}
