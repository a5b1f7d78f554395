//! What can go wrong with a database, sorted by what to do about it.

use sqlx::error::{DatabaseError, ErrorKind};

/// The ledger could not do its part. What was asked has either happened as a whole or not at all.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Another writer had the row or the file for too long, or too many wait for a turn. Try again.
    #[error("the ledger is busy")]
    Busy,
    /// The database cannot be reached, or the connection to it broke. What was being committed may have been. Try again.
    #[error("the ledger's database is away: {0}")]
    Away(sqlx::Error),
    /// A transaction lost a race, and lost it again each time it was repeated: a deadlock, a failure to serialize, or a
    /// row that another had just written.
    #[error("the ledger is busy: {0}")]
    Raced(sqlx::Error),
    /// The process is shutting down.
    #[error("the ledger was interrupted")]
    Interrupted,
    /// Anything else: a full disk, a defect.
    #[error("ledger: {0}")]
    Database(sqlx::Error),
    /// A row that this code cannot have written.
    #[error("ledger: unreadable {0}")]
    Unreadable(&'static str),
}

impl LedgerError {
    /// Whether the same again, a little later, may well succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Busy | Self::Away(_) | Self::Raced(_) | Self::Interrupted)
    }
}

impl From<sqlx::Error> for LedgerError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::PoolTimedOut => Self::Busy,
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::BeginFailed => Self::Away(error),
            sqlx::Error::Database(refusal) => match sort(&**refusal) {
                Sort::Busy => Self::Busy,
                Sort::Away => Self::Away(error),
                Sort::Raced => Self::Raced(error),
                Sort::Other => Self::Database(error),
            },
            _ => Self::Database(error),
        }
    }
}

enum Sort {
    Busy,
    Away,
    Raced,
    Other,
}

fn sort(refusal: &(dyn DatabaseError + 'static)) -> Sort {
    if refusal.kind() == ErrorKind::UniqueViolation {
        return Sort::Raced;
    }
    let code = refusal.code().unwrap_or_default();
    match code.as_ref() {
        // serialization_failure, deadlock_detected
        "40001" | "40P01" => Sort::Raced,
        // lock_not_available, query_canceled (by statement_timeout)
        "55P03" | "57014" => Sort::Busy,
        // admin_shutdown, crash_shutdown, cannot_connect_now, database_dropped, idle_session_timeout,
        // idle_in_transaction_session_timeout, read_only_sql_transaction (a standby: it failed over)
        "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "25P03" | "25006" => Sort::Away,
        // connection_exception, invalid_authorization_specification (while a password is being changed),
        // insufficient_resources (too_many_connections, disk_full, out_of_memory)
        code if code.len() == 5 && ["08", "28", "53"].contains(&&code[..2]) => Sort::Away,
        // SQLITE_BUSY and SQLITE_LOCKED, with their extended codes: the primary one is in the low byte.
        code if code.len() < 5 && matches!(code.parse::<u32>().map(|code| code & 0xff), Ok(5 | 6)) => Sort::Busy,
        _ => Sort::Other,
    }
}
