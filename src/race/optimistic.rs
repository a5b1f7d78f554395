//! Read the row with its version, and write only if the version is still the same. Nobody waits; who lost tries again.

use futures_util::future::BoxFuture;
use sqlx::PgPool;

use super::{Outcome, RaceError, Sell, plan::Buyer};

const ONE: &str = "SELECT id, version FROM seats WHERE id = $1 AND buyer IS NULL";
/// Each buyer begins elsewhere, or all would fight for the same first seat.
const ANY: &str = "(SELECT id, version FROM seats WHERE id >= $1 AND buyer IS NULL ORDER BY id LIMIT 1)
    UNION ALL (SELECT id, version FROM seats WHERE id < $1 AND buyer IS NULL ORDER BY id LIMIT 1) LIMIT 1";
const SELL: &str = "WITH sold AS (
        UPDATE seats SET buyer = $3, version = version + 1 WHERE id = $1 AND version = $2 RETURNING id)
    INSERT INTO sales (seat, buyer) SELECT id, $3 FROM sold";
/// How often a buyer is overtaken before being told so.
const TRIES: u32 = 20;

pub struct Optimistic(pub PgPool);

impl Sell for Optimistic {
    fn attempt(&self, buyer: Buyer) -> BoxFuture<'_, Result<Outcome, RaceError>> {
        Box::pin(async move {
            for tried in 0..TRIES {
                let (statement, seat) = buyer.wish.statement(ONE, ANY);
                let read: Option<(i64, i64)> = sqlx::query_as(statement).bind(seat).fetch_optional(&self.0).await?;
                let Some((free, version)) = read else { return Ok(Outcome::Conflict) };
                let write = sqlx::query(SELL).bind(free).bind(version).bind(i64::from(buyer.number));
                if write.execute(&self.0).await?.rows_affected() == 1 {
                    return Ok(Outcome::Sold);
                }
                buyer.back_off(tried).await;
            }
            Ok(Outcome::Conflict)
        })
    }
}
