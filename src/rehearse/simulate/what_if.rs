//! The same sale at other limits.

use serde::Serialize;

use super::{
    Scenario, SimulateError,
    figures::seconds,
    helm::Limits,
    report::duration_us,
    sale::{End, Played, Sale},
};
use crate::rehearse::{progress::Silent, real, verdict::Judgement};

/// Times the rate and times the capacity.
const FACTORS: [(f64, f64); 7] = [(0.5, 1.0), (0.75, 1.0), (1.0, 1.0), (1.5, 1.0), (2.0, 1.0), (1.0, 0.5), (1.0, 2.0)];

/// A crowd up to this size is played in full; a larger one is scaled down to about it.
const CROWD: u32 = 50_000;
/// Scaled no further than to this capacity and rate: chance would tell more than the limits.
const LEAST_CAPACITY: u32 = 40;
const LEAST_RATE: f64 = 2.0;

/// The same sale at other limits.
#[derive(Debug, Clone, Serialize)]
pub struct WhatIf {
    /// People, tickets, capacity and rate were all divided by this, which leaves times as they are but for chance.
    pub scaled_down_by: u32,
    /// One per pair of limits.
    pub rows: Vec<Row>,
    /// Whether every guarantee held in all of them.
    pub held: bool,
}

/// One sale. Limits and flows are those of the full crowd.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Most inside.
    pub capacity: f64,
    /// Most admissions per second.
    pub rate: f64,
    /// How it ended.
    pub end: End,
    /// When the last ticket was sold, or the last visitor let in.
    pub seconds: f64,
    /// The median wait of whoever was let in.
    pub median_wait: f64,
    /// Admissions per second over all that time.
    pub admitted_per_second: f64,
}

/// Plays `scenario` at every pair of limits.
pub fn play(scenario: &Scenario) -> Result<WhatIf, SimulateError> {
    let scale = scale(scenario);
    let mut other = WhatIf { scaled_down_by: scale, rows: Vec::new(), held: true };
    for (rate, capacity) in FACTORS {
        let scenario_at = scaled(scenario, scale, rate, capacity);
        let played = Sale::play(&scenario_at, &mut |_| Limits::of(&scenario_at), &Silent)?;
        other.held &= played.verdict.iter().all(|row| row.judgement == Judgement::Held);
        other.rows.push(Row::of(&played, scenario.rate * rate, f64::from(scenario.capacity) * capacity, scale));
    }
    Ok(other)
}

fn scale(scenario: &Scenario) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from float saturates")]
    let by_rate = (scenario.rate / LEAST_RATE) as u32;
    scenario.users.div_ceil(CROWD).min(scenario.capacity / LEAST_CAPACITY).min(by_rate).max(1)
}

fn scaled(scenario: &Scenario, scale: u32, rate: f64, capacity: f64) -> Scenario {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from float saturates")]
    let times = |count: u32, factor: f64| (f64::from(count) * factor / f64::from(scale)).round().max(1.0) as u32;
    Scenario {
        users: times(scenario.users, 1.0),
        capacity: times(scenario.capacity, capacity),
        rate: scenario.rate * rate / f64::from(scale),
        // With one token alone a bucket that is looked at ten times a second loses what overflows in between.
        burst: times(scenario.burst, rate).max(scenario.burst.min(2)),
        tickets: scenario.tickets.map(|tickets| times(tickets, 1.0)),
        ..scenario.clone()
    }
}

impl Row {
    fn of(played: &Played, rate: f64, capacity: f64, scale: u32) -> Self {
        let seconds = seconds(duration_us(played));
        let admissions = real(played.tape.admissions() * u64::from(scale));
        Self {
            capacity,
            rate,
            end: played.end,
            seconds,
            median_wait: played.tape.waits().1.p50,
            admitted_per_second: if seconds > 0.0 { admissions / seconds } else { 0.0 },
        }
    }
}
