//! The outbox: calls to the provider that are still to be made, claimed under a lease.

use super::{
    Connection, End, Ledger, LedgerError, locking, orders,
    rows::{signed, unsigned},
    settle, sql,
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
        // What is due, not what is new: a task whose transaction took long is found as soon as it is there.
        let ask = "SELECT EXISTS (SELECT 1 FROM outbox \
                   WHERE state = 'due' AND not_before_ms <= $1 AND lease_until_ms <= $1)";
        if !self.is_due(ask, now_ms).await? {
            return Ok(Vec::new());
        }
        self.write((now_ms, lease_until_ms, most), |tx, (now_ms, lease_until_ms, most)| {
            Box::pin(claim(tx, *now_ms, *lease_until_ms, *most))
        })
        .await
    }

    /// Notes that the provider took the task.
    pub async fn task_done(&self, task: &Task) -> Result<(), LedgerError> {
        self.write(task.clone(), |tx, task| {
            Box::pin(async move {
                sql("UPDATE outbox SET state = 'done' WHERE kind = $1 AND subject = $2 AND state = 'due'")
                    .bind(task.kind.word())
                    .bind(&task.subject)
                    .run(tx)
                    .await?;
                Ok(End::Commit(()))
            })
        })
        .await
    }

    /// Puts the task off until `not_before_ms`, unless another worker has it by now.
    pub async fn task_again(&self, task: &Task, not_before_ms: u64, error: String) -> Result<(), LedgerError> {
        self.write((task.clone(), not_before_ms, error), |tx, (task, not_before_ms, error)| {
            Box::pin(async move {
                sql("UPDATE outbox SET not_before_ms = $1, lease_until_ms = 0, last_error = $2 \
                     WHERE kind = $3 AND subject = $4 AND state = 'due' AND attempts = $5")
                .bind(signed(*not_before_ms))
                .bind(error)
                .bind(task.kind.word())
                .bind(&task.subject)
                .bind(task.attempts)
                .run(tx)
                .await?;
                Ok(End::Commit(()))
            })
        })
        .await
    }

    /// Parks the task for good. A charge that cannot be made ends its pending order with `end`, whose seats go back.
    pub async fn task_dead(&self, task: &Task, end: OrderStatus, error: String) -> Result<(), LedgerError> {
        self.write((task.clone(), end, error), |tx, (task, end, error)| {
            Box::pin(async move {
                if task.kind == TaskKind::Charge {
                    settle::end_pending(tx, &task.order, *end).await?;
                }
                sql("UPDATE outbox SET state = 'dead', last_error = $1 \
                     WHERE kind = $2 AND subject = $3 AND state = 'due'")
                .bind(error)
                .bind(task.kind.word())
                .bind(&task.subject)
                .run(tx)
                .await?;
                Ok(End::Commit(()))
            })
        })
        .await
    }

    /// Gives a pending order up: its charge is not tried again, its seats go back.
    pub async fn expire(&self, order: OrderId) -> Result<(), LedgerError> {
        self.write(order, |tx, order| {
            Box::pin(async move {
                if settle::end_pending(tx, order, OrderStatus::Expired).await? {
                    sql("UPDATE outbox SET state = 'dead', last_error = 'the order expired' \
                         WHERE kind = 'charge' AND subject = $1 AND state = 'due'")
                    .bind(order.as_str())
                    .run(tx)
                    .await?;
                }
                Ok(End::Commit(()))
            })
        })
        .await
    }

    /// Charges a pending order again that the provider says it knows nothing of.
    pub async fn charge_again(&self, order: OrderId, now_ms: u64) -> Result<(), LedgerError> {
        self.write((order, now_ms), |tx, (order, now_ms)| {
            Box::pin(async move {
                match orders::lock(tx, order).await? {
                    Some(order) if order.status == OrderStatus::Pending => {}
                    _ => return Ok(End::Rollback(())),
                }
                sql("UPDATE outbox SET state = 'due', not_before_ms = $1, lease_until_ms = 0 \
                     WHERE kind = 'charge' AND subject = $2 AND state = 'done'")
                .bind(signed(*now_ms))
                .bind(order.as_str())
                .run(tx)
                .await?;
                Ok(End::Commit(()))
            })
        })
        .await
    }
}

async fn claim(
    tx: &mut Connection,
    now_ms: u64,
    lease_until_ms: u64,
    most: u32,
) -> Result<End<Vec<Task>>, LedgerError> {
    let claim = locking!(
        "WITH mine AS MATERIALIZED (SELECT kind AS a_kind, subject AS a_subject FROM outbox \
         WHERE state = 'due' AND not_before_ms <= $2 AND lease_until_ms <= $2 ORDER BY not_before_ms LIMIT $3",
        "FOR NO KEY UPDATE SKIP LOCKED",
        ") UPDATE outbox SET lease_until_ms = $1, attempts = attempts + 1 FROM mine \
         WHERE kind = a_kind AND subject = a_subject RETURNING kind, subject, order_id, attempts"
    );
    let claimed: Vec<(String, String, String, i64)> =
        sql(claim).bind(signed(lease_until_ms)).bind(signed(now_ms)).bind(most).all(tx).await?;
    let mut tasks = Vec::with_capacity(claimed.len());
    for (kind, subject, order, attempts) in claimed {
        let order = order.parse().map_err(|_| LedgerError::Unreadable("order id"))?;
        let order = orders::find(tx, &order).await?.ok_or(LedgerError::Unreadable("task"))?;
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
}
