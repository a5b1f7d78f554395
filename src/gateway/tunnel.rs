//! Relays the bytes of an upgraded connection, for as long as it lives and talks.

mod frames;

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
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf, copy_bidirectional},
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep_until, timeout},
};

use self::frames::Frames;
use super::{connection::Connection, parallel::Share};
use crate::shutdown::Shutdown;

const GOODBYE: Duration = Duration::from_secs(1);

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
                () = self.relay(&closing.soft) => {}
                () = closing.hard.cancelled() => {}
            }
        });
    }

    async fn relay(self, stopping: &Shutdown) {
        let _permits = self.permits;
        let both = async { tokio::try_join!(self.visitor, self.origin) };
        let Ok(Ok((visitor, origin))) = timeout(self.idle, both).await else { return };
        let talk = Arc::new(Talk { began: Instant::now(), last_ms: AtomicU64::new(0) });
        let mut visitor = Heard { io: TokioIo::new(visitor), talk: Arc::clone(&talk), told: Frames::default() };
        let mut origin = Heard { io: TokioIo::new(origin), talk: Arc::clone(&talk), told: Frames::default() };
        tokio::select! {
            _ = copy_bidirectional(&mut visitor, &mut origin) => {}
            () = talk.silence(self.idle) => {}
            () = tokio::time::sleep(self.life) => {}
            // A tunnel has no natural end to wait for: its page is told, and connects again, elsewhere.
            () = stopping.stopped() => visitor.say_goodbye().await,
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
    /// What it was told.
    told: Frames,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Heard<S> {
    /// Tells that the server goes away, unless it is in the middle of telling something else.
    async fn say_goodbye(&mut self) {
        if self.told.is_between() {
            let goodbye = async {
                self.io.write_all(&frames::GOING_AWAY).await?;
                self.io.shutdown().await
            };
            // Whoever does not take four bytes in this time does not listen.
            let _heard = timeout(GOODBYE, goodbye).await;
        }
    }
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
        let written = ready!(Pin::new(&mut self.io).poll_write(cx, buf))?;
        self.told.follow(buf.get(..written).unwrap_or_default());
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
