//! All that the store has of an event, read a part at a time to be compared with the ledger; and the lease of whoever
//! compares.

use std::{collections::HashMap, slice, time::Duration};

use super::{
    Inventory, InventoryError, SEATS_AT_ONCE, millis,
    scripts::{self, CORRECT_TICKETS, COUNT_TICKETS, GIVE_LOCK, LIST_HOLDERS, SCAN_HASH, TAKE_LEASE},
    view::{self, Counts, Hold},
};
use crate::store::{StoreError, Value};

/// About how many fields of a hash are read in one run.
const FIELDS_AT_ONCE: u32 = 100;
/// How often it is tried to catch a moment in which the counters stand still.
const QUIET_TRIES: u32 = 3;

/// The counters of general admission at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// What they say.
    pub counts: Counts,
    /// Grows whenever a hold or a sale moves them. Equal counts do not tell: one may have come as another went.
    moves: i64,
}

/// What the store says. Not of one instant: things move while it is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survey {
    /// Who has each seat, in the plan's order: an order, a hold or nobody.
    pub seats: Vec<Option<String>>,
    /// By name.
    pub holds: HashMap<String, Hold>,
    /// Orders that bought general admission, and how many tickets.
    pub sold: HashMap<String, u32>,
    /// The counters of general admission; `None` when they moved while `holds` and `sold` were read.
    pub counters: Option<Counters>,
}

impl Inventory {
    /// Reads everything.
    pub async fn survey(&self) -> Result<Survey, InventoryError> {
        let mut survey = Survey { seats: self.holders().await?, ..Survey::default() };
        for _ in 0..QUIET_TRIES {
            let before = self.counters().await?;
            survey.holds = self.holds().await?;
            survey.sold = self.sold().await?;
            survey.counters = (self.counters().await? == before).then_some(before);
            if survey.counters.is_some() {
                break;
            }
        }
        Ok(survey)
    }

    async fn holds(&self) -> Result<HashMap<String, Hold>, StoreError> {
        let mut holds = HashMap::new();
        for (hold, record) in self.scan(&self.keys.holds).await? {
            let record = Hold::parse(&record).ok_or_else(|| odd(&record))?;
            holds.insert(hold, record);
        }
        Ok(holds)
    }

    /// The orders that bought something, as far as the store knows, each with the keys of its seats.
    pub async fn sales(&self) -> Result<HashMap<String, Vec<String>>, StoreError> {
        let mut sales: HashMap<String, Vec<String>> = HashMap::new();
        sales.extend(self.sold().await?.into_keys().map(|order| (order, Vec::new())));
        for (seat, holder) in self.seats.iter().zip(self.holders().await?) {
            if let Some(order) = holder.filter(|holder| holder.starts_with("o_")) {
                sales.entry(order).or_default().push(seat.clone());
            }
        }
        Ok(sales)
    }

    /// Who has each seat, in the plan's order.
    async fn holders(&self) -> Result<Vec<Option<String>>, StoreError> {
        let mut holders = Vec::with_capacity(self.seats.len());
        for seats in self.seats.chunks(SEATS_AT_ONCE) {
            let reply = self.run(&LIST_HOLDERS, seats, Vec::new()).await?;
            let Value::Array(some) = &reply else { return Err(scripts::unexpected(&LIST_HOLDERS, &reply)) };
            holders.extend(some.iter().map(view::text));
        }
        Ok(holders)
    }

    async fn sold(&self) -> Result<HashMap<String, u32>, StoreError> {
        let fields = self.scan(&self.keys.sold).await?.into_iter();
        fields.map(|(order, tickets)| Ok((order, tickets.parse().map_err(|_| odd(&tickets))?))).collect()
    }

    async fn scan(&self, hash: &String) -> Result<HashMap<String, String>, StoreError> {
        let mut fields = HashMap::new();
        let mut cursor = "0".to_owned();
        loop {
            let args = vec![cursor.as_str().into(), FIELDS_AT_ONCE.into()];
            let reply = self.run(&SCAN_HASH, slice::from_ref(hash), args).await?;
            let (next, some) = view::scanned(&reply).ok_or_else(|| scripts::unexpected(&SCAN_HASH, &reply))?;
            fields.extend(some);
            if next == "0" {
                return Ok(fields);
            }
            cursor = next;
        }
    }

    async fn counters(&self) -> Result<Counters, InventoryError> {
        let reply = self.run(&COUNT_TICKETS, slice::from_ref(&self.keys.tickets), Vec::new()).await?;
        if reply == Value::Array(Vec::new()) {
            return Err(InventoryError::Lost);
        }
        match scripts::ints(&COUNT_TICKETS, &reply)? {
            (free, rest) if rest.len() == 3 => {
                Ok(Counters { counts: Counts { free, held: rest[0], sold: rest[1] }, moves: rest[2] })
            }
            _ => Err(scripts::unexpected(&COUNT_TICKETS, &reply).into()),
        }
    }

    /// Sets the counters of general admission right, unless they moved since they were `seen`; whether it did.
    pub async fn correct_counters(&self, seen: Counters, right: Counts) -> Result<bool, StoreError> {
        let args = [seen.moves, right.free, right.held, right.sold].map(Into::into).to_vec();
        let reply = self.run(&CORRECT_TICKETS, slice::from_ref(&self.keys.tickets), args).await?;
        Ok(scripts::int(&CORRECT_TICKETS, &reply)? == 1)
    }

    /// Frees a seat that `holder` has by mistake.
    pub async fn free_seat(&self, holder: &str, seat: &str) -> Result<(), StoreError> {
        self.forget_sale(holder, vec![self.keys.seat(seat)]).await
    }

    /// Takes or keeps the lease of whoever compares; whether `owner` has it.
    pub async fn take_lease(&self, owner: &str, ttl: Duration) -> Result<bool, StoreError> {
        let args = vec![owner.into(), millis(ttl)];
        let reply = self.run(&TAKE_LEASE, slice::from_ref(&self.keys.reconciler), args).await?;
        Ok(scripts::int(&TAKE_LEASE, &reply)? == 1)
    }

    /// Who has the lease of whoever compares.
    pub async fn lease_holder(&self) -> Result<Option<String>, StoreError> {
        let reply = self.run(&LIST_HOLDERS, slice::from_ref(&self.keys.reconciler), Vec::new()).await?;
        match &reply {
            Value::Array(holder) if holder.len() == 1 => Ok(view::text(&holder[0])),
            _ => Err(scripts::unexpected(&LIST_HOLDERS, &reply)),
        }
    }

    /// Leaves the lease to others.
    pub async fn give_lease(&self, owner: &str) -> Result<(), StoreError> {
        self.run(&GIVE_LOCK, slice::from_ref(&self.keys.reconciler), vec![owner.into()]).await?;
        Ok(())
    }
}

fn odd(text: &str) -> StoreError {
    StoreError::Script { script: SCAN_HASH.file(), message: format!("unexpected value {text:?}") }
}
