//! What the provider says becomes what the ledger says, in one transaction with the record that it was said.
//!
//! Notices come twice, late and in any order. Paid beats declined whichever comes first; a payment for seats that are
//! gone is paid back, once for each charge.

use super::{
    Connection, End, Ledger, LedgerError,
    late::LATE_QUESTIONS,
    orders::{self, Order},
    rows::{signed, status_word},
    sql,
};
use crate::box_office::{ids::OrderId, views::OrderStatus};

/// How a charge ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The money was taken.
    Captured,
    /// It was not, and will not be.
    Declined,
    /// It was given back.
    Refunded,
}

/// What the provider says about one charge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The provider's name of the event, by which repeats are known; `None` when we asked.
    pub event: Option<String>,
    /// The provider's name of the charge.
    pub charge: String,
    /// Our name of the order.
    pub order: OrderId,
    /// How it ended.
    pub outcome: Outcome,
    /// In the currency's minor unit.
    pub amount_minor: u64,
    /// ISO 4217 code.
    pub currency: String,
}

/// What a notice changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The order's status is new.
    Status(OrderStatus),
    /// The charge is owed back to the buyer.
    RefundOwed,
    /// Nothing that was not known before.
    Nothing,
    /// The event was seen before.
    Repeat,
    /// The sum or the currency is not the order's; recorded for a person, the order stays as it is.
    Mismatch,
    /// There is no such order, yet.
    UnknownOrder,
}

impl Ledger {
    /// Applies a notice. Repeats and old news change nothing.
    pub async fn settle(&self, notice: Notice, now_ms: u64) -> Result<Settled, LedgerError> {
        self.write((notice, now_ms), |tx, (notice, now_ms)| Box::pin(settle(tx, notice, *now_ms))).await
    }
}

async fn settle(tx: &mut Connection, notice: &Notice, now_ms: u64) -> Result<End<Settled>, LedgerError> {
    if let Some(event) = &notice.event {
        // The same event at the same time waits here until the first one's effect is durable, or undone.
        let new = sql("INSERT INTO webhook_events (id, received_ms) VALUES ($1, $2) ON CONFLICT DO NOTHING")
            .bind(event)
            .bind(signed(now_ms))
            .run(tx)
            .await?;
        if new == 0 {
            return Ok(End::Rollback(Settled::Repeat));
        }
    }
    let Some(order) = orders::lock(tx, &notice.order).await? else {
        return Ok(End::Rollback(Settled::UnknownOrder));
    };
    let known: Option<(String, String)> =
        sql("SELECT state, order_id FROM payments WHERE charge = $1").bind(&notice.charge).optional(tx).await?;
    let known = match &known {
        Some((_, of)) if of != order.id.as_str() => return Ok(End::Commit(Settled::Mismatch)),
        Some((state, _)) => Some(state.as_str()),
        None => None,
    };
    if (notice.amount_minor, &notice.currency) != (order.amount_minor, &order.currency) {
        if known.is_none() && notice.outcome == Outcome::Captured {
            record(tx, notice, "mismatched", now_ms).await?;
        }
        return Ok(End::Commit(Settled::Mismatch));
    }
    let settled = match (notice.outcome, known) {
        // Money that moved is not unsaid by late or repeated news.
        (Outcome::Captured | Outcome::Declined, Some("captured" | "refunded"))
        | (Outcome::Refunded, Some("refunded")) => Settled::Nothing,
        (Outcome::Captured, _) => {
            record(tx, notice, "captured", now_ms).await?;
            captured(tx, &order, &notice.charge, now_ms).await?
        }
        (Outcome::Declined, _) => {
            record(tx, notice, "declined", now_ms).await?;
            declined(tx, &order).await?
        }
        (Outcome::Refunded, _) => {
            record(tx, notice, "refunded", now_ms).await?;
            refunded(tx, &order, &notice.charge).await?
        }
    };
    Ok(End::Commit(settled))
}

async fn captured(tx: &mut Connection, order: &Order, charge: &str, now_ms: u64) -> Result<Settled, LedgerError> {
    finish_task(tx, "charge", order.id.as_str()).await?;
    let has_tickets = match order.status {
        OrderStatus::Pending => true,
        // Late: the seats went back. They are this buyer's again if nobody else has them.
        OrderStatus::Refused | OrderStatus::Expired => take_again(tx, order).await?,
        // A second charge for one order.
        OrderStatus::Confirmed | OrderStatus::Refunded => false,
    };
    if has_tickets {
        set_status(tx, &order.id, OrderStatus::Confirmed).await?;
        return Ok(Settled::Status(OrderStatus::Confirmed));
    }
    sql("INSERT INTO outbox (kind, subject, order_id, state, not_before_ms) VALUES ('refund', $1, $2, 'due', $3) \
         ON CONFLICT DO NOTHING")
    .bind(charge)
    .bind(order.id.as_str())
    .bind(signed(now_ms))
    .run(tx)
    .await?;
    Ok(Settled::RefundOwed)
}

