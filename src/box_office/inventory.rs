//! The inventory: who holds and who bought what, in the store. Fast, and never the last word: the ledger is.
//!
//! A seat is one string key: absent when free, a hold's name with an expiry while held, an order's name for good once
//! sold. General admission is a hash of counters. Every hold also has a record with its deadline; the sweep returns a
//! lapsed hold's tickets exactly once, because it takes the record away in the same script.

mod keys;
mod scripts;
mod survey;
mod view;

use std::{slice, time::Duration};

use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};

pub use survey::Survey;
pub use view::{Counts, Hold, Inventory as InventoryState};

use self::{
    keys::Keys,
    scripts::{
        ERASE, FIND_HOLD, FORGET_SALE, HOLD_BEST, HOLD_SEATS, HOLD_TICKETS, OPEN_EVENT, PAY_HOLD, REHOLD, RELEASE_HOLD,
        SELL, SWEEP_HOLDS, VIEW_SEATS,
    },
    view::Reply,
};
use super::{
    ids::{HoldId, OrderId},
    seats::SeatPlan,
};
use crate::store::{Arg, Script, SharedEngine, StoreError, Value};

/// How long a hold that is over answers 410 before its name is unknown.
const REMEMBER: Duration = Duration::from_mins(5);
/// Most seats looked at in one run.
const SEATS_AT_ONCE: usize = 1_000;
/// Most holds looked at in one run of the sweep.
const SWEEP_AT_MOST: u32 = 500;
/// Most keys removed in one call.
const ERASE_AT_MOST: usize = 100;

/// What a buyer wants, holds or bought: named seats, or a number of general-admission tickets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tickets {
    /// The seats; empty for general admission.
    pub seats: Vec<String>,
    /// How many tickets; the number of seats when there are seats.
    pub quantity: u32,
}

/// Why the inventory could not do its part.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store lost the event's data: rebuild it from the ledger, then try again.
    #[error("the store lost the inventory")]
    Lost,
}

/// What became of a wish to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// All of it is held.
    Until {
        /// Milliseconds since the Unix epoch, by the store's clock.
        deadline_ms: u64,
        /// How long that is from now.
        left: Duration,
        /// The seats; empty for general admission.
        seats: Vec<String>,
    },
    /// The hold of this name was, and is over.
    Over,
    /// The hold of this name is of something else.
    OtherWish,
    /// None of it: these seats are not free.
    Taken(Vec<String>),
    /// None of it: this many tickets are left.
    NotEnough {
        /// How many.
        free: u32,
    },
    /// None of it: as many seats are free, but not side by side.
    Apart {
        /// How many.
        free: u32,
    },
    /// None of it: others were faster again and again.
    Contended,
}

/// What became of an attempt to act on a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acted {
    /// Done, by this call.
    Done,
    /// There is no such hold.
    Unknown,
    /// It lapsed, was cancelled or used up.
    Gone,
    /// It is being paid for.
    Paying,
}

/// The inventory of one event.
#[derive(Debug)]
pub struct Inventory {
    engine: SharedEngine,
    keys: Keys,
    seats: Vec<String>,
    tickets: u32,
}

impl Inventory {
    /// The inventory of `event`; nothing is asked of the store yet.
    pub fn new(engine: SharedEngine, event: &str, plan: &SeatPlan, general_admission: u32) -> Self {
        let keys = Keys::of(event);
        let seats = plan.names().iter().map(|name| keys.seat(name)).collect();
        Self { engine, keys, seats, tickets: general_admission }
    }

    /// Creates what is missing. Idempotent.
    pub async fn open(&self) -> Result<(), StoreError> {
        self.run(&OPEN_EVENT, slice::from_ref(&self.keys.tickets), vec![self.tickets.into()]).await?;
        Ok(())
    }

    /// Frees what was sold to an order that the ledger does not know as confirmed, out of these seats. Idempotent.
    pub async fn forget_sale(&self, order: &str, seats: Vec<String>) -> Result<(), StoreError> {
        let keys = [vec![self.keys.tickets.clone(), self.keys.sold.clone()], seats].concat();
        self.run(&FORGET_SALE, &keys, vec![order.into()]).await?;
        Ok(())
    }

