//! Take the first row that nobody has locked. Nobody waits in the database.

use futures_util::future::BoxFuture;
use sqlx::PgPool;

use super::{Outcome, RaceError, Sell, database, naive, plan::Buyer};

const ONE: &str = "SELECT id FROM seats WHERE id = $1 AND buyer IS NULL FOR UPDATE SKIP LOCKED";
const ANY: &str = "SELECT id FROM seats WHERE id >= $1 AND buyer IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
/// How often a buyer finds all that is left locked before being told that others are buying it.
const TRIES: u32 = 10;

pub struct SkipLocked(pub PgPool);

impl Sell for SkipLocked {
    fn attempt(&self, buyer: Buyer) -> BoxFuture<'_, Result<Outcome, RaceError>> {
        let wish = buyer.wish.from_the_front();
        Box::pin(async move {
            for tried in 0..TRIES {
                let mut transaction = self.0.begin().await?;
                if let Some(seat) = database::look(&mut *transaction, wish, ONE, ANY).await? {
                    database::sell(&mut *transaction, seat, buyer).await?;
                    transaction.commit().await?;
                    return Ok(Outcome::Sold);
                }
                // No row is "sold" or only "locked", by somebody who may yet roll back: what is committed tells.
                let still_free = database::look(&mut *transaction, wish, naive::ONE, naive::ANY).await?;
                transaction.rollback().await?;
                if still_free.is_none() {
                    return Ok(Outcome::Conflict);
                }
                buyer.back_off(tried).await;
            }
            Ok(Outcome::Conflict)
        })
    }
}
