//! Who polled since the store was last told.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use crate::queue::{Proof, VisitorId};

/// Visitors seen since the last flush, each once, at most so many.
#[derive(Debug)]
pub struct Presence {
    most: usize,
    seen: Mutex<HashMap<VisitorId, Proof>>,
}

impl Presence {
    /// A collector of at most `most` visitors between two flushes.
    pub fn new(most: usize) -> Self {
        Self { most, seen: Mutex::default() }
    }

    /// Notes that `visitor` is here. Beyond the bound it is dropped: they poll again well before they count as absent.
    pub fn note(&self, visitor: VisitorId, proof: Proof) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() < self.most || seen.contains_key(&visitor) {
            seen.insert(visitor, proof);
        }
    }

    /// Takes everybody noted so far.
    pub fn take(&self) -> Vec<(VisitorId, Proof)> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        seen.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Score;

    #[test]
    fn notes_each_visitor_once_and_no_more_than_the_bound() {
        let presence = Presence::new(2);
        let proof = Proof { score: Score(7), issued_at_ms: 1 };
        for bits in [1, 1, 2, 3, 2] {
            presence.note(VisitorId::from_bits(bits), proof);
        }
        let mut taken = presence.take();
        taken.sort_by_key(|(visitor, _)| *visitor);
        assert_eq!(taken, [(VisitorId::from_bits(1), proof), (VisitorId::from_bits(2), proof)]);
        assert_eq!(presence.take(), []);
    }
}
