//! The shop of one room: which of its origins is asked, and how much is asked of it at once.

mod bulkhead;
mod health;
mod pool;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{HeaderValue, Uri, uri::PathAndQuery};
use tokio::time::Instant;

pub(super) use self::{
    bulkhead::{Bulkheads, Permit},
    pool::{ConnectError, Lease, Line, OriginResponse, SendError},
};
use self::{health::Health, pool::Pool};
use super::{GatewayError, Limits};
use crate::config::Origins;

/// The origins of one room.
#[derive(Debug)]
pub(super) struct Upstream {
    origins: Vec<Arc<Origin>>,
    pub(super) bulkheads: Bulkheads,
    /// Where to begin to look, so that equals take turns.
    turn: AtomicUsize,
    health_path: Option<PathAndQuery>,
}

/// One origin.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) address: Uri,
    /// `Host` for a request that has none.
    pub(super) host: HeaderValue,
    /// One for each core.
    pools: Vec<Pool>,
    pub(super) health: Health,
    in_flight: AtomicUsize,
}

impl Upstream {
    pub(super) fn new(origins: &Origins, limits: &Limits) -> Option<Self> {
        let began = Instant::now();
        let origin = |address: &Uri| {
            Some(Arc::new(Origin {
                host: HeaderValue::from_str(address.authority()?.as_str()).ok()?,
                address: address.clone(),
                pools: (0..limits.cores.max(1)).map(|_| Pool::new(limits)).collect(),
                health: Health::new(began),
                in_flight: AtomicUsize::new(0),
            }))
        };
        Some(Self {
            origins: origins.addresses.iter().map(origin).collect::<Option<_>>()?,
            bulkheads: Bulkheads::new(origins, limits),
            turn: AtomicUsize::new(0),
            health_path: origins.health_path.clone(),
        })
    }

    /// The well origin with the least to do, or any if none is well: then trying beats refusing. Not `but`, where there is
    /// another.
    pub(super) fn choose(&self, but: Option<&Arc<Origin>>) -> Option<&Arc<Origin>> {
        if let [only] = self.origins.as_slice() {
            return Some(only);
        }
        let (turn, now) = (self.turn.fetch_add(1, Ordering::Relaxed), Instant::now());
        let in_turn =
            (0..self.origins.len()).filter_map(|at| self.origins.get((turn.wrapping_add(at)) % self.origins.len()));
        in_turn.min_by_key(|origin| {
            let was_tried = but.is_some_and(|but| Arc::ptr_eq(but, origin));
            (was_tried, !origin.health.is_well(now), origin.in_flight.load(Ordering::Relaxed))
        })
    }

    /// Whether there is another one to try.
    pub(super) fn has_others(&self) -> bool {
        self.origins.len() > 1
    }

    /// Asks every origin how it is, for ever; not at all without a health check.
    pub(super) async fn watch(&self) {
        let Some(path) = self.health_path.as_ref().map(PathAndQuery::as_str) else { return };
        let probes = self.origins.iter().map(|origin| health::probe(&origin.health, &origin.address, path));
        futures_util::future::join_all(probes).await;
    }
}

impl Origin {
    /// A connection to it, from the pool of this core or new.
    ///
    /// # Errors
    /// When none comes about in time.
    pub(super) async fn connect(self: &Arc<Self>, core: usize, deadline: Duration) -> Result<Line, ConnectError> {
        let pool = self.pools.get(core).ok_or(ConnectError::Refused)?;
        let lease = Lease::new(Arc::clone(self), core);
        match pool.take() {
            Some(sender) => Ok(Line { sender, was_used: true, lease }),
            None => Ok(Line { sender: pool::dial(&self.address, deadline).await?, was_used: false, lease }),
        }
    }
}

impl From<ConnectError> for GatewayError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Refused => Self::OriginUnreachable,
            ConnectError::TimedOut => Self::OriginTimeout,
        }
    }
}
