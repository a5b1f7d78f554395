//! The inventory as the store tells it.

use std::time::Duration;

use super::{
    Held, Tickets,
    scripts::{VIEW_SEATS, unexpected},
};
use crate::{
    box_office::views::SeatState,
    store::{StoreError, Value},
};

/// How many tickets are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Counts {
    /// Can be held. Below zero when the ledger sold what the store had already promised to holds that will fail.
    pub free: i64,
    /// Held until a deadline.
    pub held: i64,
    /// Sold.
    pub sold: i64,
}

impl Counts {
    fn add(&mut self, state: SeatState) {
        match state {
            SeatState::Free => self.free += 1,
            SeatState::Held => self.held += 1,
            SeatState::Sold => self.sold += 1,
        }
    }

    /// Seats and general admission together.
    pub fn plus(self, other: Self) -> Self {
        Self { free: self.free + other.free, held: self.held + other.held, sold: self.sold + other.sold }
    }

    /// What `other` is short of to be this.
    pub fn minus(self, other: Self) -> Self {
        Self { free: self.free - other.free, held: self.held - other.held, sold: self.sold - other.sold }
    }
}

/// Every seat and the counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    /// The seats in the plan's order.
    pub seats: Vec<SeatState>,
    /// The seats, counted.
    pub seat_counts: Counts,
    /// General admission.
    pub tickets: Counts,
    /// How many general-admission tickets there are.
    pub tickets_total: u32,
}

/// Reads the reply of `view_seats`; `None` when the event is not in the store.
pub fn parse(reply: &Value, seats: usize, tickets_total: u32) -> Result<Option<Inventory>, StoreError> {
    let wrong = || unexpected(&VIEW_SEATS, reply);
    let Value::Array(items) = reply else { return Err(wrong()) };
    let [Value::Int(free), Value::Int(held), Value::Int(sold), Value::Bulk(letters)] = items.as_slice() else {
        return if items.is_empty() { Ok(None) } else { Err(wrong()) };
    };
    if letters.len() != seats {
        return Err(wrong());
    }
    let mut seat_counts = Counts::default();
    let mut states = Vec::with_capacity(seats);
    for letter in letters {
        let state = match letter {
            b'f' => SeatState::Free,
            b'h' => SeatState::Held,
            b's' => SeatState::Sold,
            _ => return Err(wrong()),
        };
        seat_counts.add(state);
        states.push(state);
    }
    let tickets = Counts { free: *free, held: *held, sold: *sold };
    Ok(Some(Inventory { seats: states, seat_counts, tickets, tickets_total }))
}

/// A hold's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// It is over, and remembered for a while.
    pub is_gone: bool,
    /// Its order is being paid for.
    pub is_paying: bool,
    /// When it lapses, or is forgotten; milliseconds since the Unix epoch, by the store's clock.
    pub deadline_ms: u64,
    /// What it holds or held.
    pub tickets: Tickets,
}

impl Hold {
    /// Reads `state:deadline:quantity:seats`.
    pub fn parse(record: &str) -> Option<Self> {
        let mut fields = record.splitn(4, ':');
        let state = fields.next()?;
        let deadline_ms = fields.next()?.parse().ok()?;
        let quantity = fields.next()?.parse().ok()?;
        let tickets = Tickets { seats: names(fields.next()?), quantity };
        Some(Self { is_gone: state == "gone", is_paying: state == "paying", deadline_ms, tickets })
    }
}

/// What a script that takes a hold replied.
pub enum Reply {
    /// What the caller may know as it is.
    Is(Held),
    /// Nothing is held; which of the seats are taken, or how many tickets are free.
    Not(Vec<i64>),
    /// The event is not in the store.
    Lost,
}

/// Reads the reply of a script that takes a hold.
pub fn held(reply: &Value) -> Option<Reply> {
    let Value::Array(items) = reply else { return None };
    Some(match items.as_slice() {
        [Value::Int(1), Value::Int(deadline_ms), Value::Int(left_ms), seats] => Reply::Is(Held::Until {
            deadline_ms: u64::try_from(*deadline_ms).ok()?,
            left: Duration::from_millis(u64::try_from(*left_ms).ok()?),
            seats: names(&text(seats)?),
        }),
        [Value::Int(0), rest @ ..] => {
            let number = |item: &Value| if let Value::Int(number) = item { Some(*number) } else { None };
            Reply::Not(rest.iter().map(number).collect::<Option<_>>()?)
        }
        [Value::Int(-1)] => Reply::Lost,
        [Value::Int(-2)] => Reply::Is(Held::Over),
        [Value::Int(-3)] => Reply::Is(Held::OtherWish),
        _ => return None,
    })
}

/// Names separated by commas.
pub fn names(list: &str) -> Vec<String> {
    list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// A reply that is text; `None` for nil.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::Bulk(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

/// Reads the reply of `scan_hash`: where to go on, and the fields with their values.
pub fn scanned(reply: &Value) -> Option<(String, Vec<(String, String)>)> {
    let Value::Array(parts) = reply else { return None };
    let [cursor, Value::Array(fields)] = parts.as_slice() else { return None };
    let (pairs, []) = fields.as_chunks::<2>() else { return None };
    let pairs = pairs.iter().map(|[field, value]| Some((text(field)?, text(value)?)));
    Some((text(cursor)?, pairs.collect::<Option<_>>()?))
}
