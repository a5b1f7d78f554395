//! Time as an argument: everything that asks for the time is handed a [`Clock`].

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A source of wall-clock time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Microseconds since the Unix epoch.
    fn unix_micros(&self) -> u64;

    /// Milliseconds since the Unix epoch.
    fn unix_millis(&self) -> u64 {
        self.unix_micros() / 1_000
    }

    /// Whole seconds since the Unix epoch, rounded down, as JWT's `NumericDate` (RFC 7519 §2) wants them.
    fn unix_seconds(&self) -> u64 {
        self.unix_micros() / 1_000_000
    }
}

/// A clock that can be shared between tasks.
pub type SharedClock = Arc<dyn Clock>;

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn unix_micros(&self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX)
    }
}

/// A clock that stands still until told otherwise: for tests and for simulations on virtual time.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock standing at `unix_micros`.
    pub fn at(unix_micros: u64) -> Self {
        Self(Arc::new(AtomicU64::new(unix_micros)))
    }

    /// Moves the clock to `unix_micros`, backwards too.
    pub fn set(&self, unix_micros: u64) {
        self.0.store(unix_micros, Ordering::SeqCst);
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn unix_micros(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
