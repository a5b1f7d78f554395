//! The seat race: many buyers at once, and one way after another to keep a seat from being sold twice.
//!
//! | module | holds |
//! | --- | --- |
//! | [`plan`] | what is raced: the strategies by name, the seats, how buyers arrive |
//! | `naive`, `pessimistic`, `skip_locked`, `optimistic`, `redis_lock`, `set_nx`, `lua_decrement` | one way to sell each |
//! | `database`, `shop` | where sales are recorded: a schema of the race's own; the box office's own inventory and scripts |
//! | `crowd` | the buyers: all at one barrier, spread over time, or clients that try again and again |
//! | [`report`], [`figures`] | what is told, and whether it was right |
//!
//! What was sold is counted from what is recorded, never from what buyers were told; that the two agree is checked. No
//! table has a constraint that would save a strategy from itself.

mod crowd;
mod database;
mod error;
pub mod figures;
mod lua_decrement;
mod naive;
mod optimistic;
mod pessimistic;
pub mod plan;
mod redis_lock;
pub mod report;
mod set_nx;
mod shop;
mod skip_locked;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rand::{SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use sqlx::PgPool;

use self::{
    crowd::Attempt,
    database::Database,
    figures::Tally,
    plan::Buyer,
    shop::{Kind, Shop},
};
pub use self::{
    database::is_postgresql,
    error::RaceError,
    plan::{Arrivals, Plan, Strategy},
    report::Report,
};
use crate::{shutdown::Shutdown, store::SharedEngine};

/// How one buyer's attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The buyer was told that the seat is theirs.
    Sold,
    /// The buyer was told that somebody else has it, or that nothing is left.
    Conflict,
}

/// One way to sell a seat.
trait Sell: Send + Sync {
    /// One buyer's attempt, from the wish to the answer.
    fn attempt(&self, buyer: Buyer) -> BoxFuture<'_, Result<Outcome, RaceError>>;
}

/// What is recorded when all is quiet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stock {
    /// Seats or tickets there were to sell.
    pub total: u64,
    /// Seats or tickets that nobody has.
    pub free: i64,
    /// Sales on record.
    pub sales: u64,
    /// Those of them whose seat an earlier one had sold already, or that are more than there were tickets.
    pub duplicates: u64,
}

/// Runs the race. What it made in the database and in the store is gone at the end, when it was stopped too.
pub async fn run(plan: &Plan, engine: SharedEngine, stop: &Shutdown) -> Result<Report, RaceError> {
    plan.check()?;
    let database = match &plan.database {
        Some(url) if plan.strategies.iter().any(|strategy| strategy.needs_database()) => {
            Some(Database::open(url, plan).await?)
        }
        _ => None,
    };
    let races = Races { plan, database: database.as_ref(), shop: Shop::new(engine, plan.seats) };
    let report = tokio::select! {
        report = races.all() => report,
        () = stop.stopped() => Err(RaceError::Interrupted),
    };
    let erased = races.shop.erase().await;
    let dropped = match &database {
        Some(database) => database.close().await,
        None => Ok(()),
    };
    // What went wrong first is what is told.
    let report = report?;
    dropped.and(erased)?;
    Ok(report)
}

struct Races<'a> {
    plan: &'a Plan,
    database: Option<&'a Database>,
    shop: Shop,
}

impl Races<'_> {
    /// Every strategy in every round, in another order each round, so that none always has the machine's good moments.
    async fn all(&self) -> Result<Report, RaceError> {
        let mut luck = StdRng::seed_from_u64(self.plan.seed);
        let mut tallies: Vec<(Strategy, Tally)> =
            self.plan.runnable().map(|strategy| (strategy, Tally::default())).collect();
        let mut order: Vec<usize> = (0..tallies.len()).collect();
        for _ in 0..self.plan.rounds {
            order.shuffle(&mut luck);
            for &index in &order {
                if let Some((strategy, tally)) = tallies.get_mut(index) {
                    let (attempts, stock) = self.one(*strategy).await?;
                    tally.add(&attempts, stock);
                }
            }
        }
        Ok(Report::new(self.plan, &tallies))
    }

    async fn one(&self, strategy: Strategy) -> Result<(Vec<Attempt>, Stock), RaceError> {
        match strategy {
            Strategy::Naive => self.in_database(|pool| Arc::new(naive::Naive::new(pool, self.plan))).await,
            Strategy::Pessimistic => self.in_database(|pool| Arc::new(pessimistic::Pessimistic(pool))).await,
            Strategy::SkipLocked => self.in_database(|pool| Arc::new(skip_locked::SkipLocked(pool))).await,
            Strategy::Optimistic => self.in_database(|pool| Arc::new(optimistic::Optimistic(pool))).await,
            Strategy::RedisLock => {
                self.in_database(|pool| Arc::new(redis_lock::RedisLock { pool, shop: self.shop.clone() })).await
            }
            Strategy::SetNx => self.in_store(Arc::new(set_nx::SetNx(self.shop.clone())), Kind::Seats).await,
            Strategy::LuaDecrement => {
                self.in_store(Arc::new(lua_decrement::LuaDecrement(self.shop.clone())), Kind::Tickets).await
            }
        }
    }

    async fn in_database(
        &self,
        seller: impl FnOnce(PgPool) -> Arc<dyn Sell>,
    ) -> Result<(Vec<Attempt>, Stock), RaceError> {
        let database = self.database.ok_or(RaceError::NoDatabase)?;
        database.reset().await?;
        let pool = database.pool().await?;
        let attempts = crowd::race(self.plan, seller(pool.clone())).await;
        database::close(&pool).await;
        Ok((attempts, database.count().await?))
    }

    async fn in_store(&self, seller: Arc<dyn Sell>, kind: Kind) -> Result<(Vec<Attempt>, Stock), RaceError> {
        self.shop.erase().await?;
        self.shop.open().await?;
        let attempts = crowd::race(self.plan, seller).await;
        Ok((attempts, self.shop.count(kind, self.plan.attempts).await?))
    }
}
