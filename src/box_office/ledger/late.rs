//! Orders that ended without a sale, and whether the provider is still to be asked about them.
//!
//! Their money may have been taken after all, and the webhook that says so lost. Each is asked about a few times, ever
//! later, and then no more.

use super::{
    Connection, End, Ledger, LedgerError, locking,
    orders::{self, Order},
    rows::signed,
    sql,
};
use crate::box_office::ids::OrderId;

/// How many answers of the provider about an ended order are enough.
pub const LATE_QUESTIONS: i64 = 5;

impl Ledger {
    /// Takes ended orders that are to be asked about, and puts off the next look at each: by `wait_ms` the first time,
    /// then by four times as much each time it was answered.
    pub async fn take_ended(&self, now_ms: u64, wait_ms: u64, most: u32) -> Result<Vec<Order>, LedgerError> {
        let ask = "SELECT EXISTS (SELECT 1 FROM orders WHERE asks_left > 0 AND poll_ms <= $1 \
                   AND status IN ('refused', 'expired'))";
        if !self.is_due(ask, now_ms).await? {
            return Ok(Vec::new());
        }
        self.write((now_ms, wait_ms, most), |tx, (now_ms, wait_ms, most)| {
            Box::pin(take_ended(tx, *now_ms, *wait_ms, *most))
        })
        .await
    }

    /// Notes that the provider said what it knows of an ended order.
    pub async fn asked_late(&self, order: OrderId) -> Result<(), LedgerError> {
        self.write(order, |tx, order| {
            Box::pin(async move {
                sql("UPDATE orders SET asks_left = asks_left - 1 WHERE id = $1 AND asks_left > 0")
                    .bind(order.as_str())
                    .run(tx)
                    .await?;
                Ok(End::Commit(()))
            })
        })
        .await
    }
}

async fn take_ended(tx: &mut Connection, now_ms: u64, wait_ms: u64, most: u32) -> Result<End<Vec<Order>>, LedgerError> {
    let take = locking!(
        "WITH mine AS MATERIALIZED (SELECT id AS taken FROM orders WHERE asks_left > 0 AND poll_ms <= $1 \
         AND status IN ('refused', 'expired') ORDER BY poll_ms LIMIT $2",
        "FOR NO KEY UPDATE SKIP LOCKED",
        ") UPDATE orders SET poll_ms = $1 + ($3 << CAST(2 * ($4 - asks_left) AS INTEGER)) \
         FROM mine WHERE id = taken RETURNING id"
    );
    let taken: Vec<(String,)> =
        sql(take).bind(signed(now_ms)).bind(most).bind(signed(wait_ms)).bind(LATE_QUESTIONS).all(tx).await?;
    let mut ended = Vec::with_capacity(taken.len());
    for (id,) in taken {
        let id = id.parse().map_err(|_| LedgerError::Unreadable("order id"))?;
        ended.extend(orders::find(tx, &id).await?);
    }
    Ok(End::Commit(ended))
}
