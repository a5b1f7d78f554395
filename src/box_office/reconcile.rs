//! What keeps the inventory, the ledger and the provider in step without anybody asking.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};

use super::{
    ledger::{LedgerError, Order, Settled},
    office::{Office, OfficeError},
    orders::millis,
    repair,
    views::OrderStatus,
    worker,
};
use crate::shutdown::Shutdown;

const SWEEP_EVERY: Duration = Duration::from_secs(1);
const TELL_EVERY: Duration = Duration::from_secs(1);
const TELL_AT_MOST: u32 = 200;
const POLL_EVERY: Duration = Duration::from_millis(500);
const POLL_AT_MOST: u32 = 50;
const POLL_WIDTH: usize = 8;
/// How long one question of each round waits for its turn to call the provider. The others are only asked when nobody
/// else wants to call: charges go first.
const POLL_PATIENCE: Duration = Duration::from_secs(5);
/// How long after the first question about an order that ended without a sale the second is asked, in `poll_after`s.
const LATE_AFTER: u32 = 6;
const FORGET_EVERY: Duration = Duration::from_mins(1);
/// How long a client may retry under the same key.
const KEYS_LAST: Duration = Duration::from_hours(24);

/// Starts the background tasks of a box office.
pub fn start(office: &Arc<Office>, shutdown: &Shutdown) {
    shutdown.spawn(worker::run(Arc::clone(office), shutdown.clone()));
    shutdown.spawn(tell(Arc::clone(office), shutdown.clone()));
    shutdown.spawn(sweep(Arc::clone(office), shutdown.clone()));
    shutdown.spawn(poll(Arc::clone(office), shutdown.clone()));
    shutdown.spawn(repair::run(Arc::clone(office), shutdown.clone()));
    shutdown.spawn(forget(Arc::clone(office), shutdown.clone()));
}

/// Waits; false when it is time to stop instead.
pub async fn pause(shutdown: &Shutdown, duration: Duration) -> bool {
    tokio::select! {
        () = shutdown.stopped() => false,
        () = tokio::time::sleep(duration) => true,
    }
}

/// Returns lapsed holds: as soon as the store says so, and every second for certain.
async fn sweep(office: Arc<Office>, shutdown: Shutdown) {
    let mut due = office.inventory.sweeps_due().chain(stream::pending());
    loop {
        tokio::select! {
            () = shutdown.stopped() => return,
            _ = due.next() => {}
            () = tokio::time::sleep(SWEEP_EVERY) => {}
        }
        loop {
            match office.inventory.sweep().await {
                Ok((_, true)) => {}
                Ok((_, false)) => break,
                Err(error) => {
                    tracing::warn!(%error, "cannot sweep lapsed holds; trying again");
                    break;
                }
            }
        }
    }
}

/// Tells the inventory what became of orders. The ledger remembers whom it still has to tell, so a crash or an absent
/// store only delays it.
async fn tell(office: Arc<Office>, shutdown: Shutdown) {
    loop {
        tokio::select! {
            () = shutdown.stopped() => return,
            () = office.tell_due.notified() => {}
            () = tokio::time::sleep(TELL_EVERY) => {}
        }
        while let Some(more) = office.tell_some().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot tell the inventory about orders; trying again");
            None
        }) {
            if !more {
                break;
            }
        }
    }
}

/// Asks the provider about orders whose outcome is overdue, and about those that ended without a sale. Every node does:
/// each order is taken by one of them.
async fn poll(office: Arc<Office>, shutdown: Shutdown) {
    while pause(&shutdown, POLL_EVERY).await {
        if let Err(error) = office.poll_overdue().await {
            tracing::warn!(%error, "cannot look for overdue orders; trying again");
        }
        if let Err(error) = office.ask_late().await {
            tracing::warn!(%error, "cannot look for payments of orders that ended; trying again");
        }
    }
}

/// Forgets answers nobody will ask for again.
async fn forget(office: Arc<Office>, shutdown: Shutdown) {
    while pause(&shutdown, FORGET_EVERY).await {
        let before_ms = office.clock.unix_millis().saturating_sub(millis(KEYS_LAST));
        if let Err(error) = office.ledger.forget_answers(before_ms).await {
            tracing::warn!(%error, "cannot forget old answers; trying again");
        }
    }
}

