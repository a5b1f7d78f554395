//! What happened, in figures that nobody is judged by.

use std::{collections::BTreeMap, sync::atomic::Ordering, time::Duration};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{
    real,
    record::{Outcome, Record},
    tally::Tally,
    verdict::peak_inside,
};

/// The figures of a rehearsal.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// How long it took, from the first arrival to the last departure.
    pub seconds: f64,
    /// Requests answered.
    pub requests: u64,
    /// Requests answered per second, over the whole time.
    pub requests_per_second: f64,
    /// Connections that failed and were mostly tried again, by what was asked and what went wrong.
    pub network_errors: BTreeMap<String, u64>,
    /// People by how their visit ended.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Confirmed tickets.
    pub tickets: u64,
    /// The most inside at once, by their tokens.
    pub peak_inside: u64,
    /// How often somebody had to wait again after a session ran out.
    pub returns: u64,
    /// From the first "wait" to the admission.
    pub wait_ms: Option<Spread>,
    /// How late we sent polls, against what visitors were told: a busy client makes a poor judge.
    pub poll_lateness_ms: Option<Spread>,
    /// From sending a request to the last byte of the answer, by kind.
    pub latency_ms: BTreeMap<&'static str, Spread>,
    /// Answers by kind and status.
    pub statuses: BTreeMap<&'static str, BTreeMap<u16, u64>>,
    /// What must not happen, and how often it did.
    pub unexpected: BTreeMap<String, u64>,
}

/// A distribution, in milliseconds.
#[derive(Debug, Clone, Serialize)]
pub struct Spread {
    /// How many values.
    pub count: u64,
    /// Half are at most this.
    pub p50: f64,
    /// 99 % are at most this.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    fn of(histogram: &Histogram<u64>, unit_ms: f64) -> Option<Self> {
        let at = |quantile| real(histogram.value_at_quantile(quantile)) * unit_ms;
        (!histogram.is_empty()).then(|| Self {
            count: histogram.len(),
            p50: at(0.5),
            p99: at(0.99),
            max: real(histogram.max()) * unit_ms,
        })
    }

    fn of_millis(values: impl Iterator<Item = u64>) -> Option<Self> {
        let mut histogram = Histogram::new(3).ok()?;
        // Grows as needed; `saturating_record` would clamp instead.
        values.for_each(|value| _ = histogram.record(value));
        Self::of(&histogram, 1.0)
    }
}

impl Figures {
    pub(super) fn of(records: &[Record], tally: &Tally, took: Duration, unexpected: BTreeMap<String, u64>) -> Self {
        let requests = tally.requests.load(Ordering::Relaxed);
        let mut outcomes = BTreeMap::new();
        for record in records {
            *outcomes.entry(name(record.outcome)).or_default() += 1;
        }
        let confirmed = records.iter().flat_map(|record| &record.orders).filter(|order| order.status == "confirmed");
        let (mut latency_ms, mut statuses) = (BTreeMap::new(), BTreeMap::new());
        for (kind, answers) in tally.take_answers() {
            latency_ms.extend(Spread::of(&answers.micros, 0.001).map(|spread| (kind.name(), spread)));
            statuses.insert(kind.name(), answers.statuses);
        }
        Self {
            seconds: took.as_secs_f64(),
            requests,
            requests_per_second: real(requests) / took.as_secs_f64().max(0.001),
            network_errors: tally.take_network_errors(),
            outcomes,
            tickets: confirmed.map(|order| u64::from(order.quantity)).sum(),
            peak_inside: peak_inside(records),
            returns: records.iter().map(|record| u64::from(record.returns)).sum(),
            wait_ms: Spread::of_millis(records.iter().filter_map(wait)),
            poll_lateness_ms: Spread::of_millis(
                records.iter().filter(|record| record.polls > 0).map(|record| record.late_ms),
            ),
            latency_ms,
            statuses,
            unexpected,
        }
    }
}

fn wait(record: &Record) -> Option<u64> {
    Some(record.sessions.first()?.learned_ms.saturating_sub(record.joined_ms?))
}

fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Unfinished => "unfinished",
        Outcome::Bought => "bought",
        Outcome::Refused => "refused",
        Outcome::SoldOut => "found it sold out",
        Outcome::Closed => "found it closed",
        Outcome::LeftEarly => "left early",
        Outcome::AbandonedHold => "abandoned a hold",
        Outcome::LostPlace => "lost the place",
        Outcome::Failed => "failed",
    }
}
