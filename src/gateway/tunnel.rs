//! Relays the bytes of an upgraded connection, for as long as it lives and talks.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional},
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep_until, timeout},
};

use super::{connection::Connection, parallel::Share};

/// A tunnel about to open.
#[derive(Debug)]
pub(super) struct Tunnel {
    pub(super) visitor: OnUpgrade,
    pub(super) origin: OnUpgrade,
    pub(super) connection: Arc<Connection>,
    /// Held to its end.
    pub(super) permits: (OwnedSemaphorePermit, Option<Share>),
    /// Closed when no byte went either way for this long.
    pub(super) idle: Duration,
    /// Closed after this long in any case.
    pub(super) life: Duration,
}

impl Tunnel {
    /// Relays beside the caller. Ends with either side, its deadlines, or the gateway.
    pub(super) fn open(self) {
        let closing = self.connection.closing.clone();
        let tasks = closing.tasks.clone();
        self.connection.set_upgraded();
        tasks.spawn(async move {
            tokio::select! {
                () = self.relay() => {}
                // A tunnel has no natural end to wait for: its page connects again, elsewhere.
                () = closing.soft.stopped() => {}
                () = closing.hard.cancelled() => {}
            }
        });
    }

    async fn relay(self) {
        let _permits = self.permits;
        let both = async { tokio::try_join!(self.visitor, self.origin) };
        let Ok(Ok((visitor, origin))) = timeout(self.idle, both).await else { return };
        let talk = Arc::new(Talk { began: Instant::now(), last_ms: AtomicU64::new(0) });
        let mut visitor = Heard { io: TokioIo::new(visitor), talk: Arc::clone(&talk) };
        let mut origin = Heard { io: TokioIo::new(origin), talk: Arc::clone(&talk) };
        tokio::select! {
            _ = copy_bidirectional(&mut visitor, &mut origin) => {}
            () = talk.silence(self.idle) => {}
            () = tokio::time::sleep(self.life) => {}
        }
    }
}

/// When a byte last went either way.
#[derive(Debug)]
struct Talk {
    began: Instant,
    last_ms: AtomicU64,
}

impl Talk {
    async fn silence(&self, limit: Duration) {
        loop {
            let last = self.began + Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            if last + limit <= Instant::now() {
                return;
            }
            sleep_until(last + limit).await;
        }
    }
}

/// One side, noting every read.
struct Heard<S> {
    io: S,
    talk: Arc<Talk>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.io).poll_read(cx, buf));
        let after = u64::try_from(self.talk.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.talk.last_ms.store(after, Ordering::Relaxed);
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heard<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
