//! Connections to one origin, kept for the next request. Each core has its own, so that nothing is shared and a request stays on
//! the thread where it arrived; the one used last is taken first, because the processor's cache still knows it.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};

use http::{Request, Response, Uri};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::time::{Instant, timeout};
use tower::Service as _;

use super::{
    super::{Limits, request_body::RequestBody},
    Origin,
};

/// The answer of an origin, body unread.
pub(in super::super) type OriginResponse = Response<Incoming>;

type Sender = SendRequest<RequestBody>;

/// Idle connections, the one used last at the back.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Mutex<VecDeque<Idle>>,
    keep_for: Duration,
    most: usize,
}

#[derive(Debug)]
struct Idle {
    sender: Sender,
    since: Instant,
}

/// Most idle connections to one origin on one core.
const MOST_IDLE: usize = 1_024;

impl Pool {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { idle: Mutex::default(), keep_for: limits.deadlines.origin_idle, most: MOST_IDLE }
    }

    /// One that can be used now.
    pub(super) fn take(&self) -> Option<Sender> {
        let mut idle = self.lock();
        let mut at = idle.len();
        while at > 0 {
            at -= 1;
            let known = idle.get(at)?;
            if known.sender.is_closed() || known.since.elapsed() > self.keep_for {
                idle.remove(at);
            } else if known.sender.is_ready() {
                return idle.remove(at).map(|known| known.sender);
            }
            // Else its task has not yet noticed that the last answer ended; it will be ready for another request.
        }
        None
    }

    fn give_back(&self, sender: Sender) {
        if sender.is_closed() {
            return;
        }
        let mut idle = self.lock();
        let since = Instant::now();
        while idle.front().is_some_and(|oldest| since.duration_since(oldest.since) > self.keep_for) {
            idle.pop_front();
        }
        if idle.len() < self.most {
            idle.push_back(Idle { sender, since });
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        // Every change is a single step, so a poisoned list is still whole.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why there is no connection to an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum ConnectError {
    /// Refused, or unreachable, or its name leads nowhere.
    Refused,
    /// Nothing came of it in time.
    TimedOut,
}

/// Opens a connection, name resolution included, under one deadline.
pub(super) async fn dial(origin: &Uri, deadline: Duration) -> Result<Sender, ConnectError> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let stream = match timeout(deadline, connector.call(origin.clone())).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(_)) => return Err(ConnectError::Refused),
        Err(_) => return Err(ConnectError::TimedOut),
    };
    let (sender, connection) = http1::handshake(stream).await.map_err(|_| ConnectError::Refused)?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to the origin ended");
        }
    });
    Ok(sender)
}

/// A connection in use.
#[derive(Debug)]
pub(in super::super) struct Line {
    pub(super) sender: Sender,
    /// Whether it has brought an answer before. A request that dies on one that has was probably sent into a closing
    /// keep-alive connection; on a fresh one the origin failed.
    pub(in super::super) was_used: bool,
    pub(super) lease: Lease,
}

/// One request's claim on its origin: counted until dropped, with the connection to give back when the answer is over.
#[derive(Debug)]
pub(in super::super) struct Lease {
    origin: Arc<Origin>,
    core: usize,
    sender: Option<Sender>,
}

/// Why a request got no answer.
#[derive(Debug)]
pub(in super::super) enum SendError {
    /// It never left: here it is.
    NotSent(Box<Request<RequestBody>>),
    /// The connection had been used and ended before the first byte of the answer.
    DiedInPool,
    /// The origin broke off, or sent what is not HTTP.
    Failed,
}

impl Line {
    /// Sends the request and waits for the head of the answer.
    pub(in super::super) async fn send(
        self,
        request: Request<RequestBody>,
    ) -> Result<(OriginResponse, Lease), SendError> {
        let Self { mut sender, was_used, mut lease } = self;
        match sender.try_send_request(request).await {
            Ok(answer) => {
                lease.origin.health.answered();
                lease.sender = Some(sender);
                Ok((answer, lease))
            }
            Err(mut error) => Err(match error.take_message() {
                Some(request) => SendError::NotSent(Box::new(request)),
                None if was_used && ended(error.error()) => SendError::DiedInPool,
                None => SendError::Failed,
            }),
        }
    }
}

/// Whether all that happened is that the connection ended.
fn ended(error: &hyper::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    let cause = std::iter::successors(std::error::Error::source(error), |error| error.source());
    let mut causes = cause.filter_map(|error| error.downcast_ref::<io::Error>());
    error.is_incomplete_message() || causes.any(|cause| matches!(cause.kind(), ConnectionReset | BrokenPipe))
}

impl Lease {
    pub(super) fn new(origin: Arc<Origin>, core: usize) -> Self {
        origin.in_flight.fetch_add(1, Ordering::Relaxed);
        Self { origin, core, sender: None }
    }

    /// The origin's address.
    pub(in super::super) fn address(&self) -> &Uri {
        &self.origin.address
    }

    /// The answer is read to its end: the next request may have the connection.
    pub(in super::super) fn give_back(&mut self) {
        if let (Some(sender), Some(pool)) = (self.sender.take(), self.origin.pools.get(self.core)) {
            pool.give_back(sender);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.origin.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
