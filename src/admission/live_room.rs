//! One room at run time.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};

use super::{
    flow::FlowMeter,
    presence::Presence,
    recent::Recent,
    runner,
    status::{self, Situation, StatusDocument},
    turn::Turn,
    view::View,
};
use crate::{
    clock::SharedClock,
    config::RoomConfig,
    queue::{Mode, Queue, RoomName},
    shutdown::Shutdown,
    store::{SharedEngine, StoreError},
    tokens::Keyring,
};

/// Most visitors noted as present between two flushes.
const MOST_SEEN: usize = 200_000;
/// Most visitors remembered as having lost their place.
const MOST_EXPIRED: usize = 20_000;
/// Most sessions remembered as ended before their token does.
const MOST_RELEASED: usize = 200_000;
/// Most sessions remembered as registered again, or as being renewed.
const MOST_SESSIONS: usize = 100_000;

/// A room's configuration, its line, and what this node remembers of it. Everything it remembers is bounded.
pub struct LiveRoom {
    pub(super) config: RoomConfig,
    pub(super) queue: Queue,
    pub(super) clock: SharedClock,
    pub(super) keyring: Keyring,
    pub(super) presence: Presence,
    /// Visitors whom the store said it has no place for: it is asked again when they come.
    pub(super) expired: Recent,
    /// Sessions that ended before their token does.
    pub(super) released: Recent,
    /// Sessions of an older history that were registered with the store's present one.
    pub(super) registered: Recent,
    /// Sessions whose renewal is under way or just happened, so that parallel requests make one trip.
    pub(super) renewing: Recent,
    /// When the store was last told that nothing is left, milliseconds by its clock.
    pub(super) sold_out_told_ms: AtomicU64,
    view: ArcSwap<View>,
    away: AtomicBool,
    shutdown: OnceLock<Shutdown>,
}

impl LiveRoom {
    /// Writes the room's policy to the store and takes a first snapshot.
    ///
    /// With `keys_are_fresh` no token of an earlier run can exist, so there is nothing to wait for when the store
    /// is empty too, and calling begins at once.
    pub async fn open(
        config: RoomConfig,
        engine: SharedEngine,
        clock: SharedClock,
        keyring: Keyring,
        keys_are_fresh: bool,
    ) -> Result<Arc<Self>, StoreError> {
        let queue = Queue::new(engine, &config.name);
        let settle = if keys_are_fresh { Duration::ZERO } else { config.settle };
        queue.configure(&config.policy, settle).await?;
        let asked_at_micros = clock.unix_micros();
        let snapshot = queue.snapshot().await?;
        let flow = FlowMeter::default().update(&snapshot);
        Ok(Arc::new(Self {
            config,
            queue,
            clock,
            keyring,
            presence: Presence::new(MOST_SEEN),
            expired: Recent::new(MOST_EXPIRED),
            released: Recent::new(MOST_RELEASED),
            registered: Recent::new(MOST_SESSIONS),
            renewing: Recent::new(MOST_SESSIONS),
            sold_out_told_ms: AtomicU64::new(0),
            view: ArcSwap::from_pointee(View { snapshot, sketch: Arc::default(), asked_at_micros, flow }),
            away: AtomicBool::new(false),
            shutdown: OnceLock::new(),
        }))
    }

    /// Starts the tasks that call visitors, look at the room, sweep it and report who is present, until `shutdown`.
    pub fn start(self: &Arc<Self>, shutdown: &Shutdown) {
        if self.shutdown.set(shutdown.clone()).is_ok() {
            runner::start(self, shutdown);
        }
    }

    /// The room's configuration.
    pub fn config(&self) -> &RoomConfig {
        &self.config
    }

    /// The room's name.
    pub fn name(&self) -> &RoomName {
        &self.config.name
    }

    /// The keys its tokens are signed with.
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// What the node knows of the room.
    pub fn view(&self) -> Guard<Arc<View>> {
        self.view.load()
    }

    /// The store's time, milliseconds since the epoch, by the node's clock.
    pub fn now_ms(&self) -> u64 {
        self.view().now_ms(&*self.clock)
    }

    /// Whether the last snapshot is recent enough to go by.
    pub fn is_fresh(&self) -> bool {
        !self.is_away() && !self.view().is_stale(&*self.clock)
    }

    /// What a visitor is told whose turn is `turn`.
    pub fn status(&self, turn: &Turn) -> StatusDocument {
        let view = self.view();
        let situation = Situation {
            room: self.name().as_str(),
            message: self.config.message.as_deref(),
            policy: &self.config.policy,
            view: &view,
            now_ms: view.now_ms(&*self.clock),
            is_stale: !self.is_fresh(),
            jitter: rand::random(),
        };
        status::document(&situation, turn)
    }

    /// Sets what the room does. Takes effect for every node with its next snapshot.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), StoreError> {
        self.queue.set_mode(mode).await
    }

    /// Whether the store is not answering, so that nobody need wait to find out.
    pub(super) fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    pub(super) fn set_view(&self, view: View) {
        self.view.store(Arc::new(view));
    }

    /// Logs when the store comes and goes, once each.
    pub(super) fn store_answered(&self) {
        if self.away.swap(false, Ordering::Relaxed) {
            tracing::info!(room = %self.name(), "the store answers again");
        }
    }

    /// Takes a failed call in: a store that is away is noted, a defect is logged.
    pub(super) fn store_failed(&self, error: &StoreError) {
        if !error.is_transient() {
            tracing::error!(room = %self.name(), %error, "a queue script failed");
        } else if !self.away.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                room = %self.name(), %error,
                "the store is away: sessions pass, waiting visitors keep their place, nobody is called"
            );
        }
    }

    /// Runs `task` beside the request that caused it, counted by the shutdown's drain.
    pub(super) fn beside(&self, task: impl Future<Output = ()> + Send + 'static) {
        match self.shutdown.get() {
            Some(shutdown) => shutdown.spawn(task),
            None => drop(tokio::spawn(task)),
        }
    }
}

impl fmt::Debug for LiveRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveRoom").field("name", self.name()).finish_non_exhaustive()
    }
}
