//! Who does what, decided by the seed.

use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _, rngs::Xoshiro256PlusPlus};

use super::plan::Mix;

/// A generator whose sequence is fixed for ever, and small: thousands of people carry one.
pub(super) type Dice = Xoshiro256PlusPlus;

/// What somebody is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Personality {
    /// Waits as told, and buys.
    #[default]
    Plain,
    /// Waits with five tabs that share one cookie jar, and buys in one of them.
    FiveTabs,
    /// Reloads the page several times a second instead of waiting for it.
    F5,
    /// Gives up while waiting.
    LeavesEarly,
    /// Takes seats and gives them back.
    CancelsHold,
    /// Takes seats and walks away from them.
    ForgetsHold,
}

impl Personality {
    pub(super) fn draw(mix: Mix, dice: &mut Dice) -> Self {
        let mut left: f64 = dice.random();
        for (share, personality) in [
            (mix.five_tabs, Self::FiveTabs),
            (mix.f5, Self::F5),
            (mix.leave_early, Self::LeavesEarly),
            (mix.abandon_hold / 2.0, Self::CancelsHold),
            (mix.abandon_hold / 2.0, Self::ForgetsHold),
        ] {
            if left < share {
                return personality;
            }
            left -= share;
        }
        Self::Plain
    }

    /// What person `number` of a plan is like.
    pub(super) fn of(mix: Mix, seed: u64, number: u64) -> Self {
        Self::draw(mix, &mut dice(seed, number))
    }

    /// How many tabs they open.
    pub(super) fn tabs(self) -> u64 {
        if self == Self::FiveTabs { 5 } else { 1 }
    }

    /// Whether they ask exactly when they are told to.
    pub fn polls_as_told(self) -> bool {
        self != Self::F5
    }
}

/// The dice of one person, the same for the same seed whatever the others do.
pub(super) fn dice(seed: u64, person: u64) -> Dice {
    Dice::seed_from_u64(seed ^ person.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// A time between two, evenly.
pub(super) fn between(dice: &mut Dice, from: Duration, to: Duration) -> Duration {
    from + to.saturating_sub(from).mul_f64(dice.random::<f64>())
}

/// A time around `about`, up to a fifth shorter or longer, so that people do not march in step.
pub(super) fn around(dice: &mut Dice, about: Duration) -> Duration {
    about.mul_f64(dice.random_range(0.8..1.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_decides_who_is_difficult_and_the_shares_hold() {
        let draw = |seed| -> Vec<Personality> {
            (0..2_000).map(|person| Personality::of(Mix::default(), seed, person)).collect()
        };
        let people = draw(7);
        assert_eq!(people, draw(7));
        assert_ne!(people, draw(8));
        let share = |wanted| people.iter().filter(|personality| **personality == wanted).count();
        assert!((60..140).contains(&share(Personality::FiveTabs)), "{}", share(Personality::FiveTabs));
        assert!((30..90).contains(&share(Personality::LeavesEarly)), "{}", share(Personality::LeavesEarly));
        assert!(share(Personality::CancelsHold) > 0 && share(Personality::ForgetsHold) > 0);
    }
}
