//! A bounded memory of visitors.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::queue::VisitorId;

/// Visitors remembered until a moment each, at most so many at once.
///
/// When it is full of entries that still count, newcomers are not remembered: it never grows.
#[derive(Debug)]
pub struct Recent {
    most: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    visitors: HashMap<VisitorId, Entry>,
    cleaned_ms: u64,
}

/// What is remembered of one visitor.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// When what is remembered happened.
    at_ms: u64,
    until_ms: u64,
}

/// Cleaning walks the whole map, so a full one is cleaned no more often than this.
const CLEAN_EVERY_MS: u64 = 1_000;

impl Recent {
    /// A memory of at most `most` visitors.
    pub fn new(most: usize) -> Self {
        Self { most, inner: Mutex::default() }
    }

    /// Remembers `visitor` from now until `until_ms`. Returns whether that is news: false when already remembered, and
    /// when there is no room.
    pub fn insert(&self, visitor: VisitorId, until_ms: u64, now_ms: u64) -> bool {
        self.insert_since(visitor, until_ms, now_ms, 0)
    }

    /// As [`Recent::insert`], but what is remembered from before `since_ms` was about something else and is replaced.
    pub fn insert_since(&self, visitor: VisitorId, until_ms: u64, now_ms: u64, since_ms: u64) -> bool {
        let entry = Entry { at_ms: now_ms, until_ms };
        let mut inner = self.lock();
        if inner.visitors.len() >= self.most && now_ms >= inner.cleaned_ms.saturating_add(CLEAN_EVERY_MS) {
            inner.visitors.retain(|_, known| known.until_ms > now_ms);
            inner.cleaned_ms = now_ms;
        }
        let full = inner.visitors.len() >= self.most;
        match inner.visitors.get_mut(&visitor) {
            Some(known) if known.until_ms > now_ms && known.at_ms >= since_ms => {
                known.until_ms = until_ms;
                false
            }
            Some(known) => {
                *known = entry;
                true
            }
            None if full => false,
            None => {
                inner.visitors.insert(visitor, entry);
                true
            }
        }
    }

    /// Whether `visitor` is remembered at `now_ms`.
    pub fn contains(&self, visitor: VisitorId, now_ms: u64) -> bool {
        self.since(visitor, now_ms).is_some()
    }

    /// Since when `visitor` is remembered, if they still are at `now_ms`.
    pub fn since(&self, visitor: VisitorId, now_ms: u64) -> Option<u64> {
        self.lock().visitors.get(&visitor).filter(|known| known.until_ms > now_ms).map(|known| known.at_ms)
    }

    /// Everybody remembered at `now_ms`, each with since when.
    pub fn all(&self, now_ms: u64) -> Vec<(VisitorId, u64)> {
        let inner = self.lock();
        let known = inner.visitors.iter().filter(|(_, known)| known.until_ms > now_ms);
        known.map(|(&visitor, known)| (visitor, known.at_ms)).collect()
    }

    /// As [`Recent::all`], and forgets everybody.
    pub fn take(&self, now_ms: u64) -> Vec<(VisitorId, u64)> {
        let known = std::mem::take(&mut self.lock().visitors);
        known.into_iter().filter(|(_, known)| known.until_ms > now_ms).map(|(who, known)| (who, known.at_ms)).collect()
    }

    /// Forgets `visitor`.
    pub fn remove(&self, visitor: VisitorId) {
        self.lock().visitors.remove(&visitor);
    }

    /// Forgets everybody.
    pub fn clear(&self) {
        self.lock().visitors.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is a single step, so a poisoned map is still whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: VisitorId = VisitorId::from_bits(1);
    const BEN: VisitorId = VisitorId::from_bits(2);
    const CAT: VisitorId = VisitorId::from_bits(3);

    #[test]
    fn remembers_until_the_moment() {
        let recent = Recent::new(10);
        assert!(recent.insert(ANN, 100, 0));
        assert!(!recent.insert(ANN, 100, 50), "already known");
        assert!(recent.contains(ANN, 99));
        assert_eq!((recent.since(ANN, 99), recent.since(ANN, 100)), (Some(0), None));
        assert!(!recent.insert_since(ANN, 100, 60, 0) && recent.insert_since(ANN, 100, 60, 10), "about something else");
        assert_eq!(recent.since(ANN, 99), Some(60));
        assert!(!recent.contains(ANN, 100));
        assert!(recent.insert(ANN, 200, 100), "news again once the moment has passed");
        recent.remove(ANN);
        assert!(!recent.contains(ANN, 150));
        recent.insert(BEN, 200, 160);
        recent.insert(CAT, 170, 160);
        assert_eq!(recent.all(170), [(BEN, 160)]);
        assert_eq!((recent.take(170), recent.take(170)), (vec![(BEN, 160)], vec![]));
    }

    #[test]
    fn never_grows_beyond_its_bound_and_makes_room_from_what_ran_out() {
        let recent = Recent::new(2);
        assert!(recent.insert(ANN, 5_000, 2_000));
        assert!(recent.insert(BEN, 9_000, 2_000));
        assert!(!recent.insert(CAT, 9_000, 4_000), "full");
        assert!(!recent.contains(CAT, 4_000));
        assert!(recent.insert(CAT, 9_000, 6_000), "Ann ran out");
        assert!(recent.contains(BEN, 6_000));
    }
}
