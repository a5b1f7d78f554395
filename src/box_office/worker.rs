//! The outbox worker: makes the calls to the provider that the ledger says are due.

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;

use super::{
    ledger::{LedgerError, Notice, Outcome, Settled, Task, TaskKind},
    office::Office,
    orders::millis,
    provider::ProviderError,
    views::OrderStatus,
};
use crate::shutdown::Shutdown;

/// Calls in flight at once.
const WIDTH: usize = 16;
/// Without a nudge the worker looks this often: for retries, and for tasks of a worker that died.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// A charge that stayed unclear this often, for more than six minutes, is given up. A refund never is: it is owed.
const MOST_ATTEMPTS: u32 = 20;

/// Works until told to stop; calls in flight then still end, within the provider's deadline.
pub async fn run(office: Arc<Office>, shutdown: Shutdown) {
    let slots = Arc::new(Semaphore::new(WIDTH));
    loop {
        tokio::select! {
            () = shutdown.stopped() => return,
            () = office.task_due.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        if let Err(error) = work_off(&office, &slots, &shutdown).await {
            tracing::warn!(%error, "cannot claim payment tasks; trying again");
        }
    }
}

async fn work_off(office: &Arc<Office>, slots: &Arc<Semaphore>, shutdown: &Shutdown) -> Result<(), LedgerError> {
    // Long enough for one try and its bookkeeping, so a living worker keeps its task.
    let lease = office.config.provider.timeout * 2 + Duration::from_secs(5);
    let now_ms = office.clock.unix_millis();
    let free = u32::try_from(slots.available_permits()).unwrap_or(u32::MAX);
    if free == 0 {
        return Ok(());
    }
    for task in office.ledger.claim_tasks(now_ms, now_ms.saturating_add(millis(lease)), free).await? {
        let Ok(slot) = Arc::clone(slots).acquire_owned().await else { return Ok(()) };
        let office = Arc::clone(office);
        shutdown.spawn(async move {
            if let Err(error) = attempt(&office, &task).await {
                // The lease runs out and the task comes back.
                tracing::warn!(%error, "cannot note the outcome of a payment task");
            }
            drop(slot);
            office.task_due.notify_one();
        });
    }
    Ok(())
}

async fn attempt(office: &Office, task: &Task) -> Result<(), LedgerError> {
    let tried = match task.kind {
        TaskKind::Charge => charge(office, task).await?,
        TaskKind::Refund => refund(office, task).await?,
    };
    let Err(error) = tried else { return Ok(()) };
    let reason = error.to_string();
    let end = match &error {
        ProviderError::Refused(_) => Some(OrderStatus::Refused),
        ProviderError::Unclear { .. } if task.kind == TaskKind::Charge && task.attempts >= MOST_ATTEMPTS => {
            Some(OrderStatus::Expired)
        }
        ProviderError::Unclear { .. } => None,
    };
    if let Some(end) = end {
        tracing::error!(kind = ?task.kind, attempts = task.attempts, reason, "payment task parked as dead");
        office.ledger.task_dead(task, end, reason).await?;
        office.tell_due.notify_one();
        return Ok(());
    }
    tracing::debug!(kind = ?task.kind, attempts = task.attempts, reason, "payment task put off");
    let asked = if let ProviderError::Unclear { retry_after, .. } = error { retry_after } else { None };
    let wait = backoff(task.attempts).max(asked.unwrap_or_default());
    office.ledger.task_again(task, office.clock.unix_millis().saturating_add(millis(wait)), reason).await
}

async fn charge(office: &Office, task: &Task) -> Result<Result<(), ProviderError>, LedgerError> {
    let charge = match office.provider.charge(task).await {
        Ok(charge) => charge,
        Err(error) => return Ok(Err(error)),
    };
    match charge.notice(&task.order) {
        Some(notice) => {
            office.settle(notice).await?;
        }
        None => office.ledger.task_done(task).await?,
    }
    Ok(Ok(()))
}

async fn refund(office: &Office, task: &Task) -> Result<Result<(), ProviderError>, LedgerError> {
    match office.provider.refund(task).await {
        Ok(true) => {
            let notice = Notice {
                event: None,
                charge: task.subject.clone(),
                order: task.order.clone(),
                outcome: Outcome::Refunded,
                amount_minor: task.amount_minor,
                currency: task.currency.clone(),
            };
            office.settle(notice).await?;
            Ok(Ok(()))
        }
        // Accepted, not done: the same question again later tells.
        Ok(false) => Ok(Err(ProviderError::Unclear { reason: "refund under way".to_owned(), retry_after: None })),
        Err(error) => Ok(Err(error)),
    }
}

impl Office {
    /// Applies what the provider says, and lets those know who must act on it.
    pub async fn settle(&self, notice: Notice) -> Result<Settled, LedgerError> {
        let settled = self.ledger.settle(notice, self.clock.unix_millis()).await?;
        match settled {
            Settled::Status(_) => self.tell_due.notify_one(),
            Settled::RefundOwed => self.task_due.notify_one(),
            Settled::Mismatch => tracing::error!("a payment does not fit its order; recorded, not confirmed"),
            Settled::Nothing | Settled::Repeat | Settled::UnknownOrder => {}
        }
        Ok(settled)
    }
}

/// Doubles up to a cap, then ±20 % so that tasks which failed together do not come back together.
fn backoff(attempts: u32) -> Duration {
    let doubled = FIRST_RETRY.saturating_mul(1 << attempts.saturating_sub(1).min(10));
    doubled.min(LONGEST_RETRY).mul_f64(rand::random_range(0.8..1.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_slow_down_and_spread() {
        assert!(backoff(1) < Duration::from_millis(301));
        assert!(backoff(4) >= Duration::from_millis(1600));
        let long: Vec<Duration> = (0..50).map(|_| backoff(u32::MAX)).collect();
        assert!(long.iter().all(|wait| (24..=36).contains(&wait.as_secs())));
        assert!(long.iter().any(|wait| *wait != long[0]));
    }
}
