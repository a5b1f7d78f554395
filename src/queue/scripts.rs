//! Typed bindings of the queue's scripts.

use std::time::Duration;

use super::{Arrival, Mode, Place, Policy, Proof, RoomName, Snapshot, VisitorId};
use crate::store::{SharedEngine, StoreError};

/// The line of one room.
#[derive(Debug, Clone)]
pub struct Queue {
    _engine: SharedEngine,
}

/// What one run of `call` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Called {
    /// How many were called.
    pub called: u32,
    /// How many absent visitors were passed over.
    pub skipped: u32,
}

/// What one run of `sweep` removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Claims that nobody made in time.
    pub no_shows: u32,
    /// Sessions that ended.
    pub sessions: u32,
    /// Places given up by absence beyond the grace.
    pub absent: u32,
}

#[expect(unused_variables, clippy::unused_async, missing_docs, reason = "signatures agreed before the bodies")]
impl Queue {
    pub fn new(engine: SharedEngine, room: &RoomName) -> Self {
        Self { _engine: engine }
    }

    /// Writes the policy. Creates the room's state when it is missing, in which case nobody is called or let straight in for `settle`
    /// (so that places and sessions of a lost history can register first; zero when there can be none).
    pub async fn configure(&self, policy: &Policy, settle: Duration) -> Result<(), StoreError> {
        unimplemented!()
    }

    /// Sets what the room does. `Mode::Open` and `Mode::Scheduled` both clear any other mode; which of the two holds is for the clock to say.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), StoreError> {
        unimplemented!()
    }

    /// One place per arrival, in order. Idempotent; the repeat of a join only reads.
    pub async fn join(&self, arrivals: &[Arrival]) -> Result<Vec<Place>, StoreError> {
        unimplemented!()
    }

    /// Calls at most `most` visitors (at most 50 a run).
    pub async fn call(&self, most: u32) -> Result<Called, StoreError> {
        unimplemented!()
    }

    /// Exchanges a call for a session. Idempotent. A visitor still waiting is marked present.
    /// With a proof, a lost place is restored first, as by join.
    pub async fn claim(&self, visitor: VisitorId, proof: Option<Proof>) -> Result<Place, StoreError> {
        unimplemented!()
    }

    /// Moves a session's end to now + `ttl`, never past `not_after_ms`, never backwards. Registers a session that
    /// a lost store forgot when `issued_at_ms` is before the store's present history.
    pub async fn renew(
        &self,
        visitor: VisitorId,
        issued_at_ms: u64,
        expires_ms: u64,
        ttl: Duration,
        not_after_ms: u64,
    ) -> Result<Place, StoreError> {
        unimplemented!()
    }

    /// Ends a session and frees its slot, once. Returns whether this call did.
    pub async fn release(&self, visitor: VisitorId) -> Result<bool, StoreError> {
        unimplemented!()
    }

    /// Gives up place, call and session. Returns whether there was one.
    pub async fn leave(&self, visitor: VisitorId) -> Result<bool, StoreError> {
        unimplemented!()
    }

    /// Marks waiting visitors as present; restores proven places that a lost store forgot. One place per entry.
    pub async fn seen(&self, visitors: &[(VisitorId, Proof)]) -> Result<Vec<Place>, StoreError> {
        unimplemented!()
    }

    /// Removes what ran out, a bounded number a run.
    pub async fn sweep(&self) -> Result<Swept, StoreError> {
        unimplemented!()
    }

    /// The room as it stands.
    pub async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        unimplemented!()
    }
}
