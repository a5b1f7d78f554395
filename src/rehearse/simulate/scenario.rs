//! What to simulate.

use std::time::Duration;

use super::SimulateError;
use crate::{
    config::{
        problems::Problems,
        room::{check_policy, default_burst},
    },
    queue::{Policy, Schedule},
    rehearse::Arrivals,
};

/// A sale: who comes, what the room allows, how much there is to sell.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// How many people come, 1 to 5,000,000.
    pub users: u32,
    /// When they come.
    pub arrivals: Arrivals,
    /// Most visitors inside, called ones counted.
    pub capacity: u32,
    /// Most admissions per second.
    pub rate: f64,
    /// Admissions at once beyond an even flow; at least 1.
    pub burst: u32,
    /// How long a called visitor has to show up.
    pub claim_window: Duration,
    /// How many tickets there are; `None` never sells out.
    pub tickets: Option<u32>,
    /// What people are like.
    pub habits: Habits,
    /// Virtual time after which to stop.
    pub deadline: Duration,
    /// Decides who does what.
    pub seed: u64,
}

/// What people are like. Shares are 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Habits {
    /// Mean time inside. Drawn as the sum of two exponential halves (Erlang-2): few leave at once, some take long.
    pub visit: Duration,
    /// Share of visitors inside who want to buy, which they do at the end of the visit if tickets are left.
    pub buy_ratio: f64,
    /// Mean number of tickets a buyer takes, at least 1. 2.3 is 2 or 3.
    pub tickets_per_buyer: f64,
    /// Share of called people who never come: their slot stays empty for a claim window.
    pub no_shows: f64,
    /// Share of people who give up if they wait longer than their patience.
    pub leave_early: f64,
    /// Mean of that patience; exponential.
    pub patience: Duration,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            visit: Duration::from_mins(2),
            buy_ratio: 0.6,
            tickets_per_buyer: 2.0,
            no_shows: 0.05,
            leave_early: 0.03,
            patience: Duration::from_mins(10),
        }
    }
}

impl Habits {
    /// Everyone waits, comes when called, and buys one ticket.
    pub const fn polite(visit: Duration) -> Self {
        Self {
            visit,
            buy_ratio: 1.0,
            tickets_per_buyer: 1.0,
            no_shows: 0.0,
            leave_early: 0.0,
            patience: Duration::from_mins(10),
        }
    }
}

/// Memory: about 400 bytes a person.
const MOST_USERS: u32 = 5_000_000;
const MOST_TICKETS_EACH: f64 = 100.0;
const LONGEST: Duration = Duration::from_hours(366 * 24);

impl Scenario {
    /// When to stop unless told otherwise.
    pub const LONGEST_SALE: Duration = Duration::from_hours(48);

    /// The usual sale: everybody within five seconds, 50,000 tickets, usual people.
    pub fn new(users: u32, capacity: u32, rate: f64) -> Self {
        Self {
            users,
            arrivals: Arrivals::Ramp(Duration::from_secs(5)),
            capacity,
            rate,
            burst: default_burst(rate),
            claim_window: Duration::from_secs(90),
            tickets: Some(50_000),
            habits: Habits::default(),
            deadline: Self::LONGEST_SALE,
            seed: 1,
        }
    }

    /// Finds what cannot be simulated.
    ///
    /// # Errors
    /// [`SimulateError::Scenario`], naming everything wrong.
    pub fn check(&self) -> Result<(), SimulateError> {
        let Habits { visit, buy_ratio, tickets_per_buyer, no_shows, leave_early, patience } = self.habits;
        let mut problems = Problems::default();
        problems
            .check((1..=MOST_USERS).contains(&self.users), || format!("--users {}: use 1 to {MOST_USERS}", self.users));
        let flag = |field: &str| match field.replace('_', "-") {
            burst if burst.starts_with("burst") => format!("--rate-{burst}"),
            other => format!("--{other}"),
        };
        check_policy(&self.policy(), LONGEST, &flag, &mut problems);
        for (flag, share) in [("buy-ratio", buy_ratio), ("no-shows", no_shows), ("leave-early", leave_early)] {
            problems.check((0.0..=1.0).contains(&share), || format!("--{flag} {share}: a share is 0 to 1"));
        }
        problems.check((1.0..=MOST_TICKETS_EACH).contains(&tickets_per_buyer), || {
            format!("--tickets-per-buyer {tickets_per_buyer}: use 1 to {MOST_TICKETS_EACH}")
        });
        for (flag, time) in [("visit", visit), ("patience", patience), ("deadline", self.deadline)] {
            problems
                .check(!time.is_zero() && time <= LONGEST, || format!("--{flag}: use more than 0 s, at most a year"));
        }
        problems.check(self.arrivals.span() <= LONGEST, || "--ramp is longer than a year".to_owned());
        problems.finish(Some(())).map_err(SimulateError::Scenario)
    }

    /// The room's policy, with presence and renewal left to the model.
    pub(super) fn policy(&self) -> Policy {
        Policy {
            capacity: self.capacity,
            rate: self.rate,
            burst: self.burst,
            claim_window: self.claim_window,
            session_ttl: LONGEST,
            absent_after: LONGEST,
            grace: LONGEST,
            settle: Duration::ZERO,
            schedule: Schedule::default(),
        }
    }
}
