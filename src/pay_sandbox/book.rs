//! The provider's book: every charge, refund and unacknowledged event, and the rules for changing them.
//!
//! Every change is an [`Entry`], applied here and written to the journal; reading the journal applies the same entries
//! again. Time is passed in.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    time::Duration,
};

use super::{
    behaviour::Plan,
    outbox::Outbox,
    records::{
        Charge, ChargeRequest, Entry, Event, OrderRecord, Outcome, Records, Refund, RefundRequest, Status, Summary,
        new_id,
    },
};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Book {
    charges: HashMap<String, Charge>,
    charges_of_order: HashMap<String, Vec<String>>,
    refunds: HashMap<String, Refund>,
    /// What each idempotency key made.
    made_by_key: HashMap<String, Made>,
    /// Pending charges by the time (Unix ms) they are decided.
    undecided: BTreeSet<(u64, String)>,
    /// Events to report.
    pub(super) outbox: Outbox,
    summary: Summary,
    unwritten: Vec<Entry>,
}

#[derive(Debug)]
enum Made {
    Charge(String),
    Refund(String),
}

/// Why the book refuses a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The idempotency key was used for something else.
    KeyReused,
    /// There is no such charge.
    NoSuchCharge,
    /// The charge is pending or declined: there is nothing to pay back.
    NotCaptured,
    /// This would pay back more than is left of the capture.
    TooMuch {
        /// What is left of it.
        refundable_minor: u64,
    },
}

impl Book {
    /// The charge that `key` makes, or made before.
    pub(super) fn charge(
        &mut self,
        key: String,
        request: ChargeRequest,
        plan: Plan,
        now_ms: u64,
    ) -> Result<Charge, Refusal> {
        if let Some(made) = self.made_by_key.get(&key) {
            let Made::Charge(id) = made else { return Err(Refusal::KeyReused) };
            let earlier = self.charges.get(id).ok_or(Refusal::NoSuchCharge)?;
            return if earlier.request == request { Ok(earlier.clone()) } else { Err(Refusal::KeyReused) };
        }
        let id = new_id("ch");
        let due_ms = now_ms.saturating_add(millis(plan.delay));
        self.record(Entry::Charge { id: id.clone(), key, request, due_ms, outcome: plan.outcome });
        self.find(&id).ok_or(Refusal::NoSuchCharge)
    }

    /// The refund that `key` makes, or made before.
    pub(super) fn refund(&mut self, key: String, request: RefundRequest, now_ms: u64) -> Result<Refund, Refusal> {
        if let Some(made) = self.made_by_key.get(&key) {
            let Made::Refund(id) = made else { return Err(Refusal::KeyReused) };
            let earlier = self.refunds.get(id).ok_or(Refusal::NoSuchCharge)?;
            return if earlier.request == request { Ok(earlier.clone()) } else { Err(Refusal::KeyReused) };
        }
        let charge = self.charges.get(&request.charge).ok_or(Refusal::NoSuchCharge)?;
        if charge.status != Status::Captured {
            return Err(Refusal::NotCaptured);
        }
        let refundable_minor = charge.request.amount_minor - charge.refunded_minor;
        if request.amount_minor > refundable_minor {
            return Err(Refusal::TooMuch { refundable_minor });
        }
        let id = new_id("re");
        self.record(Entry::Refund { id: id.clone(), key, request, event: new_id("evt"), created: now_ms / 1_000 });
        self.refunds.get(&id).cloned().ok_or(Refusal::NoSuchCharge)
    }

    /// One charge.
    pub(super) fn find(&self, charge: &str) -> Option<Charge> {
        self.charges.get(charge).cloned()
    }

    /// The charges of an order, oldest first.
    pub(super) fn find_by_order(&self, order: &str) -> Vec<Charge> {
        let ids = self.charges_of_order.get(order).into_iter().flatten();
        ids.filter_map(|id| self.find(id)).collect()
    }

    /// Counts and sums.
    pub(super) fn summary(&self) -> Summary {
        self.summary
    }

