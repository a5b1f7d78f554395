//! One strategy's figures, over all its rounds, and what is wrong with them.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;

use super::{Outcome, Stock, Strategy, crowd::Attempt};

/// How one strategy fared. Counts are over all rounds; times are from a buyer's arrival to the answer.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// Its name.
    pub strategy: &'static str,
    /// Where it sold: `postgresql`, `redis`, `postgresql+redis`, or with `embedded` for Redis.
    pub on: String,
    /// Sales on record.
    pub sold: u64,
    /// Those of them that sold a seat again, or a ticket that there was not.
    pub duplicates: u64,
    /// Buyers who were told that they came too late.
    pub conflicts: u64,
    /// Attempts that failed, and whose outcome the buyer does not know.
    pub errors: u64,
    /// The shortest wait.
    pub min_ms: f64,
    /// The mean wait.
    pub mean_ms: f64,
    /// The mean wait of those who were told that they have the seat.
    pub winners_mean_ms: Option<f64>,
    /// The mean wait of those who were told that they came too late.
    pub losers_mean_ms: Option<f64>,
    /// 99 % waited at most this long.
    pub p99_ms: f64,
    /// The longest wait.
    pub max_ms: f64,
    /// Attempts, failed ones not counted, per second from the first arrival to the last answer.
    pub attempts_per_second: f64,
    /// What nobody had at the end, over all rounds.
    pub free: i64,
    /// What there was to sell, over all rounds.
    pub total: u64,
    /// What went wrong, and how often.
    pub failures: BTreeMap<String, u64>,
    /// What must not be: the reasons for exit status 1.
    pub faults: Vec<String>,
}

/// The rounds of one strategy so far.
#[derive(Debug, Default)]
pub struct Tally {
    won: Vec<Duration>,
    lost: Vec<Duration>,
    failed: Vec<Duration>,
    failures: BTreeMap<String, u64>,
    seconds: f64,
    stock: Vec<(Stock, Told)>,
}

/// What the buyers of one round were told.
#[derive(Debug, Clone, Copy)]
struct Told {
    sold: u64,
    unknown: u64,
}

impl Tally {
    /// Adds a round.
    pub(super) fn add(&mut self, attempts: &[Attempt], stock: Stock) {
        let before = (self.won.len(), self.failed.len());
        for attempt in attempts {
            match &attempt.outcome {
                Ok(Outcome::Sold) => self.won.push(attempt.took),
                Ok(Outcome::Conflict) => self.lost.push(attempt.took),
                Err(error) => {
                    self.failed.push(attempt.took);
                    *self.failures.entry(error.to_string()).or_default() += 1;
                }
            }
        }
        let first = attempts.iter().map(|attempt| attempt.began).min();
        let last = attempts.iter().map(|attempt| attempt.began + attempt.took).max();
        if let (Some(first), Some(last)) = (first, last) {
            self.seconds += (last - first).as_secs_f64();
        }
        let told = Told { sold: count(self.won.len() - before.0), unknown: count(self.failed.len() - before.1) };
        self.stock.push((stock, told));
    }

    /// The figures of `strategy`, which sold there.
    pub(super) fn figures(&self, strategy: Strategy, on: String) -> Figures {
        let mut all: Vec<Duration> = [&self.won[..], &self.lost, &self.failed].concat();
        all.sort_unstable();
        let sum = |value: fn(&Stock) -> u64| self.stock.iter().map(|(stock, _)| value(stock)).sum();
        let mut faults: Vec<String> =
            self.stock.iter().flat_map(|(stock, told)| faults(strategy, *stock, *told)).collect();
        faults.dedup();
        if !all.is_empty() && self.failed.len() == all.len() {
            faults.push("every attempt failed".to_owned());
        }
        Figures {
            strategy: strategy.name(),
            on,
            sold: sum(|stock| stock.sales),
            duplicates: sum(|stock| stock.duplicates),
            conflicts: count(self.lost.len()),
            errors: count(self.failed.len()),
            min_ms: all.first().copied().map_or(0.0, millis),
            mean_ms: mean_ms(&all).unwrap_or(0.0),
            winners_mean_ms: mean_ms(&self.won),
            losers_mean_ms: mean_ms(&self.lost),
            p99_ms: quantile(&all, 99).map_or(0.0, millis),
            max_ms: all.last().copied().map_or(0.0, millis),
            attempts_per_second: real(count(self.won.len() + self.lost.len())) / self.seconds.max(1e-6),
            free: self.stock.iter().map(|(stock, _)| stock.free).sum(),
            total: sum(|stock| stock.total),
            failures: self.failures.clone(),
            faults,
        }
    }
}

