//! One room at run time.

use std::{
    fmt,
    future::Future,
    path::Path,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};

use super::{
    draw,
    ended::Ends,
    flow::FlowMeter,
    joins::Joins,
    kept::{Kept, Notes},
    presence::Presence,
    recent::Recent,
    runner,
    signals::{Exchange, Meter},
    status::{self, Situation, StatusDocument},
    steering::Outlook,
    turn::Turn,
    view::View,
};
use crate::{
    clock::SharedClock,
    config::RoomConfig,
    queue::{Mode, Past, Queue, QueueError, RoomName, Snapshot},
    shutdown::Shutdown,
    store::SharedEngine,
    tokens::Keyring,
};

/// The store is told of a lost epoch no more often than this.
const TELL_AGAIN_MS: u64 = 1_000;
/// Most visitors noted as present between two flushes.
const MOST_SEEN: usize = 200_000;
/// Most visitors remembered as having lost their place.
const MOST_EXPIRED: usize = 20_000;
/// Most visitors remembered as ended before their token does.
pub(super) const MOST_RELEASED: usize = 200_000;
/// Most sessions remembered as registered again, or as being renewed.
const MOST_SESSIONS: usize = 100_000;

/// A room's configuration, its line, and what this node remembers of it. Everything it remembers is bounded.
pub struct LiveRoom {
    pub(super) config: RoomConfig,
    pub(super) queue: Queue,
    pub(super) clock: SharedClock,
    pub(super) keyring: Keyring,
    pub(super) joins: Joins,
    pub(super) presence: Presence,
    /// Visitors whom the store said it has no place for: it is asked again when they come.
    pub(super) expired: Recent,
    /// Places and sessions that ended before their token does.
    pub(super) released: Recent,
    /// Those of which the store has still to be told.
    pub(super) untold: Recent,
    /// Where they are written down; `None` where nobody said.
    pub(super) ends: Option<Ends>,
    /// Sessions that began before this node or the store's present history did, and that the store was asked about.
    pub(super) registered: Recent,
    /// Sessions whose renewal is under way or just happened, so that parallel requests make one trip.
    pub(super) renewing: Recent,
    /// The last epoch of whose draw the node said that it lacks the key.
    pub(super) keyless_epoch: AtomicU64,
    /// The last epoch of whose draw the node said that it is done.
    pub(super) drawn_epoch: AtomicU64,
    /// The last epoch whose roster this node has, or cannot have.
    pub(super) copied_epoch: AtomicU64,
    /// Where the draw is written down; `None` where nobody said.
    pub(super) notes: Option<Notes>,
    /// What was written down last.
    pub(super) noted: Mutex<Option<Kept>>,
    /// When the store was last told of an epoch it lost, milliseconds by its clock.
    epoch_told_ms: AtomicU64,
    /// When the store was last told that nothing is left, milliseconds by its clock.
    pub(super) sold_out_told_ms: AtomicU64,
    /// When this node opened the room, milliseconds by the store's clock.
    pub(super) opened_ms: u64,
    /// What this node sees of the shop.
    pub(super) meter: Arc<Meter>,
    outlook: ArcSwapOption<Outlook>,
    /// What the gateways of the room do not agree about.
    pub(super) warnings: ArcSwap<Vec<String>>,
    view: ArcSwap<View>,
    away: AtomicBool,
    shutdown: OnceLock<Shutdown>,
}

