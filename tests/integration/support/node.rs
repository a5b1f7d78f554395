//! A node's room without a listener, on tokio's clock: with time paused, minutes of a sale pass at once.

use std::{sync::Arc, time::Duration};

use stanchion::{
    admission::LiveRoom,
    clock::{Clock, SharedClock},
    config::RoomConfig,
    store::{SharedEngine, in_process::InProcess},
    tokens::{Keyring, SigningKey},
};
use tokio::time::Instant;

use super::house;

/// Wall-clock time that follows tokio's.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    pub began: Instant,
    /// How much later than everybody else it is.
    pub skew: Duration,
}

impl TokioClock {
    pub fn now() -> Self {
        Self { began: Instant::now(), skew: Duration::ZERO }
    }
}

impl Clock for TokioClock {
    fn unix_micros(&self) -> u64 {
        let passed = self.began.elapsed() + self.skew;
        1_800_000_000_000_000 + u64::try_from(passed.as_micros()).unwrap()
    }
}

pub fn keyring() -> Keyring {
    Keyring::new(SigningKey::random(), Vec::new())
}

/// A store in this process that tells time by `clock`.
pub fn store(clock: TokioClock) -> SharedEngine {
    Arc::new(InProcess::new(Arc::new(clock)))
}

/// A room on one node; its tasks are not started.
pub async fn node(
    engine: SharedEngine,
    clock: impl Clock + 'static,
    keyring: &Keyring,
    change: impl FnOnce(&mut RoomConfig),
) -> Arc<LiveRoom> {
    let mut config = house::config();
    change(&mut config);
    let clock: SharedClock = Arc::new(clock);
    LiveRoom::open(config, engine, clock, keyring.clone(), true, None).await.unwrap()
}