async fn declined(tx: &mut Connection, order: &Order) -> Result<Settled, LedgerError> {
    finish_task(tx, "charge", order.id.as_str()).await?;
    let ended = end_pending(tx, &order.id, OrderStatus::Refused).await?;
    Ok(if ended { Settled::Status(OrderStatus::Refused) } else { Settled::Nothing })
}

async fn refunded(tx: &mut Connection, order: &Order, charge: &str) -> Result<Settled, LedgerError> {
    finish_task(tx, "refund", charge).await?;
    if matches!(order.status, OrderStatus::Refused | OrderStatus::Expired) {
        set_status(tx, &order.id, OrderStatus::Refunded).await?;
        return Ok(Settled::Status(OrderStatus::Refunded));
    }
    Ok(Settled::Nothing)
}

/// Ends a pending order without a sale and frees its tickets; whether it was pending.
pub(super) async fn end_pending(
    tx: &mut Connection,
    order: &OrderId,
    status: OrderStatus,
) -> Result<bool, LedgerError> {
    let Some(order) = orders::lock(tx, order).await? else { return Ok(false) };
    if order.status != OrderStatus::Pending {
        return Ok(false);
    }
    set_status(tx, &order.id, status).await?;
    if order.tickets.seats.is_empty() {
        sql("UPDATE events SET tickets_taken = tickets_taken - $1 WHERE id = $2")
            .bind(order.tickets.quantity)
            .bind(&order.event)
            .run(tx)
            .await?;
    } else {
        sql("UPDATE order_items SET active = 0 WHERE order_id = $1").bind(order.id.as_str()).run(tx).await?;
    }
    Ok(true)
}

/// Takes the tickets of an ended order again, all or none; whether they were free.
async fn take_again(tx: &mut Connection, order: &Order) -> Result<bool, LedgerError> {
    if order.tickets.seats.is_empty() {
        return orders::take_tickets(tx, order).await;
    }
    // Asked first: the constraint answers those who ask at the same time, and then the transaction is repeated.
    let taken: bool = sql("SELECT EXISTS (SELECT 1 FROM order_items mine JOIN order_items other \
         ON other.event = mine.event AND other.seat = mine.seat AND other.active = 1 WHERE mine.order_id = $1)")
    .bind(order.id.as_str())
    .value(tx)
    .await?;
    if !taken {
        sql("UPDATE order_items SET active = 1 WHERE order_id = $1").bind(order.id.as_str()).run(tx).await?;
    }
    Ok(!taken)
}

async fn set_status(tx: &mut Connection, order: &OrderId, status: OrderStatus) -> Result<(), LedgerError> {
    // Money may still be taken for what ended without a sale.
    let asks_left = if matches!(status, OrderStatus::Refused | OrderStatus::Expired) { LATE_QUESTIONS } else { 0 };
    sql("UPDATE orders SET status = $1, inventory_due = 1, asks_left = $2 WHERE id = $3")
        .bind(status_word(status))
        .bind(asks_left)
        .bind(order.as_str())
        .run(tx)
        .await?;
    Ok(())
}

async fn finish_task(tx: &mut Connection, kind: &str, subject: &str) -> Result<(), LedgerError> {
    sql("UPDATE outbox SET state = 'done' WHERE kind = $1 AND subject = $2").bind(kind).bind(subject).run(tx).await?;
    Ok(())
}

async fn record(tx: &mut Connection, notice: &Notice, state: &str, now_ms: u64) -> Result<(), LedgerError> {
    sql("INSERT INTO payments (charge, order_id, state, amount_minor, currency, updated_ms) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (charge) DO UPDATE SET state = excluded.state, \
         amount_minor = excluded.amount_minor, currency = excluded.currency, updated_ms = excluded.updated_ms")
    .bind(&notice.charge)
    .bind(notice.order.as_str())
    .bind(state)
    .bind(signed(notice.amount_minor))
    .bind(&notice.currency)
    .bind(signed(now_ms))
    .run(tx)
    .await?;
    Ok(())
}
