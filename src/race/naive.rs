//! Read whether the seat is free, then write. Between the two, everybody else reads the same.

use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::BoxFuture;
use sqlx::PgPool;
use tokio::sync::Barrier;

use super::{Outcome, Plan, RaceError, Sell, database, plan::Buyer};

/// Reads a seat that is wanted and free.
pub const ONE: &str = "SELECT id FROM seats WHERE id = $1 AND buyer IS NULL";
/// Reads the first free seat.
pub const ANY: &str = "SELECT id FROM seats WHERE id >= $1 AND buyer IS NULL ORDER BY id LIMIT 1";

pub struct Naive {
    pool: PgPool,
    meeting: Option<Meeting>,
}

impl Naive {
    pub fn new(pool: PgPool, plan: &Plan) -> Self {
        let meeting = plan.naive_meet.then(|| Meeting::of(plan.pool.min(plan.attempts)));
        Self { pool, meeting }
    }
}

impl Sell for Naive {
    fn attempt(&self, buyer: Buyer) -> BoxFuture<'_, Result<Outcome, RaceError>> {
        let wish = buyer.wish.from_the_front();
        Box::pin(async move {
            let mut transaction = self.pool.begin().await?;
            let Some(seat) = database::look(&mut *transaction, wish, ONE, ANY).await? else {
                transaction.rollback().await?;
                return Ok(Outcome::Conflict);
            };
            if let Some(meeting) = &self.meeting {
                meeting.join().await;
            }
            database::sell(&mut *transaction, seat, buyer).await?;
            transaction.commit().await?;
            Ok(Outcome::Sold)
        })
    }
}

/// Where the first buyers wait for each other; later ones pass.
struct Meeting {
    size: u32,
    came: AtomicU32,
    barrier: Barrier,
}

impl Meeting {
    fn of(size: u32) -> Self {
        Self { size, came: AtomicU32::new(0), barrier: Barrier::new(size as usize) }
    }

    async fn join(&self) {
        if self.came.fetch_add(1, Ordering::Relaxed) < self.size {
            self.barrier.wait().await;
        }
    }
}
