//! A request's body on its way in: bounded in size and in time, and observable by whoever waits for the answer.

mod pace;

use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;

pub(super) use self::pace::Pace;
use super::{
    BoxError, GatewayError,
    connection::{Connection, InProgress},
    forward_headers,
};

/// A body that was asked for. Ends with a [`GatewayError`] when it grows too large, stalls or breaks off.
#[derive(Debug)]
pub(super) struct RequestBody(Option<Live>);

#[derive(Debug)]
struct Live {
    inner: Incoming,
    left: u64,
    pace: Pace,
    upload: Arc<Upload>,
    /// Read already, and not yet asked for.
    gathered: VecDeque<Frame<Bytes>>,
    connection: Arc<Connection>,
    /// The connection has not come to rest before this has ended, even if the answer has.
    _in_progress: InProgress,
}

/// How a request's body is getting on.
#[derive(Debug)]
pub(super) struct Upload {
    began: Instant,
    moved_after_ms: AtomicU64,
    on_client: AtomicBool,
    failure: OnceLock<GatewayError>,
}

impl RequestBody {
    /// No body, nothing to watch.
    pub(super) const fn empty() -> Self {
        Self(None)
    }

    /// At most `max_bytes` of `inner`, as fast as `pace` wants. A declared length beyond that is refused at once.
    ///
    /// # Errors
    /// [`GatewayError::BodyTooLarge`].
    pub(super) fn new(
        inner: Incoming,
        max_bytes: u64,
        pace: Pace,
        connection: &Arc<Connection>,
    ) -> Result<(Self, Option<Arc<Upload>>), GatewayError> {
        if inner.size_hint().lower() > max_bytes {
            return Err(GatewayError::BodyTooLarge);
        }
        if inner.is_end_stream() {
            return Ok((Self::empty(), None));
        }
        let upload = Arc::new(Upload::new());
        let live = Live {
            inner,
            left: max_bytes,
            pace,
            upload: Arc::clone(&upload),
            gathered: VecDeque::new(),
            connection: Arc::clone(connection),
            _in_progress: connection.hold(),
        };
        Ok((Self(Some(live)), Some(upload)))
    }

    /// Reads a body ahead that says to have no more than `most` bytes, so that it takes nobody's place while it is on its way.
    /// Whether it is here in full.
    ///
    /// # Errors
    /// Why it broke off.
    pub(super) async fn gather(&mut self, most: u64) -> Result<bool, GatewayError> {
        let Some(live) = &mut self.0 else { return Ok(true) };
        // One of unknown length may be a conversation.
        if live.inner.size_hint().exact().is_none_or(|length| length > most) {
            return Ok(false);
        }
        while !live.inner.is_end_stream() {
            let Some(piece) = poll_fn(|cx| live.poll_piece(cx)).await else { break };
            live.gathered.push_back(piece.map_err(|_| live.upload.failure().unwrap_or(GatewayError::ClientGone))?);
        }
        Ok(true)
    }
}

impl Upload {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            moved_after_ms: AtomicU64::new(0),
            on_client: AtomicBool::new(false),
            failure: OnceLock::new(),
        }
    }

    /// Why the body ended early, if it did: the reason behind whatever error the origin's client reports.
    pub(super) fn failure(&self) -> Option<GatewayError> {
        self.failure.get().copied()
    }

    /// Resolves when the origin has let the request wait for `limit`: neither took a piece of the body nor answered.
    /// A wait for the client does not count, it has its own deadline.
    pub(super) async fn origin_stalls(&self, limit: Duration) {
        let mut due = Instant::now() + limit;
        loop {
            tokio::time::sleep_until(due).await;
            let now = Instant::now();
            let moved = self.began + Duration::from_millis(self.moved_after_ms.load(Ordering::Relaxed));
            if self.on_client.load(Ordering::Relaxed) {
                due = now + limit;
            } else if moved + limit <= now {
                return;
            } else {
                due = moved + limit;
            }
        }
    }

    fn moved(&self) {
        let after = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved_after_ms.store(after, Ordering::Relaxed);
        self.on_client.store(false, Ordering::Relaxed);
    }

    fn fail(&self, error: GatewayError) -> BoxError {
        self.moved();
        (*self.failure.get_or_init(|| error)).into()
    }
}

impl Live {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Poll::Ready(piece) = Pin::new(&mut self.inner).poll_frame(cx) else {
            self.upload.on_client.store(true, Ordering::Relaxed);
            ready!(self.pace.poll_expired(cx));
            return Poll::Ready(Some(Err(self.upload.fail(GatewayError::ClientTooSlow))));
        };
        self.pace.came(piece.as_ref().and_then(|piece| piece.as_ref().ok()));
        self.upload.moved();
        Poll::Ready(piece.map(|piece| match piece {
            Ok(frame) => self.admit(frame),
            Err(_) if self.connection.is_refused() => {
                Err(self.upload.fail(GatewayError::BadRequest("the body is malformed, or its trailers are")))
            }
            Err(_) => Err(self.upload.fail(GatewayError::ClientGone)),
        }))
    }

    fn admit(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, BoxError> {
        match frame.into_data() {
            Ok(data) => {
                let more = u64::try_from(data.len()).unwrap_or(u64::MAX);
                self.left = self.left.checked_sub(more).ok_or_else(|| self.upload.fail(GatewayError::BodyTooLarge))?;
                Ok(Frame::data(data))
            }
            // Some origins merge trailers into the header, so what may not be claimed there may not be claimed here.
            Err(frame) => Ok(match frame.into_trailers() {
                Ok(mut trailers) => {
                    forward_headers::strip_reserved(&mut trailers);
                    Frame::trailers(trailers)
                }
                Err(frame) => frame,
            }),
        }
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Some(live) => match live.gathered.pop_front() {
                Some(piece) => {
                    live.upload.moved();
                    Poll::Ready(Some(Ok(piece)))
                }
                None => live.poll_piece(cx),
            },
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|live| live.gathered.is_empty() && live.inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let Some(live) = &self.0 else { return SizeHint::with_exact(0) };
        let gathered: usize = live.gathered.iter().filter_map(Frame::data_ref).map(Bytes::len).sum();
        let (gathered, left) = (u64::try_from(gathered).unwrap_or(u64::MAX), live.inner.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(gathered.saturating_add(left.lower()));
        if let Some(upper) = left.upper() {
            hint.set_upper(gathered.saturating_add(upper));
        }
        hint
    }
}
