//! The outbox: calls to the provider that are still to be made, claimed under a lease.

use super::{
    End, Ledger, LedgerError, orders,
    rows::{signed, unsigned},
    settle,
};
use crate::box_office::{ids::OrderId, views::OrderStatus};

/// What to ask of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// Charge the order's amount. The subject is the order.
    Charge,
    /// Pay a charge back. The subject is the charge.
    Refund,
}

impl TaskKind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Charge => "charge",
            Self::Refund => "refund",
        }
    }
}

/// One claimed task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// What to do.
    pub kind: TaskKind,
    /// To what; also the provider's idempotency key, the same on every try.
    pub subject: String,
    /// The order it belongs to.
    pub order: OrderId,
    /// How often it was tried, this time included.
    pub attempts: u32,
    /// In the currency's minor unit.
    pub amount_minor: u64,
    /// ISO 4217 code.
    pub currency: String,
}

impl Ledger {
    /// Claims at most `most` due tasks until `lease_until_ms`; those of a worker that died come back after its lease.
    pub async fn claim_tasks(&self, now_ms: u64, lease_until_ms: u64, most: u32) -> Result<Vec<Task>, LedgerError> {
        // An idle worker reads only: it must not take the writer's turn every second.
        let due: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM outbox WHERE state = 'due' AND not_before_ms <= $1 AND lease_until_ms <= $1)",
        )
        .bind(signed(now_ms))
        .fetch_one(&self.readers)
        .await?;
        if !due {
            return Ok(Vec::new());
        }
        self.write(move |tx| {
            Box::pin(async move {
                let claimed: Vec<(String, String, String, i64)> = sqlx::query_as(
                    "UPDATE outbox SET lease_until_ms = $1, attempts = attempts + 1 WHERE (kind, subject) IN \
                     (SELECT kind, subject FROM outbox WHERE state = 'due' AND not_before_ms <= $2 \
                     AND lease_until_ms <= $2 ORDER BY not_before_ms LIMIT $3) \
                     RETURNING kind, subject, order_id, attempts",
                )
                .bind(signed(lease_until_ms))
                .bind(signed(now_ms))
                .bind(most)
                .fetch_all(&mut *tx)
                .await?;
                let mut tasks = Vec::with_capacity(claimed.len());
                for (kind, subject, order, attempts) in claimed {
                    let order = order.parse().map_err(|_| LedgerError::Unreadable("order id"))?;
                    let order = orders::find(&mut *tx, &order).await?.ok_or(LedgerError::Unreadable("task"))?;
                    let kind = if kind == "refund" { TaskKind::Refund } else { TaskKind::Charge };
                    tasks.push(Task {
                        kind,
                        subject,
                        attempts: u32::try_from(unsigned(attempts)?).unwrap_or(u32::MAX),
                        amount_minor: order.amount_minor,
                        currency: order.currency,
                        order: order.id,
                    });
                }
                Ok(End::Commit(tasks))
            })
        })
        .await
    }

    /// Notes that the provider took the task.
    pub async fn task_done(&self, task: &Task) -> Result<(), LedgerError> {
        let (kind, subject) = (task.kind.word(), task.subject.clone());
        self.write(move |tx| {
            Box::pin(async move {
                sqlx::query("UPDATE outbox SET state = 'done' WHERE kind = $1 AND subject = $2 AND state = 'due'")
                    .bind(kind)
                    .bind(subject)
                    .execute(tx)
                    .await?;
                Ok(End::Commit(()))
            })
        })
        .await
    }

    /// Puts the task off until `not_before_ms`.
    pub async fn task_again(&self, task: &Task, not_before_ms: u64, error: String) -> Result<(), LedgerError> {
        let (kind, subject) = (task.kind.word(), task.subject.clone());
        self.write(move |tx| {
            Box::pin(async move {
                sqlx::query(
                    "UPDATE outbox SET not_before_ms = $1, lease_until_ms = 0, last_error = $2 \
                     WHERE kind = $3 AND subject = $4 AND state = 'due'",
                )
                .bind(signed(not_before_ms))
                .bind(error)
                .bind(kind)
                .bind(subject)
                .execute(tx)
                .await?;
                Ok(End::Commit(()))
            })
        })
        .await
    }

    /// Parks the task for good. A charge that cannot be made ends its pending order with `end`, whose seats go back.
    pub async fn task_dead(&self, task: &Task, end: OrderStatus, error: String) -> Result<(), LedgerError> {
        let task = task.clone();
        self.write(move |tx| {
            Box::pin(async move {
                sqlx::query(
                    "UPDATE outbox SET state = 'dead', last_error = $1 \
                     WHERE kind = $2 AND subject = $3 AND state = 'due'",
                )
                .bind(error)
                .bind(task.kind.word())
                .bind(&task.subject)
                .execute(&mut *tx)
                .await?;
                if task.kind == TaskKind::Charge {
                    settle::end_pending(tx, &task.order, end).await?;
                }
                Ok(End::Commit(()))
            })
        })
        .await
    }

    /// Gives a pending order up: its charge is not tried again, its seats go back.
    pub async fn expire(&self, order: OrderId) -> Result<(), LedgerError> {
        self.write(move |tx| {
            Box::pin(async move {
                if settle::end_pending(tx, &order, OrderStatus::Expired).await? {
                    sqlx::query(
                        "UPDATE outbox SET state = 'dead', last_error = 'the order expired' \
                         WHERE kind = 'charge' AND subject = $1 AND state = 'due'",
                    )
                    .bind(order.as_str())
                    .execute(tx)
                    .await?;
                }
                Ok(End::Commit(()))
            })
        })
        .await
    }

    /// Charges a pending order again that the provider says it knows nothing of.
    pub async fn charge_again(&self, order: OrderId, now_ms: u64) -> Result<(), LedgerError> {
        self.write(move |tx| {
            Box::pin(async move {
                sqlx::query(
                    "UPDATE outbox SET state = 'due', not_before_ms = $1, lease_until_ms = 0 \
                     WHERE kind = 'charge' AND subject = $2 AND state = 'done' \
                     AND EXISTS (SELECT 1 FROM orders WHERE id = $2 AND status = 'pending')",
                )
                .bind(signed(now_ms))
                .bind(order.as_str())
                .execute(tx)
                .await?;
                Ok(End::Commit(()))
            })
        })
        .await
    }
}
