//! The ledger: orders, payments and sold seats in SQL. The source of truth; nothing outside this folder speaks SQL.
//!
//! | module | holds |
//! | --- | --- |
//! | [`orders`], [`idempotency`], [`outbox`], [`settle`], [`late`], [`audit`] | what is recorded, one text for both databases |
//! | [`mod@sql`], [`rows`] | how a text reaches the database that there is |
//! | [`transaction`], [`pools`], [`error`] | whole or not at all, again when a race was lost |
//! | [`open`], [`address`], [`server`], [`migrations`] | which database, and whether it will do |
//!
//! # Two databases
//!
//! `SQLite`, in one file: one connection writes, so transactions come one after the other. `PostgreSQL`: they come
//! together, and every one that changes an order locks its row first. The order of locks is the same everywhere, which
//! leaves few deadlocks to be repeated: the name of the webhook or key, the order, its seats in their names' order or
//! the event's counter, its payments and tasks. Whoever only takes tasks skips those that are locked.

mod address;
mod audit;
mod error;
mod idempotency;
mod late;
mod migrations;
mod open;
mod orders;
mod outbox;
mod pools;
mod rows;
mod secrets;
mod server;
mod settle;
mod sql;
mod transaction;

pub use self::{
    audit::LedgerCounts,
    error::LedgerError,
    idempotency::StoredAnswer,
    migrations::{Migrations, migrate},
    open::OpenLedgerError,
    orders::{NewOrder, Order, PlaceOutcome},
    outbox::{Task, TaskKind},
    settle::{Notice, Outcome, Settled},
};
use self::{
    pools::Pools,
    sql::{Connection, locking, sql},
    transaction::{End, Mode},
};
use super::config::EventConfig;

/// The SQL record. Cloning shares the connections.
#[derive(Debug, Clone)]
pub struct Ledger {
    pools: Pools,
}

impl Ledger {
    /// Writes what is sold. The name, the price and the number of tickets follow the configuration; orders keep theirs.
    pub async fn put_event(&self, event: &EventConfig) -> Result<(), OpenLedgerError> {
        let taken = self.write(event.clone(), |tx, event| Box::pin(put_event(tx, event))).await?;
        match u64::try_from(taken) {
            Ok(taken) if taken > u64::from(event.general_admission) => {
                Err(OpenLedgerError::Oversold { offered: event.general_admission, taken })
            }
            _ => Ok(()),
        }
    }
}

async fn put_event(tx: &mut Connection, event: &EventConfig) -> Result<End<i64>, LedgerError> {
    let taken = locking!("SELECT tickets_taken FROM events WHERE id = $1", "FOR NO KEY UPDATE", "");
    let taken: Option<(i64,)> = sql(taken).bind(&event.id).optional(tx).await?;
    let taken = taken.map_or(0, |(taken,)| taken);
    if taken > i64::from(event.general_admission) {
        return Ok(End::Rollback(taken));
    }
    sql("INSERT INTO events (id, name, currency, price_minor, tickets_total) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, currency = excluded.currency, \
         price_minor = excluded.price_minor, tickets_total = excluded.tickets_total")
    .bind(&event.id)
    .bind(&event.name)
    .bind(&event.currency)
    .bind(rows::signed(event.price_minor))
    .bind(event.general_admission)
    .run(tx)
    .await?;
    Ok(End::Commit(taken))
}
