//! Who comes, when, and what each is like. Everybody has dice of their own, so that what one does changes nobody else:
//! the same crowd meets every capacity and rate.

use std::time::Duration;

use rand::RngExt as _;

use super::Scenario;
use crate::{
    queue::VisitorId,
    rehearse::personality::{Dice, between, dice},
};

/// One of the crowd, by order of arrival, from 0.
pub type Nth = u32;

/// Whoever is near the front asks every second, give or take a fifth, so a call is noticed within this.
pub const NOTICED_WITHIN: Duration = Duration::from_millis(1_200);

/// What somebody is like. Times are microseconds.
#[derive(Debug, Clone, Copy)]
pub struct Person {
    /// When they come, after the opening.
    pub arrives_us: u64,
    /// How long they wait at most; `None` waits to the end.
    pub patience_us: Option<u64>,
    /// How long after the call they notice it; `None` never shows up.
    pub notices_us: Option<u64>,
    /// How long they stay inside.
    pub visit_us: u64,
    /// How many tickets they want.
    pub wants: u32,
}

impl Person {
    /// Person `number` of a scenario. The order of the draws is part of what a seed means.
    fn draw(scenario: &Scenario, number: u32) -> Self {
        let (habits, mut dice) = (scenario.habits, dice(scenario.seed, u64::from(number)));
        let arrives = between(&mut dice, Duration::ZERO, scenario.arrivals.span());
        let gives_up = dice.random::<f64>() < habits.leave_early;
        let patience = exponential(&mut dice, habits.patience);
        let vanishes = dice.random::<f64>() < habits.no_shows;
        let notices = between(&mut dice, Duration::ZERO, NOTICED_WITHIN);
        let visit = exponential(&mut dice, habits.visit / 2) + exponential(&mut dice, habits.visit / 2);
        let buys = dice.random::<f64>() < habits.buy_ratio;
        let one_more = dice.random::<f64>() < habits.tickets_per_buyer.fract();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 100")]
        let tickets = habits.tickets_per_buyer as u32 + u32::from(one_more);
        Self {
            arrives_us: micros(arrives),
            patience_us: gives_up.then(|| micros(patience)),
            notices_us: (!vanishes).then(|| micros(notices)),
            visit_us: micros(visit),
            wants: if buys { tickets } else { 0 },
        }
    }
}

/// A time with this mean; how long it lasts does not depend on how long it has lasted.
fn exponential(dice: &mut Dice, mean: Duration) -> Duration {
    mean.mul_f64((1.0 - dice.random::<f64>()).ln().abs())
}

/// A time in microseconds.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Everybody, in order of arrival.
#[derive(Debug)]
pub struct Crowd<'a> {
    scenario: &'a Scenario,
    /// When each comes, and their number in the scenario, which their dice go by.
    arrivals: Vec<(u64, u32)>,
}

impl<'a> Crowd<'a> {
    /// The people of a scenario.
    pub fn of(scenario: &'a Scenario) -> Self {
        let arrival = |number| (Person::draw(scenario, number).arrives_us, number);
        let mut arrivals: Vec<_> = (0..scenario.users).map(arrival).collect();
        arrivals.sort_unstable();
        Self { scenario, arrivals }
    }

    /// What the nth to arrive is like.
    pub fn person(&self, nth: Nth) -> Person {
        Person::draw(self.scenario, self.arrivals.get(nth as usize).map_or(nth, |(_, number)| *number))
    }

    /// When the nth arrives; `None` when nobody else comes.
    pub fn arrival_us(&self, nth: Nth) -> Option<u64> {
        self.arrivals.get(nth as usize).map(|(at, _)| *at)
    }

    /// The name by which the store knows the nth.
    pub fn visitor(nth: Nth) -> VisitorId {
        VisitorId::from_bits(u128::from(nth) + 1)
    }
}
