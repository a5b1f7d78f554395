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
    until_ms: HashMap<VisitorId, u64>,
    cleaned_ms: u64,
}

/// Cleaning walks the whole map, so a full one is cleaned no more often than this.
const CLEAN_EVERY_MS: u64 = 1_000;

impl Recent {
    /// A memory of at most `most` visitors.
    pub fn new(most: usize) -> Self {
        Self { most, inner: Mutex::default() }
    }

    /// Remembers `visitor` until `until_ms`. Returns whether that is news: false when already remembered, and when
    /// there is no room.
    pub fn insert(&self, visitor: VisitorId, until_ms: u64, now_ms: u64) -> bool {
        let mut inner = self.lock();
        if inner.until_ms.len() >= self.most && now_ms >= inner.cleaned_ms.saturating_add(CLEAN_EVERY_MS) {
            inner.until_ms.retain(|_, until_ms| *until_ms > now_ms);
            inner.cleaned_ms = now_ms;
        }
        let full = inner.until_ms.len() >= self.most;
        match inner.until_ms.get_mut(&visitor) {
            Some(known) => std::mem::replace(known, until_ms) <= now_ms,
            None if full => false,
            None => {
                inner.until_ms.insert(visitor, until_ms);
                true
            }
        }
    }

    /// Whether `visitor` is remembered at `now_ms`.
    pub fn contains(&self, visitor: VisitorId, now_ms: u64) -> bool {
        self.lock().until_ms.get(&visitor).is_some_and(|until_ms| *until_ms > now_ms)
    }

    /// Forgets `visitor`.
    pub fn remove(&self, visitor: VisitorId) {
        self.lock().until_ms.remove(&visitor);
    }

    /// Forgets everybody.
    pub fn clear(&self) {
        self.lock().until_ms.clear();
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