impl Office {
    /// Whether there may be more to tell; `None` when there was nothing.
    async fn tell_some(&self) -> Result<Option<bool>, OfficeError> {
        let orders = self.ledger.orders_to_tell(TELL_AT_MOST).await?;
        if orders.is_empty() {
            return Ok(None);
        }
        let more = orders.len() >= TELL_AT_MOST as usize;
        let mut told = Vec::with_capacity(orders.len());
        let mut failure = None;
        for order in orders {
            match self.tell_one(&order).await {
                Ok(()) => told.push((order.id, order.status)),
                Err(OfficeError::Lost) => {
                    failure = Some(self.rebuild_if_lost().await);
                    break;
                }
                Err(error) => {
                    failure = Some(Err(error));
                    break;
                }
            }
        }
        if !told.is_empty() {
            self.ledger.told(told).await?;
        }
        failure.unwrap_or(Ok(()))?;
        Ok(Some(more))
    }

    pub(super) async fn tell_one(&self, order: &Order) -> Result<(), OfficeError> {
        match order.status {
            OrderStatus::Pending | OrderStatus::Confirmed => self.put_back(order).await,
            OrderStatus::Refused | OrderStatus::Expired | OrderStatus::Refunded => {
                self.inventory.refuse(&order.hold).await?;
                Ok(())
            }
        }
    }

    async fn poll_overdue(&self) -> Result<(), LedgerError> {
        let now_ms = self.clock.unix_millis();
        let next_ms = now_ms.saturating_add(millis(self.config.provider.poll_after));
        let mut orders = self.ledger.take_overdue(now_ms, next_ms, POLL_AT_MOST).await?;
        if !orders.is_empty() {
            // Where turns are few, not always the same order shall get the one that is sure.
            let start = rand::random_range(0..orders.len());
            orders.rotate_left(start);
        }
        stream::iter(orders.into_iter().enumerate())
            .for_each_concurrent(POLL_WIDTH, |(place, order)| async move {
                let patience = if place == 0 { POLL_PATIENCE } else { Duration::ZERO };
                if let Err(error) = self.poll_one(&order, now_ms, patience).await {
                    tracing::warn!(%error, "cannot settle an overdue order; trying again");
                }
            })
            .await;
        Ok(())
    }

    async fn poll_one(&self, order: &Order, now_ms: u64, patience: Duration) -> Result<(), OfficeError> {
        // It must not lapse in the store while the ledger has it.
        if !self.keep(order).await? {
            return Ok(());
        }
        let turns = self.provider.pacer.turns(1, patience).await;
        if turns.calls == 0 {
            return Ok(());
        }
        let charges = match self.provider.charges_of(&order.id).await {
            Ok(charges) => charges,
            Err(error) => {
                tracing::debug!(%error, "the provider cannot say what became of an order");
                return Ok(());
            }
        };
        let unknown = charges.is_empty();
        for notice in charges.into_iter().filter_map(|charge| charge.notice(&order.id)) {
            self.settle(notice).await?;
        }
        if now_ms.saturating_sub(order.created_ms) >= millis(self.config.provider.payment_ttl) {
            // Changes nothing for an order that one of the charges has just ended.
            self.ledger.expire(order.id.clone()).await?;
            self.tell_due.notify_one();
        } else if unknown {
            self.ledger.charge_again(order.id.clone(), now_ms).await?;
            self.task_due.notify_one();
        }
        Ok(())
    }

    /// Money may have been taken for an order after it ended, and the webhook lost.
    async fn ask_late(&self) -> Result<(), LedgerError> {
        let wait_ms = millis(self.config.provider.poll_after.saturating_mul(LATE_AFTER));
        let ended = self.ledger.take_ended(self.clock.unix_millis(), wait_ms, POLL_AT_MOST).await?;
        stream::iter(ended)
            .for_each_concurrent(POLL_WIDTH, |order| async move {
                if let Err(error) = self.ask_late_about(&order).await {
                    tracing::warn!(%error, "cannot settle a late payment; trying again");
                }
            })
            .await;
        Ok(())
    }

    async fn ask_late_about(&self, order: &Order) -> Result<(), LedgerError> {
        // Only in turns that nobody else wants; without one or without an answer it is asked again after the same wait.
        if self.provider.pacer.turns(1, Duration::ZERO).await.calls == 0 {
            return Ok(());
        }
        let Ok(charges) = self.provider.charges_of(&order.id).await else { return Ok(()) };
        for notice in charges.into_iter().filter_map(|charge| charge.notice(&order.id)) {
            if let Settled::Status(OrderStatus::Confirmed) | Settled::RefundOwed = self.settle(notice).await? {
                tracing::warn!("an order that had ended was paid, and no webhook said so");
            }
        }
        self.ledger.asked_late(order.id.clone()).await
    }
}
