//! The visitor's socket as HTTP sees it: cuts off a client that takes nothing, lets through only requests that everybody
//! reads alike, and closes without destroying the last answer.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::{
    Deadlines,
    connection::Connection,
    framing::{Framing, Refusal},
    idle::Idle,
    socket::Socket,
};

/// Read at once from a connection that had been idle: most heads fit.
const FIRST_READ: usize = 4_096;

/// See the module.
#[derive(Debug)]
pub(super) struct ClientStream {
    socket: Socket,
    connection: Arc<Connection>,
    /// Read already, and not yet looked at.
    ahead: Vec<u8>,
    framing: Option<Box<Framing>>,
    /// Let through, and not yet taken.
    passed: Vec<u8>,
    /// The beginning of a head, or what was refused.
    held: Vec<u8>,
    refusal: Option<Refusal>,
    write: Idle,
    linger: Duration,
    lingering: Option<Pin<Box<Sleep>>>,
    saw_end: bool,
}

impl ClientStream {
    pub(super) const fn new(socket: Socket, connection: Arc<Connection>, deadlines: &Deadlines) -> Self {
        Self {
            socket,
            connection,
            ahead: Vec::new(),
            framing: None,
            passed: Vec::new(),
            held: Vec::new(),
            refusal: None,
            write: Idle::new(deadlines.client_write),
            linger: deadlines.linger,
            lingering: None,
            saw_end: false,
        }
    }

    /// Whether both sides agreed on HTTP/2 in the handshake.
    pub(super) fn agreed_on_http2(&self) -> bool {
        self.socket.agreed_on_http2()
    }

    /// What was read ahead.
    pub(super) fn ahead(&self) -> &[u8] {
        &self.ahead
    }

    /// Puts bytes back in front of those that are still to be read.
    pub(super) fn put_back(&mut self, bytes: &[u8]) {
        self.ahead.splice(..0, bytes.iter().copied());
    }

    /// Reads some more ahead; false at the end.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) async fn read_ahead(&mut self) -> io::Result<bool> {
        std::future::poll_fn(|cx| {
            // Nothing is set aside for a connection that says nothing.
            let mut space = [0; FIRST_READ];
            let mut space = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut space))?;
            self.saw_end |= space.filled().is_empty();
            self.ahead.extend_from_slice(space.filled());
            Poll::Ready(Ok(!self.saw_end))
        })
        .await
    }

    /// From now on only well-framed HTTP/1 gets through.
    pub(super) fn watch_framing(&mut self, framing: Framing) {
        self.framing = Some(Box::new(framing));
    }

    /// Takes the watch away, which an idle connection does not need.
    pub(super) fn take_framing(&mut self) {
        self.framing = None;
    }

    /// Closes without waiting for what the client may still say: nothing of it was answered.
    pub(super) async fn leave(mut self) {
        self.saw_end = true;
        let _gone_already = tokio::io::AsyncWriteExt::shutdown(&mut self).await;
    }

    /// Whether a head has begun and is not complete.
    pub(super) fn is_amid_head(&self) -> bool {
        !self.held.is_empty()
    }

    /// Why the connection is not read any further. From now on it can be closed.
    pub(super) fn take_refusal(&mut self) -> Option<Refusal> {
        self.refusal.take()
    }

    /// Closes without destroying what was said last.
    pub(super) async fn part(mut self) {
        let _gone_already = tokio::io::AsyncWriteExt::shutdown(&mut self).await;
    }

    /// Looks at what was just read, and leaves in `buf` what may be taken.
    fn check(&mut self, buf: &mut ReadBuf<'_>, before: usize) {
        if self.connection.is_upgraded() {
            self.framing = None;
        }
        let Some(framing) = &mut self.framing else { return };
        let new = buf.filled().get(before..).unwrap_or_default();
        let (sound, refusal) = framing.check(new);
        if sound < new.len() || !self.held.is_empty() {
            let (sound, rest) = new.split_at(sound);
            if !sound.is_empty() && !self.held.is_empty() {
                self.passed = std::mem::take(&mut self.held);
                self.passed.extend_from_slice(sound);
                self.held = rest.to_vec();
                buf.set_filled(before);
                self.take_passed(buf);
            } else {
                self.held.extend_from_slice(rest);
                let taken = before + sound.len();
                buf.set_filled(taken);
            }
        }
        if refusal.is_some() {
            self.refusal = refusal;
            self.connection.set_refused();
        }
        self.connection.set_amid_head(!self.held.is_empty());
    }

    fn take_passed(&mut self, buf: &mut ReadBuf<'_>) {
        take(&mut self.passed, buf);
    }

    /// What a reader gets where something was refused.
    fn poll_refused(&mut self) -> Poll<io::Result<()>> {
        let in_body = self.refusal.as_ref().is_some_and(|refusal| refusal.in_body);
        if in_body || !self.connection.is_answering() {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        // The answer to the request before may leave in peace. Whoever serves the connection looks after it by the clock.
        Poll::Pending
    }

    fn poll_more(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            take(&mut self.ahead, buf);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.socket).poll_read(cx, buf));
        self.saw_end |= read.is_err() || buf.filled().len() == before;
        Poll::Ready(read)
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
            match ready!(Pin::new(&mut self.socket).poll_read(cx, &mut scrap)) {
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
        if !self.passed.is_empty() {
            self.take_passed(buf);
            return Poll::Ready(Ok(()));
        }
        if self.connection.is_upgraded() && !self.held.is_empty() {
            // What was taken for a head is what the client says in the other protocol.
            take(&mut self.held, buf);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        // A bounded number of times: a head that comes in crumbs must not hold the thread.
        for _ in 0..16 {
            if self.refusal.is_some() && !self.connection.is_upgraded() {
                return self.poll_refused();
            }
            ready!(self.poll_more(cx, buf))?;
            self.check(buf, before);
            if self.saw_end || buf.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Moves as many bytes as fit; gives the memory back with the last.
fn take(from: &mut Vec<u8>, buf: &mut ReadBuf<'_>) {
    let fits = from.len().min(buf.remaining());
    buf.put_slice(from.get(..fits).unwrap_or_default());
    from.drain(..fits);
    if from.is_empty() {
        *from = Vec::new();
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.connection.set_unflushed(true);
        let written = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.bounded(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(cx);
        if flushed.is_ready() {
            self.connection.set_unflushed(false);
            return flushed;
        }
        self.bounded(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.refusal.is_some() {
            // Whoever serves the connection has something to say first.
            return Poll::Ready(Ok(()));
        }
        if self.lingering.is_none() {
            let closed = Pin::new(&mut self.socket).poll_shutdown(cx);
            ready!(self.bounded(cx, closed))?;
            if self.saw_end || self.connection.is_upgraded() {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_linger(cx).map(Ok)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.connection.set_unflushed(true);
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        self.bounded(cx, written)
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        if self.connection.is_reset() {
            // Nothing depends on it when it fails: the client then sees an ordinary close.
            let _ = self.socket.tcp().set_zero_linger();
        }
    }
}
