//! Lock the row, then look. Whoever comes second waits, and looks again at what the first one left.

use futures_util::future::BoxFuture;
use sqlx::PgPool;

use super::{Outcome, RaceError, Sell, database, plan::Buyer};

const ONE: &str = "SELECT id FROM seats WHERE id = $1 AND buyer IS NULL FOR UPDATE";
/// Everybody waits for the same first free seat, which is how it is mostly written.
const ANY: &str = "SELECT id FROM seats WHERE id >= $1 AND buyer IS NULL ORDER BY id LIMIT 1 FOR UPDATE";

pub struct Pessimistic(pub PgPool);

impl Sell for Pessimistic {
    fn attempt(&self, buyer: Buyer) -> BoxFuture<'_, Result<Outcome, RaceError>> {
        let wish = buyer.wish.from_the_front();
        Box::pin(async move {
            let mut transaction = self.0.begin().await?;
            let Some(seat) = database::look(&mut *transaction, wish, ONE, ANY).await? else {
                transaction.rollback().await?;
                return Ok(Outcome::Conflict);
            };
            database::sell(&mut *transaction, seat, buyer).await?;
            transaction.commit().await?;
            Ok(Outcome::Sold)
        })
    }
}