    /// Holds all of `wanted` or nothing. Idempotent for the same `hold`, as long as it is remembered.
    pub async fn hold(&self, hold: &HoldId, wanted: &Tickets, ttl: Duration) -> Result<Held, InventoryError> {
        let mut args = vec![hold.as_str().into(), millis(ttl)];
        let mut keys = self.hold_keys(&wanted.seats);
        let script = if wanted.seats.is_empty() {
            args.push(wanted.quantity.into());
            keys.push(self.keys.alarm.clone());
            &HOLD_TICKETS
        } else {
            args.push(wanted.seats.join(",").into());
            &HOLD_SEATS
        };
        let reply = self.run(script, &keys, args).await?;
        match view::held(&reply).ok_or_else(|| scripts::unexpected(script, &reply))? {
            Reply::Is(outcome) => Ok(outcome),
            Reply::Not(rest) if wanted.seats.is_empty() => {
                let free = rest.first().and_then(|free| u32::try_from(*free).ok()).unwrap_or(0);
                Ok(Held::NotEnough { free })
            }
            Reply::Not(taken) => Ok(Held::Taken(nth(&wanted.seats, &taken))),
            Reply::Lost => Err(InventoryError::Lost),
        }
    }

    /// Holds `quantity` seats of a choice: the first of its `blocks` that is free, each as many neighbours, or else the
    /// first free ones behind them; or nothing. Idempotent for the same `hold`, as long as it is remembered.
    pub async fn hold_best(
        &self,
        hold: &HoldId,
        quantity: u32,
        choice: &[String],
        blocks: u32,
        ttl: Duration,
    ) -> Result<Held, InventoryError> {
        let args = vec![hold.as_str().into(), millis(ttl), quantity.into(), blocks.into(), choice.join(",").into()];
        let reply = self.run(&HOLD_BEST, &self.hold_keys(choice), args).await?;
        match view::held(&reply).ok_or_else(|| scripts::unexpected(&HOLD_BEST, &reply))? {
            Reply::Is(outcome) => Ok(outcome),
            Reply::Not(taken) => Ok(Held::Taken(nth(choice, &taken))),
            Reply::Lost => Err(InventoryError::Lost),
        }
    }

    /// Keeps a live hold for at least `ttl` from now while it is paid for, and says what it holds. Idempotent.
    pub async fn pay(&self, hold: &HoldId, ttl: Duration) -> Result<Result<Tickets, Acted>, StoreError> {
        let Some(tickets) = self.find(hold).await? else { return Ok(Err(Acted::Unknown)) };
        let mut keys = vec![self.keys.holds.clone(), self.keys.deadlines.clone()];
        keys.extend(tickets.seats.iter().map(|seat| self.keys.seat(seat)));
        let reply = self.run(&PAY_HOLD, &keys, vec![hold.as_str().into(), millis(ttl)]).await?;
        Ok(match acted(&PAY_HOLD, &reply)? {
            Acted::Done => Ok(tickets),
            other => Err(other),
        })
    }

    /// Gives back a hold that its buyer cancels. Done at most once for each hold.
    pub async fn cancel(&self, hold: &HoldId) -> Result<Acted, StoreError> {
        self.release(hold, 0).await
    }

    /// Gives back a hold whose order came to nothing. Done at most once for each hold.
    pub async fn refuse(&self, hold: &HoldId) -> Result<Acted, StoreError> {
        self.release(hold, 1).await
    }

    async fn release(&self, hold: &HoldId, refused: i64) -> Result<Acted, StoreError> {
        let Some(tickets) = self.find(hold).await? else { return Ok(Acted::Unknown) };
        let args = vec![hold.as_str().into(), refused.into(), millis(REMEMBER)];
        let reply = self.run(&RELEASE_HOLD, &self.hold_keys(&tickets.seats), args).await?;
        acted(&RELEASE_HOLD, &reply)
    }

    /// Marks what `order` bought as sold, whoever else holds it by now. Idempotent. The answer is how many seats another
    /// order has, which the ledger makes impossible.
    pub async fn sell(&self, hold: &HoldId, order: &OrderId, tickets: &Tickets) -> Result<u32, InventoryError> {
        self.for_order(&SELL, hold, order, tickets, vec![millis(REMEMBER)]).await
    }

    /// Holds again what a pending order has in the ledger, whoever else holds it by now. Idempotent. The answer is as
    /// that of [`Self::sell`].
    pub async fn rehold(
        &self,
        hold: &HoldId,
        order: &OrderId,
        tickets: &Tickets,
        ttl: Duration,
    ) -> Result<u32, InventoryError> {
        self.for_order(&REHOLD, hold, order, tickets, vec![millis(ttl), tickets.seats.join(",").into()]).await
    }

