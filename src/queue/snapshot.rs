//! What a node knows of a room between two looks at the store.

use super::{Mode, Score, reply::Reply};
use crate::store::StoreError;

/// A room at one instant.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The store's time, milliseconds since the epoch.
    pub now_ms: u64,
    /// When the store's present history of this room began. Changes when the store lost its data.
    pub since_ms: u64,
    /// Nobody is called before this.
    pub settle_until_ms: u64,
    /// The room's epoch: a reset starts a new one, and tokens of older ones are void.
    pub epoch: u64,
    /// What the room does at `now_ms` (a schedule that has come is already `Open`).
    pub mode: Mode,
    /// When it opens, if that is set.
    pub opens_at_ms: Option<u64>,
    /// Most visitors inside, called ones counted.
    pub capacity: u32,
    /// Most admissions per second.
    pub rate: f64,
    /// How many wait.
    pub line: u64,
    /// How many are called and have not shown up yet.
    pub called: u64,
    /// How many hold a live session.
    pub inside: u64,
    /// The highest score called so far: nobody behind it needs to ask the store whether it is their turn.
    pub watermark: Score,
    /// Visitors who ever joined the line, in this history.
    pub joined_total: u64,
    /// Visitors ever called, in this history.
    pub called_total: u64,
    /// Visitors ever let in, in this history.
    pub admitted_total: u64,
    /// Calls nobody answered, in this history.
    pub no_shows_total: u64,
}

impl Snapshot {
    /// Whether places and sessions of a lost history are still registering.
    pub fn is_settling(&self) -> bool {
        self.now_ms < self.settle_until_ms
    }

    pub(super) fn read(mut reply: Reply) -> Result<Self, StoreError> {
        Ok(Self {
            now_ms: reply.number()?,
            since_ms: reply.number()?,
            settle_until_ms: reply.number()?,
            epoch: reply.number()?,
            mode: reply.mode()?,
            opens_at_ms: Some(reply.number()?).filter(|&at| at > 0),
            capacity: reply.small()?,
            rate: reply.fraction()?,
            line: reply.number()?,
            called: reply.number()?,
            inside: reply.number()?,
            watermark: Score(reply.number()?),
            joined_total: reply.number()?,
            called_total: reply.number()?,
            admitted_total: reply.number()?,
            no_shows_total: reply.number()?,
        })
    }
}