impl LiveRoom {
    /// Writes the room's policy to the store and takes a first snapshot.
    ///
    /// With `keys_are_fresh` no token of an earlier run can exist, so there is nothing to wait for when the store
    /// is empty too, and calling begins at once.
    ///
    /// Its epoch, its draw and who was ended are written down in `data`, and it goes on from there.
    pub async fn open(
        config: RoomConfig,
        engine: SharedEngine,
        clock: SharedClock,
        keyring: Keyring,
        keys_are_fresh: bool,
        data: Option<&Path>,
    ) -> Result<Arc<Self>, QueueError> {
        let room_name = config.name.clone();
        let queue = Queue::new(engine, &config.name);
        let (notes, kept) = Notes::find(&config, data, &keyring).await;
        let draw = kept.as_ref().map(Kept::draw).unwrap_or_default();
        let past = match &kept {
            // A draw that hangs on keys which are gone can never be done, and no token of it is good.
            _ if keys_are_fresh => Past::Blank,
            Some(kept) => Past::Kept { epoch: kept.epoch, draw: &draw },
            None => Past::Unknown,
        };
        queue.configure(&config.policy, past).await?;
        let asked_at_micros = clock.unix_micros();
        let mut snapshot = queue.snapshot(0).await?;
        if let Past::Kept { epoch, draw } = past {
            draw::publish_again(&queue, &mut snapshot, epoch, draw).await?;
        }
        queue.go_by(snapshot.epoch);
        let flow = FlowMeter::default().update(&snapshot);
        let ended = snapshot.ended.clone();
        let uncommitted = snapshot.draw.as_ref().is_some_and(|draw| draw.commitment.is_none());
        let epoch = snapshot.epoch;
        let room = Self {
            config,
            queue,
            clock,
            keyring,
            joins: Joins::default(),
            presence: Presence::new(MOST_SEEN),
            expired: Recent::new(MOST_EXPIRED),
            released: Recent::new(MOST_RELEASED),
            untold: Recent::new(MOST_RELEASED),
            ends: data.map(|dir| Ends::new(dir, &room_name)),
            registered: Recent::new(MOST_SESSIONS),
            renewing: Recent::new(MOST_SESSIONS),
            sold_out_told_ms: AtomicU64::new(0),
            opened_ms: snapshot.now_ms,
            meter: Arc::default(),
            outlook: ArcSwapOption::empty(),
            warnings: ArcSwap::default(),
            keyless_epoch: AtomicU64::new(0),
            drawn_epoch: AtomicU64::new(0),
            copied_epoch: AtomicU64::new(0),
            notes,
            noted: Mutex::new(None),
            epoch_told_ms: AtomicU64::new(0),
            view: ArcSwap::from_pointee(View { snapshot, sketch: Arc::default(), asked_at_micros, flow, draws: None }),
            away: AtomicBool::new(false),
            shutdown: OnceLock::new(),
        };
        room.sessions_ended(&ended);
        if !keys_are_fresh {
            room.remember_who_was_ended().await;
        }
        if uncommitted {
            room.commit(epoch).await?;
            // Whoever comes from now on may have a receipt, which names it.
            room.look_again().await?;
        }
        Ok(Arc::new(room))
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

    /// Why the room admits as fast as it does, as the node last heard; `None` before it heard anything.
    pub fn outlook(&self) -> Option<Arc<Outlook>> {
        self.outlook.load_full()
    }

    pub(super) fn set_outlook(&self, outlook: Outlook) {
        self.outlook.store(Some(Arc::new(outlook)));
    }

    /// An admitted visitor's request goes to the shop now.
    pub fn start_exchange(&self) -> Exchange {
        self.meter.start(Instant::now())
    }

    /// The shop says that it can take so many more than are inside.
    pub fn can_take(&self, more: u64) {
        self.meter.note_room_for(self.view().snapshot.inside.saturating_add(more), Instant::now());
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

    /// Sets what the room does. Takes effect for every node with its next snapshot. Returns what it does now, which is for
    /// the schedule to say where that has not come yet.
    pub async fn set_mode(&self, mode: Mode) -> Result<Mode, QueueError> {
        self.queue.set_mode(mode).await?;
        Ok(self.queue.snapshot(self.view().snapshot.ended_until).await?.mode)
    }

    /// Begins a new epoch: nobody waits, nobody is inside, every token of before is void. Returns the new epoch.
    pub async fn reset(&self) -> Result<u64, QueueError> {
        let (epoch, has_draw) = (self.view().snapshot.epoch, self.view().snapshot.draw.is_some());
        let epoch = self.queue.reset(epoch).await?;
        if has_draw {
            self.commit(epoch).await?;
        }
        self.look_again().await?;
        Ok(epoch)
    }

    /// Takes a snapshot between two looks, because what the node knows is of another epoch. Positions follow with the next
    /// look.
    pub(super) async fn look_again(&self) -> Result<(), QueueError> {
        self.set_view(self.fresh_view().await?);
        Ok(())
    }

    /// Whether a genuine token of this epoch, which is not the one the node knows, still counts. A higher one was reached
    /// once, so store and nodes lost it: it is believed while places of a lost history are, and the store is told.
    pub fn has_reached(self: &Arc<Self>, epoch: u64) -> bool {
        let (view, now_ms) = (self.view(), self.now_ms());
        let snapshot = &view.snapshot;
        let grace_ms = u64::try_from(self.config.policy.grace.as_millis()).unwrap_or(u64::MAX);
        if epoch <= snapshot.epoch || now_ms >= snapshot.since_ms.saturating_add(grace_ms) {
            return false;
        }
        let told_ms = self.epoch_told_ms.load(Ordering::Relaxed);
        let is_due = now_ms >= told_ms.saturating_add(TELL_AGAIN_MS) && !self.is_away();
        if is_due && self.epoch_told_ms.compare_exchange(told_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            // What the node knows of a draw is of another epoch.
            let (room, past) = (Arc::clone(self), Snapshot { epoch, draw: None, ..snapshot.clone() });
            self.beside(async move {
                tracing::warn!(room = %room.name(), epoch, "a token proves an epoch that the store lost");
                if let Err(error) = room.queue.configure(&room.config.policy, Past::Seen(&past)).await {
                    room.store_failed(&error);
                }
            });
        }
        true
    }

    /// Whether the store is not answering, so that nobody need wait to find out.
    pub(super) fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    /// Takes in what was seen; unless it is of an epoch that ended meanwhile, by the sight of another task.
    pub(super) fn set_view(&self, view: View) {
        let seen = Arc::new(view);
        self.view.rcu(|now| Arc::clone(if seen.snapshot.epoch < now.snapshot.epoch { now } else { &seen }));
        self.queue.go_by(self.view().snapshot.epoch);
    }

    /// Logs when the store comes and goes, once each.
    pub(super) fn store_answered(&self) {
        if self.away.swap(false, Ordering::Relaxed) {
            tracing::info!(room = %self.name(), "the store answers again");
        }
    }

    /// Takes a failed call in: a store that is away is noted, a defect is logged.
    pub(super) fn store_failed(&self, error: &QueueError) {
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
