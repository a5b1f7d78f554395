//! What all visitors count together: latencies, statuses, oddities, and who is where.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use hdrhistogram::Histogram;

/// What a request was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Page,
    Status,
    Event,
    Hold,
    CancelHold,
    Order,
    OrderStatus,
    Leave,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Status => "status",
            Self::Event => "event",
            Self::Hold => "hold",
            Self::CancelHold => "cancel hold",
            Self::Order => "order",
            Self::OrderStatus => "order status",
            Self::Leave => "leave",
        }
    }
}

/// The answers to one kind of request.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) micros: Histogram<u64>,
    pub(super) statuses: BTreeMap<u16, u64>,
}

const LONGEST_MICROS: u64 = 120_000_000;
/// How many different oddities are kept apart.
const ODDITIES: usize = 40;

/// Shared by all visitors.
#[derive(Debug, Default)]
pub(super) struct Tally {
    answers: Mutex<BTreeMap<Kind, Answers>>,
    unexpected: Mutex<BTreeMap<String, u64>>,
    network_errors: Mutex<BTreeMap<String, u64>>,
    events: Mutex<BTreeMap<String, u64>>,
    pub(super) requests: AtomicU64,
    pub(super) arrived: AtomicU64,
    pub(super) waiting: Arc<AtomicU64>,
    pub(super) inside: Arc<AtomicU64>,
    /// Inside, and told that every seat is sold or held just now.
    pub(super) hoping: Arc<AtomicU64>,
    /// The longest a hold lasts, as far as anybody was told.
    pub(super) hold_seconds: AtomicU64,
    pub(super) bought: AtomicU64,
    /// Gone without tickets.
    pub(super) gone: AtomicU64,
    /// Somebody was given the event as the reference box office describes it.
    pub(super) event_understood: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tally {
    pub(super) fn answered(&self, kind: Kind, status: u16, took: Duration) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(LONGEST_MICROS).clamp(1, LONGEST_MICROS);
        let mut answers = lock(&self.answers);
        let entry = match answers.entry(kind) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                // The bounds are constants that the histogram accepts.
                let Ok(micros) = Histogram::new_with_bounds(1, LONGEST_MICROS, 3) else { return };
                new.insert(Answers { micros, statuses: BTreeMap::new() })
            }
        };
        entry.micros.saturating_record(micros);
        *entry.statuses.entry(status).or_default() += 1;
    }

    /// Notes something that must not happen. `what` holds no identifiers, so that equal things count together.
    pub(super) fn unexpected(&self, what: &str) {
        count(&mut lock(&self.unexpected), what);
    }

    /// Notes a connection that failed, whether or not another try went well.
    pub(super) fn network_error(&self, kind: Kind, what: &str) {
        count(&mut lock(&self.network_errors), &format!("{}: {what}", kind.name()));
    }

    /// Notes the event a visitor was led to.
    pub(super) fn saw_event(&self, event: &str) {
        count(&mut lock(&self.events), event);
    }

    /// The event most visitors were led to.
    pub(super) fn main_event(&self) -> Option<String> {
        lock(&self.events).iter().max_by_key(|(_, count)| **count).map(|(event, _)| event.clone())
    }

    pub(super) fn take_unexpected(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut lock(&self.unexpected))
    }

    pub(super) fn take_network_errors(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut lock(&self.network_errors))
    }

    pub(super) fn take_answers(&self) -> BTreeMap<Kind, Answers> {
        std::mem::take(&mut lock(&self.answers))
    }
}

fn count(counts: &mut BTreeMap<String, u64>, what: &str) {
    if let Some(count) = counts.get_mut(what) {
        *count += 1;
    } else {
        let key = if counts.len() < ODDITIES { what } else { "other" };
        *counts.entry(key.to_owned()).or_default() += 1;
    }
}

/// Counts someone for as long as it lives, also when their task is dropped.
#[derive(Debug)]
pub(super) struct Counted(Arc<AtomicU64>);

impl Counted {
    pub(super) fn among(counter: &Arc<AtomicU64>) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counter))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
