//! One visitor's connection: its socket, and what its requests and tunnels have to know of it.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::OwnedSemaphorePermit,
    time::{Sleep, sleep},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Deadlines, Peer, idle::Idle};
use crate::shutdown::Shutdown;

/// How everything that runs on behalf of connections ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Closing {
    /// Finish what you do, begin nothing new.
    pub(super) soft: Shutdown,
    /// Stop now.
    pub(super) hard: CancellationToken,
    /// Every connection and tunnel, so that `serve` can wait for them.
    pub(super) tasks: TaskTracker,
}

/// What is known of one connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: Peer,
    pub(super) closing: Closing,
    /// The number of the core that serves it.
    pub(super) core: usize,
    requests: AtomicU64,
    requests_at_last_check: AtomicU64,
    in_progress: AtomicUsize,
    upgraded: AtomicBool,
    reset: AtomicBool,
    /// Counts the connection for as long as anything of it lives.
    _permit: OwnedSemaphorePermit,
}

/// What a connection has been doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// No complete request head yet.
    Silent,
    /// Nothing since the last look.
    Idle,
    /// Something.
    Busy,
}

impl Connection {
    pub(super) fn new(peer: Peer, closing: Closing, core: usize, permit: OwnedSemaphorePermit) -> Self {
        Self {
            peer,
            closing,
            core,
            requests: AtomicU64::new(0),
            requests_at_last_check: AtomicU64::new(0),
            in_progress: AtomicUsize::new(0),
            upgraded: AtomicBool::new(false),
            reset: AtomicBool::new(false),
            _permit: permit,
        }
    }

    /// Counts a request that is answered already.
    pub(super) fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request until the value is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> InProgress {
        self.count();
        self.in_progress.fetch_add(1, Ordering::Relaxed);
        InProgress(Arc::clone(self))
    }

    pub(super) fn activity_since_last_check(&self) -> Activity {
        let requests = self.requests.load(Ordering::Relaxed);
        let before = self.requests_at_last_check.swap(requests, Ordering::Relaxed);
        match requests {
            0 => Activity::Silent,
            _ if requests == before && self.in_progress.load(Ordering::Relaxed) == 0 => Activity::Idle,
            _ => Activity::Busy,
        }
    }

    /// The connection speaks another protocol now.
    pub(super) fn set_upgraded(&self) {
        self.upgraded.store(true, Ordering::Relaxed);
    }

    /// Ends the connection with a reset rather than a close: the only way to tell an HTTP/1.0 client, for whom a
    /// close is the end of the body, that the body was cut short.
    pub(super) fn set_reset(&self) {
        self.reset.store(true, Ordering::Relaxed);
    }
}

/// One request being answered.
#[derive(Debug)]
pub(super) struct InProgress(Arc<Connection>);

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.in_progress.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The visitor's socket: cuts off a client that takes nothing, and closes without destroying the last answer.
#[derive(Debug)]
pub(super) struct ClientStream {
    stream: TcpStream,
    connection: Arc<Connection>,
    write: Idle,
    linger: Duration,
    lingering: Option<Pin<Box<Sleep>>>,
    saw_end: bool,
}

impl ClientStream {
    pub(super) const fn new(stream: TcpStream, connection: Arc<Connection>, deadlines: &Deadlines) -> Self {
        Self {
            stream,
            connection,
            write: Idle::new(deadlines.client_write),
            linger: deadlines.linger,
            lingering: None,
            saw_end: false,
        }
    }

    fn bounded<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.write.touch();
            return written;
        }
        ready!(self.write.poll_expired(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Reads and forgets until the client closes or the deadline passes.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.lingering.get_or_insert_with(|| Box::pin(sleep(self.linger)));
        let mut scrap = [0_u8; 4_096];
        // A bounded number of reads at a time: a client that sends without end must not hold the thread.
        for _ in 0..16 {
            if deadline.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let mut scrap = ReadBuf::new(&mut scrap);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut scrap)) {
                Ok(()) if !scrap.filled().is_empty() => {}
                _ => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buf));
        self.saw_end |= read.is_err() || buf.filled().len() == before;
        Poll::Ready(read)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.bounded(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            if self.saw_end || self.connection.upgraded.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_linger(cx).map(Ok)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.bounded(cx, written)
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        if self.connection.reset.load(Ordering::Relaxed) {
            // Nothing depends on it when it fails: the client then sees an ordinary close.
            let _ = self.stream.set_zero_linger();
        }
    }
}
