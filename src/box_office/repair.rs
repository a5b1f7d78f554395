//! The reconciler: compares the store with the ledger, mends the store, says what it found.
//!
//! One node at a time does it, by a lease in the store: it reads everything, and one reading is enough. Nothing depends
//! on there being one. Every repair looks again before it changes anything and may be made twice, so a lease that was
//! lost unnoticed, or with the store's data, costs a second reading. What the provider knows is no part of it: orders to
//! ask about are taken out of the ledger one by one, so that all nodes do that, each its share.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{
    compare::{Finding, compare, right_counters},
    inventory::{InventoryError, Survey},
    ledger::Order,
    office::{Office, OfficeError},
    reconcile::pause,
    views::OrderStatus,
};
use crate::shutdown::Shutdown;

const EVERY: Duration = Duration::from_secs(30);
/// Longer than two runs are apart, so that one node keeps it; this long nobody runs after that node died.
const LEASE: Duration = Duration::from_secs(75);
/// Most ended orders looked up in one run.
const ENDED_AT_MOST: usize = 500;
/// So much of a node's name is told: enough to tell nodes apart, too little to act as one.
const SHOWN_OF_NAME: usize = 8;
/// Most findings told in words.
const TOLD_AT_MOST: usize = 20;

/// What the reconciler of one node did since the node started. The node that has the lease runs it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReconcilerView {
    /// This node, by the first digits of a name that it chose when it started.
    pub node: String,
    /// The node that has the lease, named alike; none has it for a while after one died.
    pub lease_holder: Option<String>,
    /// Whether that is this node.
    pub has_lease: bool,
    /// Comparisons made.
    pub runs: u64,
    /// When the last one ended.
    pub last_run: Option<String>,
    /// Sales and holds in the store that the ledger knows nothing of, freed.
    pub freed: u64,
    /// Orders in force that the store did not have, put back.
    pub put_back: u64,
    /// Corrections of the counters of general admission.
    pub counters_corrected: u64,
    /// What the last run found.
    pub found: Vec<String>,
    /// What of it was still there afterwards.
    pub unresolved: Vec<String>,
}

impl ReconcilerView {
    /// When the last comparison ended, in seconds since the Unix epoch; 0 for never.
    pub(super) fn last_run_seconds(&self) -> i64 {
        let parsed = self.last_run.as_ref().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        parsed.map_or(0, jiff::Timestamp::as_second)
    }
}

/// The node's name as a holder of the lease, and its record.
#[derive(Debug)]
pub struct Reconciler {
    name: String,
    view: Mutex<ReconcilerView>,
}

impl Default for Reconciler {
    fn default() -> Self {
        Self { name: format!("{:032x}", rand::random::<u128>()), view: Mutex::default() }
    }
}

