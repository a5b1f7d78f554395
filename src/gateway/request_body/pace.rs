//! How fast a request's body has to come.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::Frame;
use tokio::time::{Instant, Sleep, sleep};

use crate::gateway::Limits;

/// Bounds the wait for the next piece, and all waits together: a body that comes byte by byte is none. Only waiting for the
/// client counts, not what the origin takes to accept the bytes.
#[derive(Debug)]
pub(in crate::gateway) struct Pace {
    idle: Duration,
    grace: Duration,
    /// Bytes per second; 0 for any.
    rate: u64,
    bytes: u64,
    waited: Duration,
    waiting_since: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    pub(in crate::gateway) fn new(limits: &Limits) -> Self {
        Self {
            idle: limits.deadlines.body_idle,
            grace: limits.deadlines.body_grace,
            rate: limits.body_rate,
            bytes: 0,
            waited: Duration::ZERO,
            waiting_since: None,
            sleep: None,
        }
    }

    /// A piece came; or the end, or an error.
    pub(super) fn came(&mut self, piece: Option<&Frame<Bytes>>) {
        if let Some(since) = self.waiting_since.take() {
            self.waited += since.elapsed();
        }
        if let Some(data) = piece.and_then(Frame::data_ref) {
            self.bytes = self.bytes.saturating_add(u64::try_from(data.len()).unwrap_or(u64::MAX));
        }
    }

    /// Whether the client took too long. Registers for waking.
    pub(super) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.waiting_since.is_none() {
            let now = Instant::now();
            self.waiting_since = Some(now);
            let until = now + self.patience();
            match &mut self.sleep {
                Some(sleep) => sleep.as_mut().reset(until),
                None => self.sleep = Some(Box::pin(sleep(until - now))),
            }
        }
        match &mut self.sleep {
            Some(sleep) => {
                ready!(sleep.as_mut().poll(cx));
                Poll::Ready(())
            }
            None => Poll::Pending,
        }
    }

    fn patience(&self) -> Duration {
        let Some(seconds) = self.bytes.checked_div(self.rate) else { return self.idle };
        let allowed = self.grace.saturating_add(Duration::from_secs(seconds));
        self.idle.min(allowed.saturating_sub(self.waited))
    }
}
