//! Why the queue gave no answer.

use super::RoomName;
use crate::store::StoreError;

/// Why a script of the queue did not do what it is for.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The room has no state: the store lost its data, or never had any. Configuring the room again cures that.
    #[error("room {0} is not configured in the store (yet)")]
    NotConfigured(RoomName),
    /// The room is in another epoch than [`Queue::go_by`](super::Queue::go_by) named: it was reset.
    #[error("room {0} has begun another epoch")]
    OtherEpoch(RoomName),
    /// The store itself.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl QueueError {
    /// Whether waiting, or another look at the room, may cure it.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NotConfigured(_) | Self::OtherEpoch(_) => true,
            Self::Store(error) => error.is_transient(),
        }
    }
}
