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
    known: HashMap<VisitorId, Span>,
    cleaned_ms: u64,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    since_ms: u64,
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
        self.insert_since(visitor, now_ms, until_ms, now_ms)
    }

    /// As [`Recent::insert`], for what happened at `since_ms`.
    pub fn insert_since(&self, visitor: VisitorId, since_ms: u64, until_ms: u64, now_ms: u64) -> bool {
        let mut inner = self.lock();
        if inner.known.len() >= self.most && now_ms >= inner.cleaned_ms.saturating_add(CLEAN_EVERY_MS) {
            inner.known.retain(|_, span| span.until_ms > now_ms);
            inner.cleaned_ms = now_ms;
        }
        let full = inner.known.len() >= self.most;
        let span = Span { since_ms, until_ms };
        match inner.known.get_mut(&visitor) {
            Some(known) => std::mem::replace(known, span).until_ms <= now_ms,
            None if full => false,
            None => {
                inner.known.insert(visitor, span);
                true
            }
        }
    }

    /// Whether `visitor` is remembered at `now_ms`.
    pub fn contains(&self, visitor: VisitorId, now_ms: u64) -> bool {
        self.since(visitor, now_ms).is_some()
    }

    /// Since when `visitor` is remembered, if so at `now_ms`.
    pub fn since(&self, visitor: VisitorId, now_ms: u64) -> Option<u64> {
        let span = self.lock().known.get(&visitor).copied()?;
        (span.until_ms > now_ms).then_some(span.since_ms)
    }

    /// Forgets `visitor`.
    pub fn remove(&self, visitor: VisitorId) {
        self.lock().known.remove(&visitor);
    }

    /// Forgets everybody.
    pub fn clear(&self) {
        self.lock().known.clear();
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
        assert!(!recent.contains(ANN, 100));
        assert!(recent.insert(ANN, 200, 100), "news again once the moment has passed");
        recent.remove(ANN);
        assert!(!recent.contains(ANN, 150));
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
