//! A deadline for the next piece of something.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};

/// Runs out when it was polled without a [`Idle::touch`] for longer than its limit. Costs nothing until first polled.
#[derive(Debug)]
pub(super) struct Idle {
    limit: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
    running: bool,
}

impl Idle {
    pub(super) const fn new(limit: Duration) -> Self {
        Self { limit, sleep: None, running: false }
    }

    /// Something came: the next wait starts afresh.
    pub(super) const fn touch(&mut self) {
        self.running = false;
    }

    /// Whether the wait took too long. Registers for waking.
    pub(super) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep(self.limit)));
        if !self.running {
            self.running = true;
            sleep.as_mut().reset(Instant::now() + self.limit);
        }
        sleep.as_mut().poll(cx)
    }
}