    async fn for_order(
        &self,
        script: &'static Script,
        hold: &HoldId,
        order: &OrderId,
        tickets: &Tickets,
        more: Vec<Arg>,
    ) -> Result<u32, InventoryError> {
        let mut keys = self.hold_keys(&[]);
        keys.push(self.keys.sold.clone());
        keys.extend(tickets.seats.iter().map(|seat| self.keys.seat(seat)));
        let args = [vec![hold.as_str().into(), order.as_str().into(), tickets.quantity.into()], more].concat();
        let reply = self.run(script, &keys, args).await?;
        u32::try_from(scripts::int(script, &reply)?).map_err(|_| InventoryError::Lost)
    }

    /// Word that a sweep is due, as far as the store gives it.
    pub fn sweeps_due(&self) -> BoxStream<'static, ()> {
        self.engine.expirations(&self.keys.alarm).unwrap_or_else(|| stream::empty().boxed())
    }

    /// Returns what lapsed. The answer is how many holds lapsed, and whether more may be waiting.
    pub async fn sweep(&self) -> Result<(u32, bool), StoreError> {
        let keys = [self.hold_keys(&[]), vec![self.keys.alarm.clone()]].concat();
        let reply = self.run(&SWEEP_HOLDS, &keys, vec![SWEEP_AT_MOST.into(), millis(REMEMBER)]).await?;
        let (looked_at, lapsed) = scripts::ints(&SWEEP_HOLDS, &reply)?;
        let lapsed = lapsed.first().and_then(|count| u32::try_from(*count).ok()).unwrap_or(0);
        Ok((lapsed, looked_at >= i64::from(SWEEP_AT_MOST)))
    }

    /// The state of everything at one instant.
    pub async fn state(&self) -> Result<InventoryState, InventoryError> {
        let keys = [vec![self.keys.tickets.clone()], self.seats.clone()].concat();
        let reply = self.run(&VIEW_SEATS, &keys, Vec::new()).await?;
        view::parse(&reply, self.seats.len(), self.tickets)?.ok_or(InventoryError::Lost)
    }

    /// What a hold holds or held, until it is forgotten.
    pub async fn find(&self, hold: &HoldId) -> Result<Option<Tickets>, StoreError> {
        Ok(self.record(hold).await?.map(|hold| hold.tickets))
    }

    /// All that is known of a hold, until it is forgotten.
    pub async fn record(&self, hold: &HoldId) -> Result<Option<Hold>, StoreError> {
        let keys = slice::from_ref(&self.keys.holds);
        match self.run(&FIND_HOLD, keys, vec![hold.as_str().into()]).await? {
            Value::Nil => Ok(None),
            Value::Bulk(record) => {
                let known = std::str::from_utf8(&record).ok().and_then(Hold::parse);
                known.map(Some).ok_or_else(|| scripts::unexpected(&FIND_HOLD, &Value::Bulk(record)))
            }
            other => Err(scripts::unexpected(&FIND_HOLD, &other)),
        }
    }

    /// Removes everything. Only for an event that nobody sells.
    pub async fn erase(&self) -> Result<(), StoreError> {
        let keys = &self.keys;
        let shared = [&keys.holds, &keys.deadlines, &keys.tickets, &keys.sold, &keys.alarm, &keys.reconciler]
            .into_iter()
            .cloned();
        for some in shared.chain(self.seats.iter().cloned()).collect::<Vec<_>>().chunks(ERASE_AT_MOST) {
            self.run(&ERASE, some, Vec::new()).await?;
        }
        Ok(())
    }

    fn hold_keys(&self, seats: &[String]) -> Vec<String> {
        let shared = [&self.keys.holds, &self.keys.deadlines, &self.keys.tickets].into_iter().cloned();
        shared.chain(seats.iter().map(|seat| self.keys.seat(seat))).collect()
    }

    async fn run(&self, script: &'static Script, keys: &[String], args: Vec<Arg>) -> Result<Value, StoreError> {
        self.engine.run(script, keys, args).await
    }
}

fn acted(script: &'static Script, reply: &Value) -> Result<Acted, StoreError> {
    match scripts::int(script, reply)? {
        1 => Ok(Acted::Done),
        0 => Ok(Acted::Unknown),
        -1 => Ok(Acted::Gone),
        -2 => Ok(Acted::Paying),
        _ => Err(scripts::unexpected(script, reply)),
    }
}

/// The seats at these positions, counted from 1.
fn nth(seats: &[String], positions: &[i64]) -> Vec<String> {
    let at = |position: &i64| seats.get(usize::try_from(*position).ok()?.checked_sub(1)?).cloned();
    positions.iter().filter_map(at).collect()
}

fn millis(duration: Duration) -> Arg {
    Arg::Int(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}
