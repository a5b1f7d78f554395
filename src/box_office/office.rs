//! One event's box office at work: the inventory and the ledger together.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use ring::hmac;
use tokio::sync::{Notify, Semaphore};

use super::{
    best::Choosing,
    config::BoxOfficeConfig,
    ids::HoldId,
    inventory::{Acted, Held, Inventory, InventoryError, InventoryState, Tickets},
    ledger::{Ledger, LedgerError, Order},
    orders::RunningKeys,
    provider::Provider,
    repair::Reconciler,
    seats::SeatPlan,
    views::{HoldView, OrderStatus},
    window::Window,
};
use crate::{clock::SharedClock, store::StoreError};

/// Orders put back into the inventory at the same time.
const REBUILD_WIDTH: usize = 16;
/// A hold that is being paid for lasts at least this long without being renewed.
const PAYING: Duration = Duration::from_mins(2);

/// What a visitor did wrong is not in here: that is for each call's own answer.
#[derive(Debug, thiserror::Error)]
pub enum OfficeError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The store loses the inventory as fast as it is rebuilt.
    #[error("the store keeps losing the inventory")]
    Lost,
    /// The configuration has fewer seats than were sold.
    #[error("seat {seat} is ordered in the ledger, but is not among the {seats} seats configured: set more seats")]
    Plan {
        /// One such seat.
        seat: String,
        /// As configured.
        seats: u32,
    },
    /// A mistake of ours.
    #[error("{0}")]
    Defect(String),
}

impl From<InventoryError> for OfficeError {
    fn from(error: InventoryError) -> Self {
        match error {
            InventoryError::Store(error) => Self::Store(error),
            InventoryError::Lost => Self::Lost,
        }
    }
}

/// What everybody at the counter shares.
#[derive(Debug)]
pub struct Office {
    pub(super) config: BoxOfficeConfig,
    pub(super) plan: SeatPlan,
    pub(super) inventory: Inventory,
    pub(super) ledger: Ledger,
    pub(super) provider: Provider,
    /// Of names of holds under a key.
    pub(super) hold_secret: hmac::Key,
    pub(super) clock: SharedClock,
    pub(super) window: Window,
    pub(super) running: Arc<RunningKeys>,
    /// There may be a payment task to do.
    pub(super) task_due: Notify,
    /// There may be an order whose status the inventory does not know.
    pub(super) tell_due: Notify,
    pub(super) choosing: Choosing,
    pub(super) rebuilding: Semaphore,
    pub(super) reconciler: Reconciler,
}

impl Office {
    /// How long a hold lasts while its order is pending, unless it is renewed.
    pub fn paying_ttl(&self) -> Duration {
        self.config.hold_ttl.max(PAYING)
    }

    /// What `quantity` tickets cost, in the currency's minor unit.
    pub fn amount(&self, quantity: u32) -> u64 {
        self.config.event.price_minor.saturating_mul(u64::from(quantity))
    }

    /// Everything at one instant, from the store; from the ledger first when the store lost it.
    pub async fn state(&self) -> Result<InventoryState, OfficeError> {
        match self.inventory.state().await {
            Err(InventoryError::Lost) => {
                self.rebuild_if_lost().await?;
                Ok(self.inventory.state().await?)
            }
            other => Ok(other?),
        }
    }

    /// The name of the hold under this key of this visit: the same on every node, and nobody's guess. It is a tag of
    /// both under a secret that all nodes have from the ledger, and nobody rotates.
    fn hold_of_key(&self, visit: Option<&str>, key: &str) -> HoldId {
        // No header's value holds a line break.
        let whose = format!("hold\n{}\n{}\n{key}", self.config.event.id, visit.unwrap_or_default());
        let tag = hmac::sign(&self.hold_secret, whose.as_bytes());
        HoldId::numbered(tag.as_ref().iter().take(16).fold(0, |number, byte| number << 8 | u128::from(*byte)))
    }

    /// Holds all of `wanted` or nothing; under a key, what is held already under it is held on.
    pub async fn hold(
        &self,
        wanted: Tickets,
        visit: Option<&str>,
        key: Option<&str>,
    ) -> Result<Result<HoldView, Held>, OfficeError> {
        let Some(hold) = self.name_hold(visit, key).await? else { return Ok(Err(Held::Over)) };
        let ttl = self.config.hold_ttl;
        let outcome = match self.inventory.hold(&hold, &wanted, ttl).await {
            Err(InventoryError::Lost) => {
                self.rebuild_if_lost().await?;
                self.inventory.hold(&hold, &wanted, ttl).await?
            }
            other => other?,
        };
        self.show_hold(&hold, wanted.quantity, outcome)
    }

    /// The name of a hold to take; `None` when the one under this key became an order, which the store forgets some time
    /// later and the ledger does not.
    pub(super) async fn name_hold(
        &self,
        visit: Option<&str>,
        key: Option<&str>,
    ) -> Result<Option<HoldId>, OfficeError> {
        let Some(key) = key else { return Ok(Some(HoldId::random())) };
        let hold = self.hold_of_key(visit, key);
        Ok((!self.ledger.is_ordered(&hold).await?).then_some(hold))
    }

