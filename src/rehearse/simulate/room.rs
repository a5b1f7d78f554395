//! The room: the queue's scripts on the in-process engine, on a clock that the simulation sets.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;

use super::{SimulateError, crowd::micros};
use crate::{
    admission::cadence,
    clock::ManualClock,
    queue::{Arrival, Past, Place, Policy, Queue, QueueError, RoomName, Snapshot, VisitorId},
    store::in_process::InProcess,
};

/// The virtual opening: some moment, the same in every run, long after the Unix epoch.
const OPENING_US: u64 = 1_800_000_000_000_000;

/// A room whose every answer is there at once. Times are microseconds since the opening.
#[derive(Debug)]
pub struct Room {
    clock: ManualClock,
    queue: Queue,
    /// How many scripts ran.
    pub runs: u64,
}

impl Room {
    /// A room of this policy, long open and empty.
    pub fn open(policy: &Policy) -> Result<Self, SimulateError> {
        // The room's history began before any proof of a lost one would still be believed, as that of a real room did
        // that was set up in time.
        let long_before = OPENING_US - micros(policy.grace) - micros(Duration::from_secs(1));
        let clock = ManualClock::at(long_before);
        let engine = Arc::new(InProcess::new(Arc::new(clock.clone())));
        let name: RoomName = "main".parse().map_err(|_| SimulateError::Halted("a room cannot be called main"))?;
        let mut room = Self { clock, queue: Queue::new(engine, &name), runs: 0 };
        room.configure(policy)?;
        room.set_time(0);
        Ok(room)
    }

    /// Moves the clock.
    pub fn set_time(&self, now_us: u64) {
        self.clock.set(OPENING_US + now_us);
    }

    /// Writes the policy.
    pub fn configure(&mut self, policy: &Policy) -> Result<(), SimulateError> {
        self.runs += 1;
        at_once(self.queue.configure(policy, Past::Blank))
    }

    /// Takes newcomers, at most 100.
    pub fn join(&mut self, arrivals: &[Arrival]) -> Result<Vec<Place>, SimulateError> {
        self.runs += 1;
        at_once(self.queue.join(arrivals))
    }

    /// One round of calls, as a node does it. Returns how many were called.
    pub fn call(&mut self) -> Result<u32, SimulateError> {
        self.runs += 1;
        at_once(cadence::call_the_next(&self.queue)).map(|round| round.called)
    }

    /// Exchanges a call for a session.
    pub fn claim(&mut self, visitor: VisitorId) -> Result<Place, SimulateError> {
        self.runs += 1;
        at_once(self.queue.claim(visitor, None))
    }

    /// Ends a session, as the shop does after a purchase.
    pub fn release(&mut self, visitor: VisitorId) -> Result<bool, SimulateError> {
        self.runs += 1;
        at_once(self.queue.release(visitor))
    }

    /// Gives up place or session, as a page does that is closed.
    pub fn leave(&mut self, visitor: VisitorId) -> Result<bool, SimulateError> {
        self.runs += 1;
        at_once(self.queue.leave(visitor))
    }

    /// Removes what ran out.
    pub fn sweep(&mut self) -> Result<(), SimulateError> {
        self.runs += 1;
        at_once(self.queue.sweep()).map(drop)
    }

    /// The room as the store has it.
    pub fn snapshot(&mut self) -> Result<Snapshot, SimulateError> {
        self.runs += 1;
        at_once(self.queue.snapshot(0))
    }
}

/// The in-process engine never waits, so its futures are ready when first asked.
fn at_once<T>(answer: impl Future<Output = Result<T, QueueError>>) -> Result<T, SimulateError> {
    match answer.now_or_never() {
        Some(answer) => answer.map_err(SimulateError::Store),
        None => Err(SimulateError::Halted("the in-process engine kept us waiting")),
    }
}
