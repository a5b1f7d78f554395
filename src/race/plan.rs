//! What is raced.

use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use super::RaceError;

/// Most seats of a race.
pub const MOST_SEATS: u32 = 10_000;
/// Most attempts in a round, and most of them at once: each is a task, and remembered until the end.
pub const MOST_ATTEMPTS: u32 = 100_000;
/// Most connections to the database.
pub const MOST_CONNECTIONS: u32 = 1_000;

/// Longest ramp or deadline.
pub const LONGEST: Duration = Duration::from_hours(24);

/// A way to keep a seat from being sold twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Strategy {
    /// Reads whether the seat is free, then writes: sells it many times.
    Naive,
    /// SELECT … FOR UPDATE: whoever comes second waits for the row's lock.
    Pessimistic,
    /// SELECT … FOR UPDATE SKIP LOCKED: whoever comes second passes over a locked row.
    SkipLocked,
    /// A version in the row, and UPDATE … WHERE version = what was read; tried again a few times.
    Optimistic,
    /// A lock in Redis around the naive steps in the database.
    RedisLock,
    /// The box office's own hold on a seat: SET NX in a script.
    SetNx,
    /// The box office's own hold on general admission: a counter that a script lowers; it knows no seats.
    LuaDecrement,
}

impl Strategy {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Pessimistic => "pessimistic",
            Self::SkipLocked => "skip-locked",
            Self::Optimistic => "optimistic",
            Self::RedisLock => "redis-lock",
            Self::SetNx => "set-nx",
            Self::LuaDecrement => "lua-decrement",
        }
    }

    /// Whether it sells from rows of a database.
    pub fn needs_database(self) -> bool {
        !matches!(self, Self::SetNx | Self::LuaDecrement)
    }

    /// Whether it runs scripts in the store.
    pub fn needs_store(self) -> bool {
        matches!(self, Self::RedisLock | Self::SetNx | Self::LuaDecrement)
    }
}

/// How the attempts come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// All at one barrier.
    Burst,
    /// Evenly spread over this long.
    Ramp(Duration),
    /// From this many clients, each of which goes on with the next as soon as it has its answer.
    Clients(u32),
}

/// What to race.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The strategies, each once.
    pub strategies: Vec<Strategy>,
    /// `PostgreSQL`'s URL; without it the strategies that need a database are passed over.
    pub database: Option<String>,
    /// Whether the store is this process itself.
    pub embedded: bool,
    /// Seats on sale, 1 to [`MOST_SEATS`].
    pub seats: u32,
    /// Whether any seat will do; else all want the first.
    pub spread: bool,
    /// Attempts in a round, 1 to [`MOST_ATTEMPTS`].
    pub attempts: u32,
    /// How they come.
    pub arrivals: Arrivals,
    /// Connections to the database, 1 to [`MOST_CONNECTIONS`].
    pub pool: u32,
    /// How often each strategy is raced, at least once.
    pub rounds: u32,
    /// Decides the order of the strategies in a round, and every buyer's patience.
    pub seed: u64,
    /// When a strategy's round ends, whoever is still waiting.
    pub deadline: Duration,
    /// Whether the first naive buyers, one a connection, wait for each other between reading and writing. That takes
    /// chance out of how often they sell a seat, which is for tests.
    pub naive_meet: bool,
}

impl Plan {
    /// Whether it can be raced at all.
    pub fn check(&self) -> Result<(), RaceError> {
        let within = |what, value: u32, most: u32| {
            if (1..=most).contains(&value) { Ok(()) } else { Err(RaceError::OutOfRange { what, value, most }) }
        };
        within("seats", self.seats, MOST_SEATS)?;
        within("buyers or attempts", self.attempts, MOST_ATTEMPTS)?;
        within("connections in the pool", self.pool, MOST_CONNECTIONS)?;
        within("rounds", self.rounds, u32::MAX)?;
        let span = match self.arrivals {
            Arrivals::Clients(clients) => within("clients", clients, MOST_ATTEMPTS).map(|()| Duration::ZERO)?,
            Arrivals::Ramp(span) => span,
            Arrivals::Burst => Duration::ZERO,
        };
        if span.max(self.deadline) > LONGEST { Err(RaceError::TooLong) } else { Ok(()) }
    }

    /// The strategies that have what they need.
    pub fn runnable(&self) -> impl Iterator<Item = Strategy> {
        self.strategies.iter().copied().filter(|strategy| self.database.is_some() || !strategy.needs_database())
    }

    /// Who makes an attempt, counted from 0.
    pub(super) fn buyer(&self, number: u32) -> Buyer {
        let seed = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(number);
        let wish = if self.spread { Wish::Any { near: (number % self.seats).into() } } else { Wish::Seat(0) };
        Buyer { number, wish, seed }
    }
}

/// What a buyer wants. Seats are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// This seat and no other.
    Seat(i64),
    /// Any seat. Who has to name one begins with this.
    Any {
        /// Every seat is near to as many buyers as any other.
        near: i64,
    },
}

impl Wish {
    /// The same wish of somebody who looks through the seats from the first.
    #[must_use]
    pub fn from_the_front(self) -> Self {
        match self {
            Self::Any { .. } => Self::Any { near: 0 },
            Self::Seat(_) => self,
        }
    }

    /// The statement for one seat or that for any, and the number it takes: the seat, or where to begin.
    pub fn statement(self, one: &'static str, any: &'static str) -> (&'static str, i64) {
        match self {
            Self::Seat(seat) => (one, seat),
            Self::Any { near } => (any, near),
        }
    }
}

/// One attempt's buyer.
#[derive(Debug, Clone, Copy)]
pub struct Buyer {
    /// Counted from 0.
    pub number: u32,
    /// What is wanted.
    pub wish: Wish,
    seed: u64,
}

impl Buyer {
    /// Waits a little before try number `tried`, counted from 0: longer each time, and never as long as the next buyer.
    pub async fn back_off(self, tried: u32) {
        let mut luck = StdRng::seed_from_u64(self.seed.wrapping_add(u64::from(tried) << 32));
        let most = (2_000_u64 << tried.min(4)).min(20_000);
        tokio::time::sleep(Duration::from_micros(luck.random_range(most / 4..=most))).await;
    }
}