    /// Counts and sums, and what became of every order.
    pub(super) fn records(&self) -> Records {
        let mut orders = BTreeMap::<String, OrderRecord>::new();
        for charge in self.charges.values() {
            let order = orders.entry(charge.request.order.clone()).or_default();
            order.charges += 1;
            if charge.status == Status::Captured {
                order.captures += 1;
                order.captured_minor += charge.request.amount_minor;
                order.refunded_minor += charge.refunded_minor;
            }
        }
        Records { summary: self.summary, orders, unacknowledged: self.outbox.len() }
    }

    /// Decides at most `most` charges whose time has come. Returns how many, and when the next is due.
    pub(super) fn settle_due(&mut self, now_ms: u64, most: usize) -> (usize, Option<u64>) {
        let due = self.undecided.iter().take_while(|(due_ms, _)| *due_ms <= now_ms).take(most);
        let due: Vec<String> = due.map(|(_, charge)| charge.clone()).collect();
        let settled = due.len();
        for charge in due {
            self.record(Entry::Settlement { charge, event: new_id("evt"), created: now_ms / 1_000 });
        }
        (settled, self.undecided.first().map(|(due_ms, _)| *due_ms))
    }

    /// The receiver has the event.
    pub(super) fn acknowledged(&mut self, event: String) {
        self.record(Entry::Delivery { event });
    }

    /// The changes since the last call, for the journal.
    pub(super) fn take_unwritten(&mut self) -> Vec<Entry> {
        mem::take(&mut self.unwritten)
    }

    fn record(&mut self, entry: Entry) {
        if self.apply(entry.clone()).is_some() {
            self.unwritten.push(entry);
        }
    }

    /// Makes one change. `None`, and no change, when the entry speaks of something the book does not hold.
    pub(super) fn apply(&mut self, entry: Entry) -> Option<()> {
        match entry {
            Entry::Charge { id, key, request, due_ms, outcome } => {
                self.made_by_key.insert(key, Made::Charge(id.clone()));
                self.charges_of_order.entry(request.order.clone()).or_default().push(id.clone());
                self.undecided.insert((due_ms, id.clone()));
                self.summary.pending += 1;
                let status = Status::Pending;
                let charge = Charge { id: id.clone(), request, status, refunded_minor: 0, due_ms, outcome };
                self.charges.insert(id, charge);
            }
            Entry::Settlement { charge, event, created } => self.apply_settlement(&charge, event, created)?,
            Entry::Refund { id, key, request, event, created } => {
                let charge = self.charges.get_mut(&request.charge)?;
                charge.refunded_minor += request.amount_minor;
                self.summary.refunds += 1;
                self.summary.refunded_minor += request.amount_minor;
                let ChargeRequest { order, currency, .. } = charge.request.clone();
                self.outbox.add(Event {
                    id: event,
                    kind: "refund.succeeded",
                    charge: request.charge.clone(),
                    refund: Some(id.clone()),
                    order: order.clone(),
                    amount_minor: request.amount_minor,
                    currency: currency.clone(),
                    created,
                });
                self.made_by_key.insert(key, Made::Refund(id.clone()));
                self.refunds.insert(id.clone(), Refund { id, request, order, currency, status: "succeeded" });
            }
            Entry::Delivery { event } => self.outbox.remove(&event)?,
        }
        Some(())
    }

    fn apply_settlement(&mut self, id: &str, event: String, created: u64) -> Option<()> {
        let charge = self.charges.get_mut(id).filter(|charge| charge.status == Status::Pending)?;
        self.undecided.remove(&(charge.due_ms, id.to_owned()));
        self.summary.pending -= 1;
        let kind = match charge.outcome {
            Outcome::Captured => {
                charge.status = Status::Captured;
                self.summary.captures += 1;
                self.summary.captured_minor += charge.request.amount_minor;
                "charge.captured"
            }
            Outcome::Declined => {
                charge.status = Status::Declined;
                self.summary.declines += 1;
                "charge.declined"
            }
        };
        let ChargeRequest { order, amount_minor, currency } = charge.request.clone();
        self.outbox.add(Event {
            id: event,
            kind,
            charge: id.to_owned(),
            refund: None,
            order,
            amount_minor,
            currency,
            created,
        });
        Some(())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
