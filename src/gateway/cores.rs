//! A runtime of one thread for each processor core, which visitors' connections are spread over.
//!
//! Nearly all that the gateway does for a request takes microseconds. On a runtime whose threads share their work, waking
//! another thread to share it takes longer than doing it; here a connection stays where it is, with a pool of connections to
//! the origin of its own.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use tokio::{runtime, time::sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long what connections left behind may take after the last one, such as a slot given back to the store.
const LEFTOVERS: Duration = Duration::from_secs(5);

/// The runtimes. They end after the value is dropped, once nothing runs on them.
#[derive(Debug)]
pub(super) struct Cores {
    runtimes: Vec<runtime::Handle>,
    next: AtomicUsize,
    _stop: DropGuard,
}

impl Cores {
    /// Starts `count` threads.
    ///
    /// # Errors
    /// When the system has no thread or no descriptor left.
    pub(super) fn start(count: usize) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let mut runtimes = Vec::with_capacity(count);
        for core in 0..count {
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
            runtimes.push(runtime.handle().clone());
            let stop = stop.clone();
            thread::Builder::new().name(format!("gateway-{core}")).spawn(move || runtime.block_on(run(stop)))?;
        }
        Ok(Self { runtimes, next: AtomicUsize::new(0), _stop: stop.drop_guard() })
    }

    /// Whose turn it is to take a connection: its number, and its runtime; without cores, number 0 and the caller's runtime.
    pub(super) fn next(&self) -> (usize, runtime::Handle) {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let core = turn.checked_rem(self.runtimes.len()).unwrap_or(0);
        (core, self.runtimes.get(core).cloned().unwrap_or_else(runtime::Handle::current))
    }
}

/// Lets the thread's tasks run until they are asked to stop and nothing is left, or long enough.
async fn run(stop: CancellationToken) {
    stop.cancelled().await;
    let left = || runtime::Handle::current().metrics().num_alive_tasks();
    let done = async {
        while left() > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(LEFTOVERS, done).await.is_err() {
        tracing::warn!(tasks = left(), "some work of the gateway was cut off at the end");
    }
}
