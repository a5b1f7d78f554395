//! Placing an order: once for each key, once for each hold, once for each seat.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};

use super::{
    ids::{HoldId, OrderId},
    inventory::{Acted, Tickets},
    ledger::{NewOrder, Order, PlaceOutcome, StoredAnswer},
    office::{Office, OfficeError},
    views::OrderStatus,
};

/// HTTP status of a placed order.
const ACCEPTED: i64 = 202;

/// What became of `POST /orders`.
#[derive(Debug)]
pub enum Placement {
    /// Placed, by this request or an earlier one with the same key.
    Answer {
        /// What to answer.
        answer: StoredAnswer,
        /// Whether an earlier request did it.
        replayed: bool,
    },
    /// The first request with this key still runs.
    StillRunning,
    /// The key came with another request before, in the same visit.
    OtherRequest,
    /// There is no such hold.
    UnknownHold,
    /// The hold lapsed, was cancelled or used up.
    HoldGone,
    /// The hold already became an order, under another key.
    HoldUsed,
    /// Another order has one of the seats, or the last tickets.
    Taken,
}

/// The keys whose first request runs in this process: as many as there are such requests.
#[derive(Debug, Default)]
pub struct RunningKeys(Mutex<HashMap<String, String>>);

impl RunningKeys {
    fn enter(self: &Arc<Self>, key: &str, fingerprint: &str) -> Result<Running, Placement> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key.to_owned()) {
            Entry::Occupied(other) if other.get() != fingerprint => Err(Placement::OtherRequest),
            Entry::Occupied(_) => Err(Placement::StillRunning),
            Entry::Vacant(free) => {
                free.insert(fingerprint.to_owned());
                Ok(Running { keys: Arc::clone(self), key: key.to_owned() })
            }
        }
    }
}

/// Keeps a key until dropped.
struct Running {
    keys: Arc<RunningKeys>,
    key: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.keys.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

impl Office {
    /// Places an order. Run it on a task of its own: it must not stop half way because its client left.
    pub async fn place_order(
        &self,
        key: String,
        hold: HoldId,
        visit: Option<String>,
    ) -> Result<Placement, OfficeError> {
        let fingerprint = fingerprint(&hold);
        // A header's value holds no line break, so no visit and key look like another's.
        let whose = format!("{}\n{key}", visit.as_deref().unwrap_or_default());
        let _running = match self.running.enter(&whose, &fingerprint) {
            Ok(running) => running,
            Err(refusal) => return Ok(refusal),
        };
        if let Some(answer) = self.ledger.answered_order(visit.as_deref(), &key).await? {
            return Ok(replay(answer, &fingerprint));
        }
        let tickets = match self.inventory.pay(&hold, self.paying_ttl()).await? {
            Ok(tickets) => tickets,
            Err(Acted::Unknown) => return self.earlier(&hold, &key, Placement::UnknownHold).await,
            Err(_) => return self.earlier(&hold, &key, Placement::HoldGone).await,
        };
        let order = self.new_order(hold.clone(), tickets.clone(), visit);
        let text = serde_json::to_string(&order.view()).map_err(|error| OfficeError::Defect(error.to_string()))?;
        let answer = StoredAnswer { fingerprint: fingerprint.clone(), status: ACCEPTED, answer: text };
        let poll_ms = order.created_ms.saturating_add(millis(self.config.provider.poll_after));
        match self.ledger.place(NewOrder { order, key: key.clone(), answer: answer.clone(), poll_ms }).await? {
            PlaceOutcome::Placed => {
                self.task_due.notify_one();
                Ok(Placement::Answer { answer, replayed: false })
            }
            PlaceOutcome::Answered(earlier) => Ok(replay(earlier, &fingerprint)),
            PlaceOutcome::HoldUsed => self.earlier(&hold, &key, Placement::HoldUsed).await,
            PlaceOutcome::Taken => {
                self.inventory.refuse(&hold).await?;
                self.correct(&tickets).await?;
                Ok(Placement::Taken)
            }
        }
    }

    /// The answer under this key to whoever ordered this hold in an earlier visit; else the refusal.
    async fn earlier(&self, hold: &HoldId, key: &str, refusal: Placement) -> Result<Placement, OfficeError> {
        let answer = self.ledger.answered_hold(hold, key).await?;
        Ok(answer.map_or(refusal, |answer| replay(answer, &fingerprint(hold))))
    }

    fn new_order(&self, hold: HoldId, tickets: Tickets, visit: Option<String>) -> Order {
        Order {
            id: OrderId::random(),
            hold,
            event: self.config.event.id.clone(),
            status: OrderStatus::Pending,
            amount_minor: self.amount(tickets.quantity),
            tickets,
            currency: self.config.event.currency.clone(),
            created_ms: self.clock.unix_millis(),
            visit,
            is_told: true,
        }
    }
}

/// What makes two requests under one key the same request.
fn fingerprint(hold: &HoldId) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, hold.as_str().as_bytes()))
}

fn replay(answer: StoredAnswer, fingerprint: &str) -> Placement {
    if answer.fingerprint == fingerprint {
        Placement::Answer { answer, replayed: true }
    } else {
        Placement::OtherRequest
    }
}

pub(super) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
