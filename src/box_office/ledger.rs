//! The ledger: orders, payments and sold seats in SQL. The source of truth; nothing outside this folder speaks SQL.
//!
//! `SQLite` in one file: one connection writes (`BEGIN IMMEDIATE`, so that a transaction never has to give way half done),
//! a few read beside it. The SQL keeps to what `PostgreSQL` also understands.

mod audit;
mod idempotency;
mod orders;
mod outbox;
mod rows;
mod settle;

use std::{path::Path, time::Duration};

use futures_util::future::BoxFuture;
use sqlx::{
    SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

pub use self::{
    audit::LedgerCounts,
    idempotency::StoredAnswer,
    orders::{NewOrder, Order, PlaceOutcome},
    outbox::{Task, TaskKind},
    settle::{Notice, Outcome, Settled},
};
use super::config::EventConfig;

/// Another process may write the same file; its transactions are short.
const BUSY: Duration = Duration::from_secs(5);
/// How long a caller waits for its turn to write before it is told to come back.
const TURN: Duration = Duration::from_secs(5);
const READERS: u32 = 4;

/// The ledger could not do its part. What was asked has either happened as a whole or not at all.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Another writer had the file, or too many wait for a turn. Try again.
    #[error("the ledger is busy")]
    Busy,
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

impl From<sqlx::Error> for LedgerError {
    fn from(error: sqlx::Error) -> Self {
        // 5 and 6, SQLITE_BUSY and SQLITE_LOCKED, with their extended codes (primary code in the low byte).
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code)
            .and_then(|code| code.parse::<u32>().ok());
        match (&error, code.map(|code| code & 0xff)) {
            (sqlx::Error::PoolTimedOut, _) | (_, Some(5 | 6)) => Self::Busy,
            _ => Self::Database(error),
        }
    }
}

/// Why a ledger would not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenLedgerError {
    /// The address is of a kind this version does not have.
    #[error("database {0:?}: use a file's path, or sqlite:PATH")]
    Address(String),
    /// The file cannot be opened or created.
    #[error("cannot open the ledger {path:?}: {error}. Its folder must exist and be writable")]
    Open {
        /// As configured.
        path: String,
        /// What the database said.
        error: sqlx::Error,
    },
    /// The schema could not be brought up to date.
    #[error("cannot migrate the ledger: {0}. Was it written by a newer version?")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// The event cannot be written.
    #[error(
        "cannot offer {offered} general-admission tickets: {taken} are already taken in the ledger. \
         Set general_admission to at least that"
    )]
    Oversold {
        /// As configured.
        offered: u32,
        /// As ordered.
        taken: u64,
    },
    /// The ledger opened, then failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// How a transaction ends.
enum End<T> {
    Commit(T),
    Rollback(T),
}

/// The SQL record. Cloning shares the connections.
#[derive(Debug, Clone)]
pub struct Ledger {
    writer: SqlitePool,
    readers: SqlitePool,
}

impl Ledger {
    /// Opens or creates the ledger at `address`, a path or `sqlite:PATH`, and brings its schema up to date.
    pub async fn open(address: &str) -> Result<Self, OpenLedgerError> {
        let path = file_of(address).ok_or_else(|| OpenLedgerError::Address(redact(address)))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .foreign_keys(true)
            .journal_mode(SqliteJournalMode::Wal)
            // Money: a commit that was reported must survive a power cut.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY);
        let failed = |error| OpenLedgerError::Open { path: path.display().to_string(), error };
        let writer =
            SqlitePoolOptions::new().max_connections(1).acquire_timeout(TURN).connect_with(options.clone()).await;
        let writer = writer.map_err(failed)?;
        sqlx::migrate!("src/box_office/migrations/sqlite").run(&writer).await?;
        let readers = SqlitePoolOptions::new().max_connections(READERS).acquire_timeout(TURN);
        let readers = readers.connect_with(options.pragma("query_only", "1")).await.map_err(failed)?;
        Ok(Self { writer, readers })
    }

    /// Writes what is sold. The name, the price and the number of tickets follow the configuration; orders keep theirs.
    pub async fn put_event(&self, event: &EventConfig) -> Result<(), OpenLedgerError> {
        let (offered, event) = (event.general_admission, event.clone());
        let taken = self
            .write(move |tx| {
                Box::pin(async move {
                    let taken: Option<i64> = sqlx::query_scalar("SELECT tickets_taken FROM events WHERE id = $1")
                        .bind(&event.id)
                        .fetch_optional(&mut *tx)
                        .await?;
                    let taken = taken.unwrap_or(0);
                    if taken > i64::from(event.general_admission) {
                        return Ok(End::Rollback(taken));
                    }
                    sqlx::query(
                        "INSERT INTO events (id, name, currency, price_minor, tickets_total) VALUES ($1, $2, $3, $4, $5) \
                         ON CONFLICT (id) DO UPDATE SET name = excluded.name, currency = excluded.currency, \
                         price_minor = excluded.price_minor, tickets_total = excluded.tickets_total",
                    )
                    .bind(&event.id)
                    .bind(&event.name)
                    .bind(&event.currency)
                    .bind(rows::signed(event.price_minor))
                    .bind(i64::from(event.general_admission))
                    .execute(&mut *tx)
                    .await?;
                    Ok(End::Commit(taken))
                })
            })
            .await?;
        match u64::try_from(taken) {
            Ok(taken) if taken > u64::from(offered) => Err(OpenLedgerError::Oversold { offered, taken }),
            _ => Ok(()),
        }
    }

    /// Runs `work` in one write transaction. It runs on a task of its own, so a caller that goes away (a client that
    /// hung up) cannot cut it in the middle.
    async fn write<T, F>(&self, work: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<End<T>, LedgerError>> + Send + 'static,
    {
        let writer = self.writer.clone();
        let transaction = tokio::spawn(async move {
            let mut tx = writer.begin_with("BEGIN IMMEDIATE").await?;
            match work(&mut tx).await {
                Ok(End::Commit(value)) => {
                    tx.commit().await?;
                    Ok(value)
                }
                Ok(End::Rollback(value)) => {
                    tx.rollback().await?;
                    Ok(value)
                }
                Err(error) => {
                    // The first error is the one to tell; should this fail too, the connection is not used again.
                    let _rolled_back = tx.rollback().await;
                    Err(error)
                }
            }
        });
        transaction.await.map_err(|_| LedgerError::Interrupted)?
    }
}

fn file_of(address: &str) -> Option<&Path> {
    let path = match address.strip_prefix("sqlite:") {
        Some(rest) => rest.strip_prefix("//").unwrap_or(rest),
        None if address.contains("://") => return None,
        None => address,
    };
    (!path.is_empty() && !path.contains(":memory:")).then(|| Path::new(path))
}

/// An address may carry a password between `://` and `@`.
fn redact(address: &str) -> String {
    match (address.find("://"), address.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 <= at => format!("{}…{}", &address[..scheme + 3], &address[at..]),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in ["a.db", "/x/a.db", "sqlite:a.db", "sqlite:///x/a.db", "sqlite://a.db"] {
            assert!(file_of(good).is_some(), "{good}");
        }
        for bad in ["", "sqlite:", "sqlite::memory:", "postgres://u:secret@host/db", "mysql://x"] {
            assert!(file_of(bad).is_none(), "{bad}");
        }
        assert_eq!(redact("postgres://u:secret@host/db"), "postgres://…@host/db");
    }
}
