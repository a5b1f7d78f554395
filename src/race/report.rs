//! What a race found: the table on the terminal, and its twin in JSON.

use std::fmt;

use serde::Serialize;

use super::{
    Arrivals, Plan, Strategy,
    figures::{Figures, Tally},
    redis_lock::LOCK_TTL,
};

/// What a race found. Serialises to the JSON of `--json`, displays as the table.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// One strategy each, in the order asked for.
    pub strategies: Vec<Figures>,
    /// Those that lacked something.
    pub skipped: Vec<Skipped>,
    /// Whether no strategy but naive sold twice, and everything adds up.
    pub held: bool,
    /// What it takes to race the same again.
    pub settings: Settings,
}

/// A strategy that was not raced.
#[derive(Debug, Clone, Serialize)]
pub struct Skipped {
    /// Its name.
    pub strategy: &'static str,
    /// What it lacked.
    pub why: &'static str,
}

/// The plan, but for addresses.
#[derive(Debug, Clone, Serialize)]
pub struct Settings {
    /// `burst`, `ramp` or `clients`.
    pub arrivals: &'static str,
    /// Attempts in a round.
    pub attempts: u32,
    /// Over how long they were spread.
    pub ramp_seconds: Option<f64>,
    /// How many clients made them.
    pub clients: Option<u32>,
    /// Seats there were.
    pub seats: u32,
    /// Whether any seat would do.
    pub spread: bool,
    /// Connections to the database.
    pub pool: u32,
    /// Rounds of each strategy.
    pub rounds: u32,
    /// The seed.
    pub seed: u64,
    /// When a round would have been cut off.
    pub deadline_seconds: f64,
    /// How long a lock in Redis lives.
    pub lock_ttl_seconds: f64,
    /// Where keys were.
    pub store: &'static str,
}

impl Report {
    pub(super) fn new(plan: &Plan, tallies: &[(Strategy, Tally)]) -> Self {
        let strategies: Vec<Figures> =
            tallies.iter().map(|(strategy, tally)| tally.figures(*strategy, on(plan, *strategy))).collect();
        let lacks = |strategy: &Strategy| !plan.runnable().any(|runnable| runnable == *strategy);
        let skipped = plan.strategies.iter().filter(|strategy| lacks(strategy));
        let skipped = skipped.map(|strategy| Skipped { strategy: strategy.name(), why: "needs --database" }).collect();
        let held = strategies.iter().all(|figures| figures.faults.is_empty());
        Self { strategies, skipped, held, settings: Settings::of(plan) }
    }
}

impl Settings {
    fn of(plan: &Plan) -> Self {
        let (arrivals, ramp, clients) = match plan.arrivals {
            Arrivals::Burst => ("burst", None, None),
            Arrivals::Ramp(span) => ("ramp", Some(span.as_secs_f64()), None),
            Arrivals::Clients(clients) => ("clients", None, Some(clients)),
        };
        Self {
            arrivals,
            attempts: plan.attempts,
            ramp_seconds: ramp,
            clients,
            seats: plan.seats,
            spread: plan.spread,
            pool: plan.pool,
            rounds: plan.rounds,
            seed: plan.seed,
            deadline_seconds: plan.deadline.as_secs_f64(),
            lock_ttl_seconds: LOCK_TTL.as_secs_f64(),
            store: store(plan),
        }
    }
}

fn store(plan: &Plan) -> &'static str {
    if plan.embedded { "embedded" } else { "redis" }
}

fn on(plan: &Plan, strategy: Strategy) -> String {
    match (strategy.needs_database(), strategy.needs_store()) {
        (true, true) => format!("postgresql+{}", store(plan)),
        (true, false) => "postgresql".to_owned(),
        (false, _) => store(plan).to_owned(),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.settings)?;
        writeln!(
            f,
            "{:<13}  {:>6}  {:>10}  {:>9}  {:>6}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}  {:>10}",
            "strategy",
            "sold",
            "duplicates",
            "conflicts",
            "errors",
            "min ms",
            "mean",
            "winners",
            "losers",
            "p99",
            "max",
            "attempts/s"
        )?;
        for figures in &self.strategies {
            let mean = |mean: Option<f64>| mean.map_or("-".to_owned(), |mean| format!("{mean:.1}"));
            writeln!(
                f,
                "{:<13}  {:>6}  {:>10}  {:>9}  {:>6}  {:>8.1}  {:>8.1}  {:>8}  {:>8}  {:>8.1}  {:>8.1}  {:>10.0}",
                figures.strategy,
                figures.sold,
                figures.duplicates,
                figures.conflicts,
                figures.errors,
                figures.min_ms,
                figures.mean_ms,
                mean(figures.winners_mean_ms),
                mean(figures.losers_mean_ms),
                figures.p99_ms,
                figures.max_ms,
                figures.attempts_per_second
            )?;
        }
        writeln!(f)?;
        self.show_notes(f)
    }
}

impl Report {
    fn show_notes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for figures in &self.strategies {
            for (failure, times) in &figures.failures {
                writeln!(f, "{}: {times} × {failure}", figures.strategy)?;
            }
            for fault in &figures.faults {
                writeln!(f, "{}: BROKEN: {fault}", figures.strategy)?;
            }
        }
        let names: Vec<&str> = self.skipped.iter().map(|skipped| skipped.strategy).collect();
        if !names.is_empty() {
            writeln!(f, "not raced, because there is no --database: {}", names.join(", "))?;
        }
        let embedded: Vec<&str> =
            self.strategies.iter().filter(|figures| figures.on.ends_with("embedded")).map(|it| it.strategy).collect();
        if !embedded.is_empty() {
            writeln!(f, "on the engine in this process, because there is no --redis: {}", embedded.join(", "))?;
        }
        let conclusion = if self.held {
            "No strategy but naive sold anything twice, and free + sold = total everywhere."
        } else {
            "A strategy that must not sell twice did, or the counts do not add up."
        };
        writeln!(f, "{conclusion}")
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attempts, seats, pool, seed, .. } = self;
        match (self.clients, self.ramp_seconds) {
            (Some(clients), _) => write!(f, "{attempts} attempts by {clients} clients")?,
            (_, Some(span)) => write!(f, "{attempts} buyers over {span} s")?,
            _ => write!(f, "{attempts} buyers at once")?,
        }
        match (self.spread, seats) {
            (true, _) => write!(f, " for any of {seats} seats")?,
            (false, 1) => write!(f, " for one seat")?,
            (false, _) => write!(f, " for the same one of {seats} seats")?,
        }
        write!(f, "; {pool} connections to the database; {} × each; --seed {seed}", self.rounds)
    }
}
