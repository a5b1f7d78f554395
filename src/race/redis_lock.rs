//! A lock in Redis around the naive steps. Safe as long as the steps end before the lock does.
//!
//! The owner's name is random, and only the owner gives the lock back. That does not help an owner who sleeps past the
//! lock's time in mid-sale; so the steps have a deadline well within it, and so has each statement in the database.

use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::PgPool;
use tokio::time::timeout;

use super::{
    Outcome, RaceError, Sell,
    database::{self, STATEMENT_TIMEOUT},
    naive::ONE,
    plan::{Buyer, Wish},
    shop::Shop,
};

/// How long a lock lives when its owner dies: more than the steps and the last statement can take together.
pub const LOCK_TTL: Duration = Duration::from_secs(20);
/// How long the steps under the lock may take.
const STEPS: Duration = Duration::from_secs(5);
const _: () = assert!(STEPS.as_secs() + STATEMENT_TIMEOUT.as_secs() < LOCK_TTL.as_secs());
/// Each buyer begins elsewhere, or all would fight for the same first seat's lock.
const ANY: &str = "(SELECT id FROM seats WHERE id >= $1 AND buyer IS NULL ORDER BY id LIMIT 1)
    UNION ALL (SELECT id FROM seats WHERE id < $1 AND buyer IS NULL ORDER BY id LIMIT 1) LIMIT 1";
/// How often a buyer finds the lock taken before being told that others are buying the seat.
const TRIES: u32 = 50;

pub struct RedisLock {
    pub pool: PgPool,
    pub shop: Shop,
}

impl Sell for RedisLock {
    fn attempt(&self, buyer: Buyer) -> BoxFuture<'_, Result<Outcome, RaceError>> {
        Box::pin(async move {
            for tried in 0..TRIES {
                // A look without the lock spares the losers a wait for it.
                let Some(seat) = database::look(&self.pool, buyer.wish, ONE, ANY).await? else {
                    return Ok(Outcome::Conflict);
                };
                if let Some(lock) = self.shop.lock(seat, LOCK_TTL).await? {
                    let sold = timeout(STEPS, self.buy(seat, buyer)).await;
                    // One that could not be given back ends by itself.
                    let given_back = self.shop.unlock(lock).await;
                    if sold.map_err(|_| RaceError::LockRanOut)?? {
                        return Ok(Outcome::Sold);
                    }
                    given_back?;
                    continue;
                }
                buyer.back_off(tried).await;
            }
            Ok(Outcome::Conflict)
        })
    }
}

impl RedisLock {
    /// The naive steps. Whether the seat was still free.
    async fn buy(&self, seat: i64, buyer: Buyer) -> Result<bool, RaceError> {
        let mut transaction = self.pool.begin().await?;
        if database::look(&mut *transaction, Wish::Seat(seat), ONE, ONE).await?.is_none() {
            transaction.rollback().await?;
            return Ok(false);
        }
        database::sell(&mut *transaction, seat, buyer).await?;
        transaction.commit().await?;
        Ok(true)
    }
}
