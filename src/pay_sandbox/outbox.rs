//! The events nobody acknowledged yet, and when each is tried next.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use super::records::Event;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    events: HashMap<String, Outgoing>,
    /// Those that are not being sent at this moment, by the time (Unix ms) of their next try.
    waiting: BTreeSet<(u64, String)>,
}

#[derive(Debug)]
struct Outgoing {
    event: Event,
    tries: u32,
    first_try_ms: Option<u64>,
}

/// An event that is to be sent now.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) event: Event,
    /// How many tries there were, this one included.
    pub(super) tries: u32,
    /// Since the first try of this process.
    pub(super) trying_for: Duration,
}

impl Outbox {
    /// Adds an event, due at once.
    pub(super) fn add(&mut self, event: Event) {
        self.waiting.insert(first_turn(&event));
        self.events.insert(event.id.clone(), Outgoing { event, tries: 0, first_try_ms: None });
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// Forgets an event. `None` when there is no such.
    pub(super) fn remove(&mut self, id: &str) -> Option<()> {
        let outgoing = self.events.remove(id)?;
        // It still waits only while the journal is read; an event that is being sent does not.
        self.waiting.remove(&first_turn(&outgoing.event));
        Some(())
    }

    /// Takes at most `most` events whose time has come, and says when the next one's comes.
    pub(super) fn take_due(&mut self, now_ms: u64, most: usize) -> (Vec<Due>, Option<u64>) {
        let mut due = Vec::new();
        while due.len() < most
            && self.waiting.first().is_some_and(|(at_ms, _)| *at_ms <= now_ms)
            && let Some((_, id)) = self.waiting.pop_first()
        {
            let Some(outgoing) = self.events.get_mut(&id) else { continue };
            outgoing.tries += 1;
            let first_try_ms = *outgoing.first_try_ms.get_or_insert(now_ms);
            let trying_for = Duration::from_millis(now_ms.saturating_sub(first_try_ms));
            due.push(Due { event: outgoing.event.clone(), tries: outgoing.tries, trying_for });
        }
        (due, self.waiting.first().map(|(at_ms, _)| *at_ms))
    }

    /// Puts an event back, to be tried at `at_ms`.
    pub(super) fn try_again(&mut self, id: String, at_ms: u64) {
        self.waiting.insert((at_ms, id));
    }
}

/// Where a new event stands: behind those of earlier seconds.
fn first_turn(event: &Event) -> (u64, String) {
    (event.created.saturating_mul(1_000), event.id.clone())
}
