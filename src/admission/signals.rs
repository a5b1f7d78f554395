//! What a node sees of the shop: how long admitted visitors' requests wait for the head of an answer, how many fail, how
//! many are under way, and how many more visitors the shop says it can take. A wait is from the gate's word to the head of
//! the answer: a visitor who sends a large body slowly counts as a slow request.
//!
//! A request costs the hot path three relaxed additions to shared numbers, no lock. They only ever grow; the one task that
//! reports them ([`Window`]) looks once a second and reads the last seconds from differences.

pub mod histogram;
pub mod report;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use self::{
    histogram::{BUCKETS, Histogram},
    report::Report,
};

/// Counts of one room's requests since the node started.
#[derive(Debug)]
pub struct Meter {
    started: AtomicU64,
    /// Answered, by how long that took, or given up after a long wait, by how long they bore it. Errors are not among
    /// them: a shop that fails fast is not a fast shop.
    answered: [AtomicU64; BUCKETS],
    failed: AtomicU64,
    /// Ended without telling anything: the visitor went away at once.
    abandoned: AtomicU64,
    /// What the shop said last.
    room_for: Mutex<Option<RoomFor>>,
}

/// What the shop said of its capacity.
#[derive(Debug, Clone, Copy)]
struct RoomFor {
    visitors: u64,
    said_at: Instant,
}

/// What the shop said longer ago than this says nothing about now.
const SAID_FOR: Duration = Duration::from_secs(10);

impl Default for Meter {
    fn default() -> Self {
        Self {
            started: AtomicU64::new(0),
            answered: [const { AtomicU64::new(0) }; BUCKETS],
            failed: AtomicU64::new(0),
            abandoned: AtomicU64::new(0),
            room_for: Mutex::new(None),
        }
    }
}

impl Meter {
    /// A request goes to the shop now.
    pub fn start(self: &Arc<Self>, now: Instant) -> Exchange {
        self.started.fetch_add(1, Ordering::Relaxed);
        Exchange { meter: Arc::clone(self), began: now, ended: false }
    }

    /// The shop takes this many visitors altogether.
    pub fn note_room_for(&self, visitors: u64, now: Instant) {
        let said = RoomFor { visitors, said_at: now };
        *self.room_for.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
    }

    fn waited(&self, wait: Duration) {
        if let Some(count) = self.answered.get(histogram::bucket_of(wait)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn look(&self, at: Instant) -> Totals {
        // What ended is read before what started, so that a request in between counts as under way, never as less than none.
        let answered = Histogram::from_counts(std::array::from_fn(|bucket| {
            self.answered.get(bucket).map_or(0, |count| count.load(Ordering::Relaxed))
        }));
        let (failed, abandoned) = (self.failed.load(Ordering::Relaxed), self.abandoned.load(Ordering::Relaxed));
        Totals { at, answered, failed, abandoned, started: self.started.load(Ordering::Relaxed) }
    }

    fn room_for(&self, now: Instant) -> Option<(u64, u64)> {
        let said = (*self.room_for.lock().unwrap_or_else(PoisonError::into_inner))?;
        let age = now.saturating_duration_since(said.said_at);
        (age <= SAID_FOR).then(|| (said.visitors, u64::try_from(age.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// Whoever goes away sooner tells nothing of the shop; whoever waited longer says that it takes at least that long.
const BORNE: Duration = Duration::from_millis(200);

/// One request on its way to the shop. Dropped without a word it counts as given up by the visitor.
#[derive(Debug)]
pub struct Exchange {
    meter: Arc<Meter>,
    began: Instant,
    ended: bool,
}

impl Exchange {
    /// The head of the answer is here.
    pub fn answered(mut self, status: http::StatusCode, now: Instant) {
        self.ended = true;
        if status.is_server_error() {
            self.meter.failed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.meter.waited(now.saturating_duration_since(self.began));
    }

    /// The shop gave no answer.
    pub fn failed(mut self) {
        self.ended = true;
        self.meter.failed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let borne = self.began.elapsed();
        if !self.ended && borne < BORNE {
            self.meter.abandoned.fetch_add(1, Ordering::Relaxed);
        } else if !self.ended {
            self.meter.waited(borne);
        }
    }
}

/// A meter's numbers at one moment.
#[derive(Debug, Clone)]
struct Totals {
    at: Instant,
    answered: Histogram,
    failed: u64,
    abandoned: u64,
    started: u64,
}

impl Totals {
    fn in_flight(&self) -> u64 {
        self.started.saturating_sub(self.answered.count() + self.failed + self.abandoned)
    }

    fn ended_since(&self, before: &Self) -> u64 {
        (self.answered.count() + self.failed).saturating_sub(before.answered.count() + before.failed)
    }
}

/// The last seconds of a [`Meter`], as its one reporter keeps them.
#[derive(Debug)]
pub struct Window {
    meter: Arc<Meter>,
    /// Oldest first.
    looks: VecDeque<Totals>,
}

/// No report reaches further back.
const LONGEST: Duration = Duration::from_secs(10);
/// Nor is one of less than this, so that it says more than one moment.
const SHORTEST: Duration = Duration::from_secs(2);
/// As many ended requests make a report of fewer seconds good enough.
const ENOUGH: u64 = 100;
/// Looks are kept no closer together than this, which bounds their number.
const APART: Duration = Duration::from_millis(500);

impl Window {
    /// A window that begins now.
    pub fn new(meter: Arc<Meter>, now: Instant) -> Self {
        let first = meter.look(now);
        Self { meter, looks: VecDeque::from([first]) }
    }

    /// What was measured of late: over as few seconds as give [`ENOUGH`] requests, so that a change shows soon.
    pub fn report(&mut self, now: Instant) -> Report {
        let look = self.meter.look(now);
        let age = |before: &Totals| now.saturating_duration_since(before.at);
        while self.looks.len() > 1 && self.looks.get(1).is_some_and(|next| age(next) >= LONGEST) {
            self.looks.pop_front();
        }
        let enough = |before: &&Totals| age(before) >= SHORTEST && look.ended_since(before) >= ENOUGH;
        let before = self.looks.iter().rev().find(enough).or(self.looks.front()).unwrap_or(&look);
        let mut waits = look.answered.since(&before.answered);
        self.add_stuck(&look, &mut waits);
        let report = Report {
            window_ms: u64::try_from(age(before).as_millis()).unwrap_or(u64::MAX),
            waits,
            failed: look.failed.saturating_sub(before.failed),
            in_flight: look.in_flight(),
            room_for: self.meter.room_for(now),
        };
        if self.looks.back().is_none_or(|last| age(last) >= APART) {
            self.looks.push_back(look);
        }
        report
    }

    /// Requests without an answer so far count with what they have waited at least: a shop that answers nobody has no slow
    /// answers. Of those under way, no more than were started since can be younger than a look back.
    fn add_stuck(&self, look: &Totals, waits: &mut Histogram) {
        let mut noted = 0;
        for before in &self.looks {
            let older = look.in_flight().saturating_sub(look.started.saturating_sub(before.started));
            let at_least = look.at.saturating_duration_since(before.at);
            waits.add(histogram::bucket_of(at_least), older.saturating_sub(noted));
            noted = noted.max(older);
        }
    }
}

#[cfg(test)]
mod tests;
