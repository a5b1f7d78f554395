//! What can go wrong in a race.

use std::time::Duration;

use crate::{box_office::inventory::InventoryError, store::StoreError};

/// Why a race, or one buyer's attempt, came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum RaceError {
    /// The plan makes no sense.
    #[error("{value} {what}: use 1 to {most}")]
    OutOfRange {
        /// What there is too much or too little of.
        what: &'static str,
        /// How much was asked for.
        value: u32,
        /// The most.
        most: u32,
    },
    /// The plan takes days.
    #[error("a race of more than 24 hours: use a shorter --ramp or --deadline")]
    TooLong,
    /// The address is none that a race can use.
    #[error("the race's database has to be PostgreSQL: use postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    Address,
    /// Nobody answers there, or not to this user.
    #[error(
        "cannot use the database: {0}. Is PostgreSQL running, and are address, user and password in --database right?"
    )]
    Unreachable(#[source] sqlx::Error),
    /// The server has too few connections left.
    #[error(
        "the database has {left} connections left and the race wants {pool}. Use a smaller --pool, or raise \
         max_connections in postgresql.conf"
    )]
    TooFewConnections {
        /// As planned.
        pool: u32,
        /// As the server counts.
        left: i64,
    },
    /// The schema could not be made.
    #[error("cannot make the race's own schema: {0}. The user needs the right: GRANT CREATE ON DATABASE … TO …")]
    Schema(#[source] sqlx::Error),
    /// No answer at all within the time for it.
    #[error("the database did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// The database failed on the way.
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    /// The store failed on the way.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Somebody emptied the store meanwhile.
    #[error("the store lost the race's seats. Does something else flush this Redis?")]
    Lost,
    /// A lock's time was up before its owner was done.
    #[error("the lock ran out before the sale was done")]
    LockRanOut,
    /// The strategy was asked for without what it needs.
    #[error("there is no database")]
    NoDatabase,
    /// The race's deadline came first.
    #[error("not done by the deadline")]
    Deadline,
    /// A defect.
    #[error("an attempt panicked")]
    Panicked,
    /// Somebody stopped the race.
    #[error("interrupted")]
    Interrupted,
}

impl From<InventoryError> for RaceError {
    fn from(error: InventoryError) -> Self {
        match error {
            InventoryError::Store(error) => Self::Store(error),
            InventoryError::Lost => Self::Lost,
        }
    }
}