/// What is wrong with a round.
fn faults(strategy: Strategy, stock: Stock, told: Told) -> Vec<String> {
    let Stock { total, free, sales, duplicates } = stock;
    let mut faults = Vec::new();
    if strategy != Strategy::Naive {
        if duplicates > 0 {
            faults.push(format!("sold {duplicates} times what was sold already"));
        }
        if sales > total {
            faults.push(format!("sold {sales} of {total}"));
        }
    }
    let gone = i64::try_from(sales.saturating_sub(duplicates)).unwrap_or(i64::MAX);
    if u64::try_from(free.saturating_add(gone)) != Ok(total) {
        faults.push(format!("{free} free and {gone} sold are not the {total} there were"));
    }
    if told.sold > sales {
        faults.push(format!("{} buyers were told that they have a seat, and {sales} sales are on record", told.sold));
    }
    if sales > told.sold + told.unknown {
        faults.push(format!("{sales} sales are on record, of which {} buyers were told", told.sold));
    }
    faults
}

/// The smallest value that so many percent of these, sorted, do not exceed.
fn quantile(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

fn mean_ms(values: &[Duration]) -> Option<f64> {
    let sum: Duration = values.iter().sum();
    (!values.is_empty()).then(|| millis(sum) / real(count(values.len())))
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn count(length: usize) -> u64 {
    length as u64
}

/// A count as a real number; exact below 2^53, which no count of ours reaches.
#[expect(clippy::cast_precision_loss, reason = "see above")]
fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Stock = Stock { total: 10, free: 7, sales: 3, duplicates: 0 };
    const TOLD: Told = Told { sold: 3, unknown: 0 };

    #[test]
    fn what_adds_up_has_no_fault() {
        assert_eq!(faults(Strategy::SetNx, GOOD, TOLD), Vec::<String>::new());
        // The answer to one buyer was lost on the way.
        assert_eq!(faults(Strategy::SetNx, GOOD, Told { sold: 2, unknown: 1 }), Vec::<String>::new());
    }

    #[test]
    fn every_way_to_be_wrong_is_found() {
        let twice = Stock { total: 1, free: 0, sales: 2, duplicates: 1 };
        let both = Told { sold: 2, unknown: 0 };
        assert_eq!(faults(Strategy::Naive, twice, both), Vec::<String>::new(), "that is what naive is for");
        let bad = [
            (twice, both, "sold 1 times what was sold already"),
            (twice, both, "sold 2 of 1"),
            (Stock { free: 6, ..GOOD }, TOLD, "6 free and 3 sold are not the 10 there were"),
            (Stock { free: -1, ..GOOD }, TOLD, "-1 free"),
            (GOOD, Told { sold: 4, unknown: 0 }, "4 buyers were told"),
            (GOOD, Told { sold: 2, unknown: 0 }, "of which 2 buyers were told"),
        ];
        for (stock, told, fault) in bad {
            let found = faults(Strategy::Pessimistic, stock, told);
            assert!(found.iter().any(|found| found.contains(fault)), "{fault:?} is not among {found:?}");
        }
    }

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let hundred: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(quantile(&hundred, 99), Some(Duration::from_millis(99)));
        assert_eq!(quantile(&hundred[..1], 99), Some(Duration::from_millis(1)));
        assert_eq!(quantile(&[], 99), None);
    }
}
