//! The body of an answer on its way out, and the request that is under way until it has ended.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::Instant;

use super::{Body, BoxError, GatewayError, connection::InProgress};

/// What the connection sends.
#[derive(Debug)]
pub(super) enum AnswerBody {
    /// Over HTTP/1: a client that takes nothing holds its socket up, which has a deadline.
    Plain { body: Body, _in_progress: Option<InProgress> },
    /// Over HTTP/2: a client can take nothing of one answer and all of the others, so that nobody asks for more of it.
    Watched(Arc<Watched>),
}

/// An answer that is taken away when nobody takes it.
#[derive(Debug)]
pub(super) struct Watched(Mutex<Option<Taken>>);

#[derive(Debug)]
struct Taken {
    body: Body,
    _in_progress: InProgress,
    /// Since when it is the client's turn; `None` while it is the origin's.
    offered: Option<Instant>,
}

/// The answers under way on one connection.
#[derive(Debug, Default)]
pub(super) struct Answers(Mutex<Vec<Weak<Watched>>>);

/// Those that have ended are forgotten when so many have gathered: more than may be under way.
const TIDY_AT: usize = 256;

impl AnswerBody {
    pub(super) const fn plain(body: Body, in_progress: Option<InProgress>) -> Self {
        Self::Plain { body, _in_progress: in_progress }
    }

    /// A body that `answers` looks after.
    pub(super) fn watched(body: Body, in_progress: InProgress, answers: &Answers) -> Self {
        let taken = Taken { body, _in_progress: in_progress, offered: Some(Instant::now()) };
        let watched = Arc::new(Watched(Mutex::new(Some(taken))));
        let mut all = answers.lock();
        if all.len() >= TIDY_AT {
            all.retain(|one| one.strong_count() > 0);
        }
        all.push(Arc::downgrade(&watched));
        Self::Watched(watched)
    }
}

impl Answers {
    /// Gives up every answer of which nothing was taken for so long: what it holds at the origin is free again, and of the
    /// stream the client hears when it asks.
    pub(super) fn give_up_untaken(&self, deadline: Duration) {
        let is_untaken = |watched: &Watched| {
            watched.lock().as_ref().and_then(|taken| taken.offered).is_some_and(|since| since.elapsed() >= deadline)
        };
        self.lock().retain(|one| {
            let Some(watched) = one.upgrade() else { return false };
            let given_up = is_untaken(&watched).then(|| watched.lock().take());
            if given_up.is_some() {
                tracing::debug!("an answer was given up because nobody took it");
            }
            given_up.is_none()
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Watched>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, Option<Taken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Plain { body, .. } => Pin::new(body).poll_frame(cx),
            Self::Watched(watched) => {
                let mut taken = watched.lock();
                let Some(taken) = &mut *taken else {
                    return Poll::Ready(Some(Err(GatewayError::ClientTooSlow.into())));
                };
                let piece = Pin::new(&mut taken.body).poll_frame(cx);
                taken.offered = piece.is_ready().then(Instant::now);
                piece
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Plain { body, .. } => body.is_end_stream(),
            Self::Watched(watched) => watched.lock().as_ref().is_some_and(|taken| taken.body.is_end_stream()),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Plain { body, .. } => body.size_hint(),
            Self::Watched(watched) => watched.lock().as_ref().map(|taken| taken.body.size_hint()).unwrap_or_default(),
        }
    }
}
