//! One origin: its pool of connections and its count of requests in flight.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Extensions, Response, Uri};
use hyper::{
    body::Incoming,
    rt::{Read, ReadBufCursor, Write},
};
use hyper_util::{
    client::legacy::{
        self, Error,
        connect::{Connected, Connection, HttpConnector},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use tokio::{net::TcpStream, sync::Semaphore};

use super::{BoxError, Limits, request_body::RequestBody};

/// A pool of connections.
pub(super) type Client = legacy::Client<Connector, RequestBody>;

/// One origin.
#[derive(Debug)]
pub(super) struct Upstream {
    /// One for each core.
    clients: Vec<Client>,
    pub(super) in_flight: Arc<Semaphore>,
}

impl Upstream {
    /// The pool of this core.
    pub(super) fn client(&self, core: usize) -> Option<&Client> {
        self.clients.get(core)
    }

    pub(super) fn new(limits: &Limits) -> Self {
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        let connector = Connector { http, deadline: limits.deadlines.connect };
        let client = || {
            legacy::Client::builder(TokioExecutor::new())
                // Without a timer the pool keeps idle connections for ever, and the origin has long closed them.
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(limits.deadlines.origin_idle)
                .pool_max_idle_per_host(limits.in_flight)
                // Sends again only what never left: the connection closed before taking the request.
                .retry_canceled_requests(true)
                .build(connector.clone())
        };
        let clients = (0..limits.cores.max(1)).map(|_| client()).collect();
        Self { clients, in_flight: Arc::new(Semaphore::new(limits.in_flight)) }
    }
}

/// Whether a connection has brought an answer before. A request that dies on one that has was probably sent into a
/// closing keep-alive connection; on a fresh one the origin failed.
#[derive(Debug, Clone, Default)]
struct Served(Arc<AtomicBool>);

/// Remembers that the connection of `answer` works.
pub(super) fn note_served<B>(answer: &Response<B>) {
    if let Some(served) = answer.extensions().get::<Served>() {
        served.0.store(true, Ordering::Relaxed);
    }
}

/// Whether a kept-alive connection ended before the first byte of the answer.
pub(super) fn died_in_the_pool(error: &Error) -> bool {
    let mut extras = Extensions::new();
    if let Some(connected) = error.connect_info() {
        connected.get_extras(&mut extras);
    }
    let reused = extras.get::<Served>().is_some_and(|served| served.0.load(Ordering::Relaxed));
    reused && cause::<hyper::Error>(error).is_some_and(|cause| cause.is_incomplete_message() || has_reset(cause))
}

/// Whether no connection came about in time, as opposed to being refused.
pub(super) fn connect_timed_out(error: &Error) -> bool {
    cause::<io::Error>(error).is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut)
}

fn has_reset(error: &hyper::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    cause::<io::Error>(error).is_some_and(|cause| matches!(cause.kind(), ConnectionReset | BrokenPipe))
}

fn cause<'a, E: std::error::Error + 'static>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a E> {
    std::iter::successors(error.source(), |error| error.source()).find_map(|error| error.downcast_ref())
}

/// Opens connections to the origin, name resolution included, under one deadline.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    http: HttpConnector,
    deadline: Duration,
}

impl tower::Service<Uri> for Connector {
    type Response = Wire;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Wire, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, origin: Uri) -> Self::Future {
        let (connecting, deadline) = (self.http.call(origin), self.deadline);
        Box::pin(async move {
            let connected = tokio::time::timeout(deadline, connecting).await;
            let stream = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            Ok(Wire { stream, served: Served::default() })
        })
    }
}

/// A connection to the origin.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TokioIo<TcpStream>,
    served: Served,
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(self.served.clone())
    }
}

impl Read for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl Write for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }
}

/// The answer of an origin, body unread.
pub(super) type OriginResponse = Response<Incoming>;
