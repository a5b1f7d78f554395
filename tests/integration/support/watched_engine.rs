//! An engine between a node and its store that counts, holds and fails the runs of one script.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use futures_util::future::BoxFuture;
use stanchion::store::{Arg, Engine, Script, SharedEngine, StoreError, Value};
use tokio::sync::{Semaphore, watch};

use super::eventually::eventually;

/// Watches the script of that name, whatever its number of keys; the others pass unseen.
pub struct WatchedEngine {
    store: SharedEngine,
    script: &'static str,
    /// How many arguments each run had that reached here.
    runs: Mutex<Vec<usize>>,
    /// How many runs may go on.
    turnstile: Semaphore,
    mood: watch::Sender<Mood>,
}

/// What becomes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// It goes on to the store.
    Pass,
    /// It waits until [`WatchedEngine::let_go`].
    Hold,
    /// The store is away.
    Away,
    /// It never ends.
    Hang,
    /// Whoever runs it dies.
    Panic,
}

impl WatchedEngine {
    pub fn before(store: SharedEngine, script: &'static str) -> Arc<Self> {
        let mood = watch::Sender::new(Mood::Pass);
        Arc::new(Self { store, script, runs: Mutex::default(), turnstile: Semaphore::new(0), mood })
    }

    pub fn set(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    /// Lets this many held runs go on.
    pub fn let_go(&self, runs: usize) {
        self.turnstile.add_permits(runs);
    }

    /// The number of arguments of each run so far, the epoch not counted.
    pub fn runs(&self) -> Vec<usize> {
        self.runs.lock().unwrap().clone()
    }

    pub async fn until_run(&self, runs: usize) {
        eventually("a run", async || (self.runs().len() >= runs).then_some(())).await;
    }
}

impl Engine for WatchedEngine {
    fn run<'a>(
        &'a self,
        script: &'static Script,
        keys: &'a [String],
        args: Vec<Arg>,
    ) -> BoxFuture<'a, Result<Value, StoreError>> {
        Box::pin(async move {
            if script.file().rsplit_once('-').is_some_and(|(name, _)| name == self.script) {
                // The last one is the epoch.
                self.runs.lock().unwrap().push(args.len() - 1);
                let mood = *self.mood.borrow();
                match mood {
                    Mood::Pass => {}
                    Mood::Hold => self.turnstile.acquire().await.unwrap().forget(),
                    Mood::Away => return Err(StoreError::Unavailable("away".to_owned())),
                    Mood::Hang => std::future::pending().await,
                    Mood::Panic => panic!("a run that dies"),
                }
            }
            self.store.run(script, keys, args).await
        })
    }
}

impl fmt::Debug for WatchedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedEngine").field("script", &self.script).finish_non_exhaustive()
    }
}
