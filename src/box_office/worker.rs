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
/// How long to wait for a turn to call the provider before looking again whether there is room for the work.
const TURN_PATIENCE: Duration = Duration::from_secs(30);
/// How long a charge that may be given up waits for a turn to ask whether it was made. Part of its lease.
const LAST_QUESTION_PATIENCE: Duration = Duration::from_secs(2);

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
    let free = u32::try_from(slots.available_permits()).unwrap_or(u32::MAX);
    if free == 0 {
        return Ok(());
    }
    // First the turn, then the task: nobody holds a lease while waiting.
    let pacer = &office.provider.pacer;
    let turns = tokio::select! {
        () = shutdown.stopped() => return Ok(()),
        turns = pacer.turns(free, TURN_PATIENCE) => turns,
    };
    if turns.calls == 0 {
        return Ok(());
    }
    let now_ms = office.clock.unix_millis();
    let claimed = office.ledger.claim_tasks(now_ms, now_ms.saturating_add(millis(lease)), turns.calls).await;
    pacer.used(turns, claimed.as_ref().map_or(0, Vec::len));
    let claimed = claimed?;
    if claimed.len() >= turns.calls as usize {
        office.task_due.notify_one();
    }
    for (nth, task) in (0..).zip(claimed) {
        let Ok(slot) = Arc::clone(slots).acquire_owned().await else { return Ok(()) };
        let office = Arc::clone(office);
        shutdown.spawn(async move {
            tokio::time::sleep(turns.after(nth)).await;
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
    let end = match (&error, task.kind) {
        // It stands in the queue, however often it is sent back there.
        (ProviderError::Busy(_), _) | (ProviderError::Unclear { .. }, TaskKind::Refund) => None,
        (ProviderError::Refused(_), TaskKind::Refund) => Some(OrderStatus::Refused),
        // Nothing was asked for before, so nothing can have been done.
        (ProviderError::Refused(_), TaskKind::Charge) if task.attempts <= 1 => Some(OrderStatus::Refused),
        (ProviderError::Unclear { .. }, TaskKind::Charge) if task.attempts < office.config.provider.charge_attempts => {
            None
        }
        (_, TaskKind::Charge) => match last_question(office, task).await? {
            Made::No if matches!(error, ProviderError::Refused(_)) => Some(OrderStatus::Refused),
            Made::No => Some(OrderStatus::Expired),
            Made::Unknown => None,
            Made::Yes => return Ok(()),
        },
    };
    if let Some(end) = end {
        tracing::error!(kind = ?task.kind, attempts = task.attempts, reason, "payment task parked as dead");
        office.ledger.task_dead(task, end, reason).await?;
        office.tell_due.notify_one();
        return Ok(());
    }
    tracing::debug!(kind = ?task.kind, attempts = task.attempts, reason, "payment task put off");
    let wait = match error {
        ProviderError::Busy(pause) => pause,
        ProviderError::Unclear { retry_after, .. } => backoff(task.attempts).max(retry_after.unwrap_or_default()),
        ProviderError::Refused(_) => backoff(task.attempts),
    };
    office.ledger.task_again(task, office.clock.unix_millis().saturating_add(millis(wait)), reason).await
}

/// Whether the provider has a charge.
enum Made {
    No,
    Yes,
    Unknown,
}

/// Asks about a charge that would be given up: money that was taken must not be forgotten. What the provider knows is
/// settled, what it has not decided yet is left to whoever asks about overdue orders.
async fn last_question(office: &Office, task: &Task) -> Result<Made, LedgerError> {
    if office.provider.pacer.turns(1, LAST_QUESTION_PATIENCE).await.calls == 0 {
        return Ok(Made::Unknown);
    }
    let Ok(charges) = office.provider.charges_of(&task.order).await else { return Ok(Made::Unknown) };
    if charges.is_empty() {
        return Ok(Made::No);
    }
    for notice in charges.into_iter().filter_map(|charge| charge.notice(&task.order)) {
        office.settle(notice).await?;
    }
    office.ledger.task_done(task).await?;
    Ok(Made::Yes)
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
