//! The box office: seats, holds, orders, ledger, payments. It knows nothing of the waiting room.
//!
//! # Layout
//!
//! | module | holds |
//! | --- | --- |
//! | [`config`] | what is sold, where the ledger is, who takes the money |
//! | [`inventory`] | who holds and who bought what: in the store, fast, rebuilt from the ledger at any time |
//! | [`ledger`] | orders, payments and sold seats in SQL: the source of truth; all SQL is there |
//! | [`office`], [`orders`], [`window`] | the two together: hold, order, show |
//! | [`best`] | which seats are the best that are free |
//! | [`provider`], [`pacer`], [`worker`], [`webhooks`], [`reconcile`] | money: ask for it, in turn; hear of it; ask again |
//! | [`http`], [`pages`], [`views`] | how all of it looks from outside |
//! | [`repair`], [`compare`] | the store against the ledger: what went wrong behind their backs is found and mended |
//! | [`audit`], [`metrics`] | whether it kept its word |
//!
//! # Life of an order
//!
//! A hold takes seats in the inventory until a deadline. `POST /orders` writes order, items and a payment task in one
//! ledger transaction, where a unique index is the last word on each seat. The worker sends the task to the provider,
//! which answers by webhook (or is asked, when it keeps silent). One transaction confirms the order or frees its seats;
//! the inventory is told afterwards, as often as it takes.

pub mod audit;
mod best;
mod compare;
pub mod config;
mod http;
pub(crate) mod ids;
pub(crate) mod inventory;
mod ledger;
mod metrics;
mod office;
mod orders;
mod pacer;
pub mod pages;
mod provider;
mod reconcile;
mod repair;
pub(crate) mod seats;
pub mod views;
mod webhooks;
mod window;
mod worker;

use std::sync::Arc;

use axum::Router;
use ring::hmac;
use tokio::sync::{Notify, Semaphore};

pub use self::{
    config::{BoxOfficeConfig, EventConfig, ProviderConfig},
    ledger::{Migrations, OpenLedgerError, migrate},
};
use self::{
    inventory::Inventory,
    ledger::Ledger,
    office::{Office, OfficeError},
    provider::Provider,
    seats::SeatPlan,
};
use crate::{
    clock::SharedClock,
    config::ConfigError,
    shutdown::Shutdown,
    store::{SharedEngine, StoreError},
};

/// Why a box office would not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The configuration cannot be used.
    #[error("box office: {0}")]
    Config(#[from] ConfigError),
    /// The ledger cannot be used.
    #[error("box office: {0}")]
    Ledger(Box<dyn std::error::Error + Send + Sync>),
    /// The store cannot be used.
    #[error("box office: {0}")]
    Store(StoreError),
}

impl From<OpenLedgerError> for OpenError {
    fn from(error: OpenLedgerError) -> Self {
        Self::Ledger(error.into())
    }
}

impl From<OfficeError> for OpenError {
    fn from(error: OfficeError) -> Self {
        match error {
            OfficeError::Store(error) => Self::Store(error),
            other => Self::Ledger(other.into()),
        }
    }
}

/// The box office of one event. Cloning shares it.
#[derive(Debug, Clone)]
pub struct BoxOffice(Arc<Office>);

impl BoxOffice {
    /// Opens the ledger, and rebuilds the inventory in `engine` from it. Nothing is sold before that is done.
    pub async fn open(config: BoxOfficeConfig, engine: SharedEngine, clock: SharedClock) -> Result<Self, OpenError> {
        config.validate()?;
        let provider = Provider::new(&config.provider, Arc::clone(&engine))
            .ok_or_else(|| ConfigError::only("provider.url: use http://HOST:PORT without a path"))?;
        let ledger = Ledger::open(&config.database, config.database_connections).await?;
        ledger.put_event(&config.event).await?;
        let hold_secret = ledger.secret("hold-names").await.map_err(OpenLedgerError::from)?;
        let hold_secret = hmac::Key::new(hmac::HMAC_SHA256, hold_secret.expose().as_bytes());
        let plan = SeatPlan::new(config.event.seats);
        let inventory = Inventory::new(engine, &config.event.id, &plan, config.event.general_admission);
        let office = Office {
            config,
            plan,
            inventory,
            ledger,
            provider,
            hold_secret,
            clock,
            window: window::Window::default(),
            running: Arc::default(),
            task_due: Notify::new(),
            tell_due: Notify::new(),
            choosing: best::Choosing::default(),
            rebuilding: Semaphore::new(1),
            reconciler: repair::Reconciler::default(),
        };
        office.rebuild().await?;
        Ok(Self(Arc::new(office)))
    }

    /// What buyers and the payment provider reach.
    pub fn router(&self) -> Router {
        http::router(Arc::clone(&self.0))
    }

    /// What the operator reaches: `GET /events/{event}/audit`. Never public.
    pub fn admin_router(&self) -> Router {
        http::admin_router(Arc::clone(&self.0))
    }

    /// What the operator's monitoring reaches: `GET /metrics`, Prometheus text. Never public.
    pub fn metrics_router(&self) -> Router {
        http::metrics_router(Arc::clone(&self.0))
    }

    /// Starts what runs beside the requests: payment tasks, lapsed holds, overdue orders.
    pub fn start(&self, shutdown: &Shutdown) {
        reconcile::start(&self.0, shutdown);
    }

    /// Compares the store with the ledger now and mends what is wrong; false when another node has the lease to do so.
    /// Every node that was started tries twice a minute.
    pub async fn reconcile(&self) -> Result<bool, OpenError> {
        Ok(self.0.reconcile().await?)
    }

    /// Counts everything and says whether G7 to G9 hold.
    pub async fn audit(&self) -> Result<audit::Audit, OpenError> {
        Ok(self.0.audit().await?)
    }
}
