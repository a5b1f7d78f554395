//! How much is asked of the shop at once. Requests that write have places of their own, so that a crowd that looks at
//! pictures keeps nobody from paying.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::super::{GatewayError, Limits, gate::path::is_under};
use crate::config::Origins;

/// A place at the shop, held to the end of the answer's body; and another, where the request is still on its way.
pub(in super::super) type Permit = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

/// The places at one shop.
#[derive(Debug)]
pub(in super::super) struct Bulkheads {
    reads: Bulkhead,
    writes: Bulkhead,
    /// Half as many as there are places for writing: those who send slowly leave the other half to those who are done.
    uploads: Bulkhead,
    /// Path prefixes that go without.
    optional: Vec<String>,
}

#[derive(Debug)]
struct Bulkhead {
    places: Arc<Semaphore>,
    /// With no more free than this, what is optional is refused.
    reserve: usize,
    waiting: AtomicUsize,
    most_waiting: usize,
}

/// One who waits, until dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Bulkheads {
    pub(super) fn new(origins: &Origins, limits: &Limits) -> Self {
        let bulkhead = |places: usize| Bulkhead {
            places: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
            reserve: places / 4,
            waiting: AtomicUsize::new(0),
            most_waiting: limits.waiting,
        };
        Self {
            reads: bulkhead(origins.reads_in_flight),
            writes: bulkhead(origins.writes_in_flight),
            uploads: bulkhead((origins.writes_in_flight / 2).max(1)),
            optional: origins.optional.clone(),
        }
    }

    /// A place for a request of this method and path, waiting no longer than `patience`. `is_whole` tells that all of it is here.
    ///
    /// # Errors
    /// [`GatewayError::Busy`], and [`GatewayError::Shed`] for what the shop can do without while it has much to do.
    pub(in super::super) async fn enter(
        &self,
        method: &http::Method,
        path: &str,
        is_whole: bool,
        patience: Duration,
    ) -> Result<Permit, GatewayError> {
        let bulkhead = if method.is_safe() { &self.reads } else { &self.writes };
        if !self.optional.is_empty()
            && bulkhead.places.available_permits() <= bulkhead.reserve
            && self.optional.iter().any(|prefix| is_under(path, prefix))
        {
            return Err(GatewayError::Shed);
        }
        let upload = if is_whole { None } else { Some(self.uploads.enter(patience).await?) };
        Ok((bulkhead.enter(patience).await?, upload))
    }
}

impl Bulkhead {
    async fn enter(&self, patience: Duration) -> Result<OwnedSemaphorePermit, GatewayError> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        let others = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if others >= self.most_waiting {
            return Err(GatewayError::Busy);
        }
        let place = timeout(patience, Arc::clone(&self.places).acquire_owned()).await;
        place.ok().and_then(Result::ok).ok_or(GatewayError::Busy)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