    /// What is held, as its buyer sees it.
    pub(super) fn show_hold(
        &self,
        hold: &HoldId,
        quantity: u32,
        outcome: Held,
    ) -> Result<Result<HoldView, Held>, OfficeError> {
        let Held::Until { deadline_ms, left, seats } = outcome else { return Ok(Err(outcome)) };
        let expires_at = i64::try_from(deadline_ms)
            .ok()
            .and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok())
            .ok_or_else(|| OfficeError::Defect("a deadline beyond the calendar".to_owned()))?;
        Ok(Ok(HoldView {
            hold: hold.as_str().to_owned(),
            event: self.config.event.id.clone(),
            amount_minor: self.amount(quantity),
            seats,
            quantity,
            expires_at: expires_at.to_string(),
            expires_in_seconds: left.as_secs(),
        }))
    }

    /// What a live hold holds, and until when.
    pub async fn held(&self, hold: &HoldId) -> Result<Result<HoldView, Acted>, OfficeError> {
        let Some(record) = self.inventory.record(hold).await? else { return Ok(Err(Acted::Unknown)) };
        let left = Duration::from_millis(record.deadline_ms.saturating_sub(self.clock.unix_millis()));
        if record.is_gone || left.is_zero() {
            return Ok(Err(Acted::Gone));
        }
        if record.is_paying {
            return Ok(Err(Acted::Paying));
        }
        let outcome = Held::Until { deadline_ms: record.deadline_ms, left, seats: record.tickets.seats };
        Ok(self.show_hold(hold, record.tickets.quantity, outcome)?.map_err(|_| Acted::Gone))
    }

    /// Gives back a hold that its buyer cancels.
    pub async fn cancel(&self, hold: &HoldId) -> Result<Acted, OfficeError> {
        Ok(self.inventory.cancel(hold).await?)
    }

    /// Writes into the store what the ledger knows. Idempotent; live holds stay.
    pub async fn rebuild(&self) -> Result<(), OfficeError> {
        // Before the ledger is read: what another node sells from now on is none of these, and stays sold.
        let mut sales = self.inventory.sales().await?;
        let orders = self.ledger.orders_in_force(&self.config.event.id).await?;
        let mut seats = orders.iter().flat_map(|order| &order.tickets.seats);
        if let Some(seat) = seats.find(|seat| !self.plan.has(seat)) {
            return Err(OfficeError::Plan { seat: seat.clone(), seats: self.config.event.seats });
        }
        for order in orders.iter().filter(|order| order.status == OrderStatus::Confirmed) {
            sales.remove(order.id.as_str());
        }
        self.inventory.open().await?;
        for (order, seats) in sales {
            self.inventory.forget_sale(&order, seats).await?;
        }
        let (orders_count, this) = (orders.len(), self);
        stream::iter(orders.into_iter().map(Ok))
            .try_for_each_concurrent(REBUILD_WIDTH, |order| async move { this.put_back(&order).await })
            .await?;
        if orders_count > 0 {
            tracing::info!(orders = orders_count, "inventory rebuilt from the ledger");
        }
        Ok(())
    }

    /// One rebuilds, the others wait for it.
    pub async fn rebuild_if_lost(&self) -> Result<(), OfficeError> {
        let _turn = self.rebuilding.acquire().await;
        match self.inventory.state().await {
            Err(InventoryError::Lost) => {
                tracing::warn!("the store lost the inventory; rebuilding it from the ledger");
                self.rebuild().await
            }
            Err(InventoryError::Store(error)) => Err(error.into()),
            Ok(_) => Ok(()),
        }
    }

    /// Makes the inventory say what the ledger says about an order that has tickets.
    pub(super) async fn put_back(&self, order: &Order) -> Result<(), OfficeError> {
        let lost = match order.status {
            OrderStatus::Confirmed => self.inventory.sell(&order.hold, &order.id, &order.tickets).await?,
            OrderStatus::Pending => {
                self.inventory.rehold(&order.hold, &order.id, &order.tickets, self.paying_ttl()).await?
            }
            OrderStatus::Refused | OrderStatus::Expired | OrderStatus::Refunded => 0,
        };
        if lost > 0 {
            tracing::error!(seats = lost, "the inventory says sold to another order; the ledger knows better");
        }
        Ok(())
    }

    /// After the ledger said that another order has one of these seats: the inventory was wrong about them.
    pub(super) async fn correct(&self, tickets: &Tickets) -> Result<(), OfficeError> {
        let orders = self.ledger.orders_with_seats(&self.config.event.id, &tickets.seats).await?;
        stream::iter(orders).map(Ok).try_for_each(|order| async move { self.put_back(&order).await }).await
    }
}