impl Reconciler {
    fn note(&self, change: impl FnOnce(&mut ReconcilerView)) {
        change(&mut self.view.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Compares and mends, again and again.
pub async fn run(office: Arc<Office>, shutdown: Shutdown) {
    while pause(&shutdown, EVERY.mul_f64(rand::random_range(0.9..1.1))).await {
        if let Err(error) = office.reconcile().await {
            tracing::warn!(%error, "cannot compare the store with the ledger; trying again");
        }
    }
    if let Err(error) = office.inventory.give_lease(&office.reconciler.name).await {
        tracing::debug!(%error, "the reconciler's lease is left to run out");
    }
}

impl Office {
    /// What this node did, and who has the lease.
    pub(super) async fn reconciler_view(&self) -> Result<ReconcilerView, OfficeError> {
        let Reconciler { name, view } = &self.reconciler;
        let holder = self.inventory.lease_holder().await?;
        let short = |name: &str| name.chars().take(SHOWN_OF_NAME).collect::<String>();
        let mut view = view.lock().unwrap_or_else(PoisonError::into_inner).clone();
        view.node = short(name);
        view.has_lease = holder.as_ref() == Some(name);
        view.lease_holder = holder.as_deref().map(short);
        Ok(view)
    }

    /// Compares once and mends what is wrong; whether this node has the lease to do so.
    pub async fn reconcile(&self) -> Result<bool, OfficeError> {
        if !self.inventory.take_lease(&self.reconciler.name, LEASE).await? {
            return Ok(false);
        }
        let (first, _) = self.look().await?;
        let mut sure = Vec::new();
        let mut unresolved = Vec::new();
        if !first.is_empty() {
            let (second, survey) = self.look().await?;
            sure = second.into_iter().filter(|finding| first.contains(finding)).collect();
            sure.sort_by_key(rank);
            for finding in &sure {
                self.mend(finding, &survey).await?;
            }
            if !sure.is_empty() {
                let (left, _) = self.look().await?;
                unresolved = sure.iter().filter(|finding| left.contains(finding)).collect();
            }
        }
        for finding in &sure {
            let is_mended = !unresolved.contains(&finding);
            tracing::warn!(what = words(finding), is_mended, "the store disagreed with the ledger");
        }
        let tell = |findings: &mut dyn Iterator<Item = &Finding>| findings.take(TOLD_AT_MOST).map(words).collect();
        let last_run = i64::try_from(self.clock.unix_millis()).ok();
        let last_run = last_run.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
        self.reconciler.note(|view| {
            view.runs += 1;
            view.last_run = last_run.map(|time| time.to_string());
            view.found = tell(&mut sure.iter());
            view.unresolved = tell(&mut unresolved.iter().copied());
            for finding in sure.iter().filter(|finding| !unresolved.contains(finding)) {
                match finding {
                    Finding::Missing { .. } => view.put_back += 1,
                    Finding::Counters(_) => view.counters_corrected += 1,
                    _ => view.freed += 1,
                }
            }
        });
        Ok(true)
    }

    /// The store first, the ledger after it: what is sold in the store was confirmed in the ledger before.
    async fn look(&self) -> Result<(HashSet<Finding>, Survey), OfficeError> {
        let survey = match self.inventory.survey().await {
            Err(InventoryError::Lost) => {
                self.rebuild_if_lost().await?;
                self.inventory.survey().await?
            }
            other => other?,
        };
        let event = &self.config.event;
        let orders = self.ledger.orders_in_force(&event.id).await?;
        let in_force: HashSet<&str> = orders.iter().map(|order| order.hold.as_str()).collect();
        let paying = survey.holds.iter().filter(|(hold, record)| record.is_paying && !in_force.contains(hold.as_str()));
        let paying = paying.filter_map(|(hold, _)| hold.parse().ok()).take(ENDED_AT_MOST).collect();
        let ended = self.ledger.ended_of(paying).await?;
        let findings = compare(self.plan.names(), event.general_admission, &survey, &orders, &ended);
        Ok((findings, survey))
    }

    async fn mend(&self, finding: &Finding, survey: &Survey) -> Result<(), OfficeError> {
        match finding {
            Finding::Counters(_) => {
                if let Some(seen) = survey.counters {
                    let right = right_counters(survey, self.config.event.general_admission);
                    self.inventory.correct_counters(seen, right).await?;
                }
            }
            Finding::SoldToNobody { order: holder, seat: Some(seat) } | Finding::HeldByNobody { holder, seat } => {
                self.inventory.free_seat(holder, seat).await?;
            }
            Finding::SoldToNobody { order, seat: None } => self.inventory.forget_sale(order, Vec::new()).await?,
            Finding::HeldForEnded { hold } => {
                self.inventory.refuse(hold).await?;
            }
            Finding::Missing { order } => {
                if let Some(order) = self.ledger.order(order).await? {
                    self.keep(&order).await?;
                }
            }
        }
        Ok(())
    }

    /// Puts back what an order in force has; whether it still is, if it was pending.
    pub(super) async fn keep(&self, order: &Order) -> Result<bool, OfficeError> {
        self.put_back(order).await?;
        match self.ledger.order(&order.id).await? {
            Some(now) if now.status != OrderStatus::Pending => {
                // It was settled meanwhile; holding it again came too late and is taken back.
                self.tell_one(&now).await?;
                Ok(false)
            }
            _ => Ok(true),
        }
    }
}

/// Counters first, as they were surveyed before anything else moved; what is wrongly taken before what is missing.
fn rank(finding: &Finding) -> u8 {
    match finding {
        Finding::Counters(_) => 0,
        Finding::Missing { .. } => 2,
        _ => 1,
    }
}

/// For people. Names of orders and holds are rights, so they are not told.
fn words(finding: &Finding) -> String {
    match finding {
        Finding::SoldToNobody { seat: Some(seat), .. } => format!("seat {seat} is sold to no confirmed order"),
        Finding::SoldToNobody { seat: None, .. } => "tickets are sold to no confirmed order".to_owned(),
        Finding::HeldByNobody { seat, .. } => format!("seat {seat} is held by no hold"),
        Finding::HeldForEnded { .. } => "tickets are held for an order that ended".to_owned(),
        Finding::Missing { .. } => "an order lacks its tickets".to_owned(),
        Finding::Counters(off) => {
            format!("counters are off by {:+} free, {:+} held, {:+} sold", -off.free, -off.held, -off.sold)
        }
    }
}
