//! What holds a sale up, by Little's law: slots = admissions per second × the time each takes a slot.

use std::fmt;

use serde::Serialize;

use super::{Scenario, crowd::NOTICED_WITHIN};
use crate::rehearse::Arrivals;

/// What holds a sale up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Slots are taken too long.
    Capacity,
    /// Slots are free, and nobody may be let in yet.
    Rate,
    /// Nothing: people come more slowly than they could be let in.
    Arrivals,
}

/// The flows that meet in a room. All are admissions per second, but for the time and the count of slots.
#[derive(Debug, Clone, Serialize)]
pub struct Bottleneck {
    /// The least of the flows.
    pub limit: Limit,
    /// Mean time that a call takes a slot, in seconds: to notice it and to visit, or a claim window for nothing.
    pub slot_seconds: f64,
    /// What the capacity can serve.
    pub capacity_allows: f64,
    /// What the rate lets in, less those who do not come.
    pub rate_allows: f64,
    /// How people come; `None` at one instant.
    pub arrivals: Option<f64>,
    /// The capacity that would make full use of the rate.
    pub capacity_for_the_rate: f64,
}

impl Bottleneck {
    /// From the scenario alone.
    pub fn of(scenario: &Scenario) -> Self {
        let habits = scenario.habits;
        let come = 1.0 - habits.no_shows;
        let visit = habits.visit + NOTICED_WITHIN / 2;
        let slot_seconds = come * visit.as_secs_f64() + habits.no_shows * scenario.claim_window.as_secs_f64();
        let capacity_allows = come * f64::from(scenario.capacity) / slot_seconds;
        let rate_allows = come * scenario.rate;
        let arrivals = match scenario.arrivals {
            Arrivals::Ramp(span) if !span.is_zero() => Some(f64::from(scenario.users) / span.as_secs_f64()),
            _ => None,
        };
        let limit = if arrivals.is_some_and(|arrivals| arrivals < capacity_allows.min(rate_allows)) {
            Limit::Arrivals
        } else if capacity_allows < rate_allows {
            Limit::Capacity
        } else {
            Limit::Rate
        };
        let capacity_for_the_rate = scenario.rate * slot_seconds;
        Self { limit, slot_seconds, capacity_allows, rate_allows, arrivals, capacity_for_the_rate }
    }
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { slot_seconds, capacity_allows, rate_allows, capacity_for_the_rate, .. } = self;
        let slots =
            format!("a slot is taken {slot_seconds:.1} s, so the capacity serves {capacity_allows:.1} a second");
        match self.limit {
            Limit::Capacity => write!(
                f,
                "the capacity: {slots}, once it is full, and the rate would let in {rate_allows:.1}; it would take \
                 {capacity_for_the_rate:.0} slots to make full use of this rate"
            ),
            Limit::Rate => write!(
                f,
                "the rate: it lets in {rate_allows:.1} a second; {slots}; \
                 {capacity_for_the_rate:.0} slots would do"
            ),
            Limit::Arrivals => write!(
                f,
                "none: {:.1} people come a second; {slots}, and the rate lets in {rate_allows:.1}",
                self.arrivals.unwrap_or_default()
            ),
        }
    }
}
