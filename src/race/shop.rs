//! The seats as keys: an event of the race's own in the box office's inventory, sold by the box office's own scripts.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::{Outcome, RaceError, Stock, plan::Buyer};
use crate::{
    box_office::{
        ids::{HoldId, OrderId},
        inventory::{Inventory, Tickets},
        seats::SeatPlan,
    },
    store::{Script, SharedEngine, StoreError, Value},
};

static TAKE_LOCK: Script = Script::new("take_lock-1.lua", include_str!("../../lua/take_lock-1.lua"));
static GIVE_LOCK: Script = Script::new("give_lock-1.lua", include_str!("../../lua/give_lock-1.lua"));

/// How many records are asked for at once when counting.
const AT_ONCE: usize = 64;

/// What is sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Numbered seats.
    Seats,
    /// General admission.
    Tickets,
}

/// An event with as many seats as general-admission tickets. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Shop {
    engine: SharedEngine,
    event: Arc<str>,
    seats: Arc<SeatPlan>,
    /// The box office's own.
    pub inventory: Arc<Inventory>,
}

/// A lock that somebody has.
#[derive(Debug)]
pub struct Lock {
    key: String,
    owner: String,
}

impl Shop {
    /// Nothing is asked of the store yet.
    pub fn new(engine: SharedEngine, seats: u32) -> Self {
        let event = format!("race-{:016x}", rand::random::<u64>());
        let plan = SeatPlan::new(seats);
        let inventory = Arc::new(Inventory::new(Arc::clone(&engine), &event, &plan, seats));
        Self { engine, event: event.into(), seats: Arc::new(plan), inventory }
    }

    /// Lays out the seats and the tickets, all free.
    pub async fn open(&self) -> Result<(), RaceError> {
        Ok(self.inventory.open().await?)
    }

    /// Removes every key.
    pub async fn erase(&self) -> Result<(), RaceError> {
        Ok(self.inventory.erase().await?)
    }

    /// The hold of the buyer with this number.
    pub fn hold_of(buyer: u32) -> HoldId {
        HoldId::numbered(buyer.into())
    }

    /// The seat with this number, from 0.
    pub fn seat(&self, number: i64) -> Tickets {
        let name = usize::try_from(number).ok().and_then(|number| self.seats.names().get(number));
        Tickets { seats: name.into_iter().cloned().collect(), quantity: 1 }
    }

    /// Sells what the buyer holds.
    pub async fn sell(&self, buyer: Buyer, tickets: &Tickets) -> Result<Outcome, RaceError> {
        let order = OrderId::numbered(buyer.number.into());
        let lost = self.inventory.sell(&Self::hold_of(buyer.number), &order, tickets).await?;
        Ok(if lost == 0 { Outcome::Sold } else { Outcome::Conflict })
    }

    /// Counts what is on record: a record for every hold that was ever given, and what nobody has.
    pub async fn count(&self, kind: Kind, buyers: u32) -> Result<Stock, RaceError> {
        let find = async |buyer| self.inventory.find(&Self::hold_of(buyer)).await;
        let records = stream::iter(0..buyers).map(find).buffer_unordered(AT_ONCE);
        let records: Vec<Tickets> = records.try_filter_map(async |record| Ok(record)).try_collect().await?;
        let state = self.inventory.state().await?;
        let total = self.seats.names().len() as u64;
        let (free, distinct) = match kind {
            Kind::Seats => {
                let seats: HashSet<&String> = records.iter().flat_map(|record| &record.seats).collect();
                (state.seat_counts.free, seats.len() as u64)
            }
            Kind::Tickets => (state.tickets.free, total.min(records.len() as u64)),
        };
        let sales = records.len() as u64;
        Ok(Stock { total, free, sales, duplicates: sales - distinct })
    }

    /// Takes the seat's lock, unless somebody has it.
    pub async fn lock(&self, seat: i64, ttl: Duration) -> Result<Option<Lock>, RaceError> {
        let key = format!("stanchion-race:{{{}}}:lock:{seat}", self.event);
        let lock = Lock { key, owner: format!("{:032x}", rand::random::<u128>()) };
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let taken = self
            .engine
            .run(&TAKE_LOCK, std::slice::from_ref(&lock.key), vec![lock.owner.as_str().into(), ttl.into()])
            .await?;
        Ok(is_one(&TAKE_LOCK, &taken)?.then_some(lock))
    }

    /// Gives the lock back. It was lost before, if its time was up.
    pub async fn unlock(&self, lock: Lock) -> Result<(), RaceError> {
        let given = self.engine.run(&GIVE_LOCK, &[lock.key], vec![lock.owner.into()]).await?;
        if is_one(&GIVE_LOCK, &given)? { Ok(()) } else { Err(RaceError::LockRanOut) }
    }
}

fn is_one(script: &'static Script, reply: &Value) -> Result<bool, StoreError> {
    match reply {
        Value::Int(number) => Ok(*number == 1),
        other => Err(StoreError::Script { script: script.file(), message: format!("unexpected reply {other:?}") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::ManualClock, store::in_process::InProcess};

    const TTL: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_lock_is_given_back_by_its_owner_only() {
        let clock = ManualClock::at(1_000_000);
        let shop = Shop::new(Arc::new(InProcess::new(Arc::new(clock.clone()))), 1);
        let first = shop.lock(0, TTL).await.unwrap().expect("nobody has it");
        assert!(shop.lock(0, TTL).await.unwrap().is_none(), "two owners");
        assert!(shop.lock(1, TTL).await.unwrap().is_some(), "another seat has another lock");
        clock.advance(TTL + Duration::from_millis(1));
        let second = shop.lock(0, TTL).await.unwrap().expect("its time is up");
        assert!(matches!(shop.unlock(first).await, Err(RaceError::LockRanOut)));
        assert!(shop.lock(0, TTL).await.unwrap().is_none(), "the first owner gave back the second one's lock");
        shop.unlock(second).await.unwrap();
        assert!(shop.lock(0, TTL).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn what_is_counted_is_what_is_recorded() {
        let shop = Shop::new(Arc::new(InProcess::new(Arc::new(ManualClock::at(1_000_000)))), 3);
        shop.open().await.unwrap();
        let counted = async |kind| shop.count(kind, 5).await.unwrap();
        assert_eq!(counted(Kind::Seats).await, Stock { total: 3, free: 3, sales: 0, duplicates: 0 });
        for (buyer, seat) in [(0, 0), (4, 2)] {
            shop.inventory.hold(&Shop::hold_of(buyer), &shop.seat(seat), TTL).await.unwrap();
        }
        let two = Stock { total: 3, free: 1, sales: 2, duplicates: 0 };
        assert_eq!(counted(Kind::Seats).await, two);
        // A seat's key is lost while its sale is on record, so it is given to somebody else too.
        shop.engine.run(&GIVE_LOCK, &[shop.seat_key(0)], vec![Shop::hold_of(0).as_str().into()]).await.unwrap();
        shop.inventory.hold(&Shop::hold_of(1), &shop.seat(0), TTL).await.unwrap();
        assert_eq!(counted(Kind::Seats).await, Stock { sales: 3, duplicates: 1, ..two });
        shop.erase().await.unwrap();
        shop.open().await.unwrap();
        assert_eq!(counted(Kind::Tickets).await, Stock { total: 3, free: 3, sales: 0, duplicates: 0 });
    }

    impl Shop {
        fn seat_key(&self, number: i64) -> String {
            format!("stanchion-box:{{{}}}:seat:{}", self.event, self.seat(number).seats[0])
        }
    }
}
