//! Decides charges when their time has come.

use std::{sync::Arc, time::Duration};

use super::Provider;
use crate::shutdown::Shutdown;

/// Most charges that are decided in one change of the book.
const BATCH: usize = 256;
/// With nothing to do, look again after this long anyway: the wall clock may have been set.
const IDLE: Duration = Duration::from_secs(10);

pub(super) async fn run(provider: Arc<Provider>, shutdown: Shutdown) {
    while !shutdown.is_stopping() {
        let now_ms = provider.clock.unix_millis();
        let settled = provider.clerk.ask(move |book| book.settle_due(now_ms, BATCH)).await;
        let Ok((settled, next_ms)) = settled else { return };
        if settled > 0 {
            provider.event_made.notify_one();
        }
        tokio::select! {
            () = shutdown.stopped() => {}
            () = provider.charge_made.notified() => {}
            () = tokio::time::sleep(until(next_ms, now_ms)) => {}
        }
    }
}

/// How long to sleep until `next_ms`.
pub(super) fn until(next_ms: Option<u64>, now_ms: u64) -> Duration {
    next_ms.map_or(IDLE, |next_ms| Duration::from_millis(next_ms.saturating_sub(now_ms)).min(IDLE))
}
