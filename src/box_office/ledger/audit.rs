//! The ledger, counted in one reading.

use super::{Connection, End, Ledger, LedgerError, Mode, rows::unsigned, sql};

/// How many of everything, at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerCounts {
    pub pending: u64,
    pub confirmed: u64,
    pub refused: u64,
    pub expired: u64,
    pub refunded: u64,
    /// Tickets of confirmed orders.
    pub tickets_confirmed: u64,
    /// General-admission tickets among them.
    pub general_confirmed: u64,
    /// Seats of confirmed orders, counted once for each order that has them.
    pub seats_sold: u64,
    /// Seats of confirmed orders, each counted once.
    pub distinct_seats_sold: u64,
    /// Charges that took money, whether or not it was given back since.
    pub captures: u64,
    /// Charges whose money was given back.
    pub refunds: u64,
    /// Charges whose money is still to be given back.
    pub refunds_owed: u64,
    /// Tasks of the outbox still to be done.
    pub tasks_due: u64,
    /// Tasks of the outbox given up.
    pub tasks_parked: u64,
    /// Orders of whose status the inventory has not been told.
    pub untold: u64,
    /// Charges that took another sum than was ordered.
    pub mismatched: u64,
    /// How often the provider is still asked about orders that ended without a sale.
    pub late_questions_left: u64,
}

impl Ledger {
    /// Counts everything about `event` at one instant.
    pub async fn counts(&self, event: &str) -> Result<LedgerCounts, LedgerError> {
        self.run(Mode::Snapshot, event.to_owned(), |tx, event| {
            Box::pin(async move {
                let mut counts = LedgerCounts::default();
                orders(tx, event, &mut counts).await?;
                payments(tx, event, &mut counts).await?;
                Ok(End::Rollback(counts))
            })
        })
        .await
    }
}

async fn orders(tx: &mut Connection, event: &str, counts: &mut LedgerCounts) -> Result<(), LedgerError> {
    let by_status: Vec<(String, i64, i64, i64, i64)> =
        sql("SELECT status, COUNT(*), CAST(SUM(quantity) AS BIGINT), CAST(SUM(inventory_due) AS BIGINT), \
         CAST(SUM(asks_left) AS BIGINT) FROM orders WHERE event = $1 GROUP BY status")
        .bind(event)
        .all(tx)
        .await?;
    for (status, orders, tickets, untold, asks_left) in by_status {
        let orders = unsigned(orders)?;
        counts.late_questions_left += unsigned(asks_left)?;
        counts.untold += unsigned(untold)?;
        match status.as_str() {
            "pending" => counts.pending = orders,
            "confirmed" => (counts.confirmed, counts.tickets_confirmed) = (orders, unsigned(tickets)?),
            "refused" => counts.refused = orders,
            "expired" => counts.expired = orders,
            _ => counts.refunded = orders,
        }
    }
    let seats: Option<(i64, i64)> =
        sql("SELECT COUNT(*), COUNT(DISTINCT i.seat) FROM order_items i JOIN orders o ON o.id = i.order_id \
         WHERE o.event = $1 AND o.status = 'confirmed'")
        .bind(event)
        .optional(tx)
        .await?;
    let (seats, distinct) = seats.unwrap_or_default();
    (counts.seats_sold, counts.distinct_seats_sold) = (unsigned(seats)?, unsigned(distinct)?);
    counts.general_confirmed = counts.tickets_confirmed.saturating_sub(counts.seats_sold);
    Ok(())
}

async fn payments(tx: &mut Connection, event: &str, counts: &mut LedgerCounts) -> Result<(), LedgerError> {
    let by_state: Vec<(String, i64)> =
        sql("SELECT p.state, COUNT(*) FROM payments p JOIN orders o ON o.id = p.order_id \
         WHERE o.event = $1 GROUP BY p.state")
        .bind(event)
        .all(tx)
        .await?;
    for (state, charges) in by_state {
        let charges = unsigned(charges)?;
        match state.as_str() {
            "captured" => counts.captures += charges,
            "refunded" => (counts.captures, counts.refunds) = (counts.captures + charges, charges),
            "mismatched" => counts.mismatched = charges,
            _ => {}
        }
    }
    let tasks: Vec<(String, String, i64)> =
        sql("SELECT t.kind, t.state, COUNT(*) FROM outbox t JOIN orders o ON o.id = t.order_id \
         WHERE o.event = $1 AND t.state <> 'done' GROUP BY t.kind, t.state")
        .bind(event)
        .all(tx)
        .await?;
    for (kind, state, tasks) in tasks {
        let tasks = unsigned(tasks)?;
        if kind == "refund" {
            counts.refunds_owed += tasks;
        }
        if state == "due" {
            counts.tasks_due += tasks;
        } else {
            counts.tasks_parked += tasks;
        }
    }
    Ok(())
}
