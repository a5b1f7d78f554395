//! How many random histories, and which: from the environment, so that a failure can be played again.

use std::ops::Range;

/// `STANCHION_HISTORIES` seeds, `histories` unless it is set, from `STANCHION_SEED` on, a random one unless it is set.
pub fn seeds(histories: u64) -> Range<u64> {
    let first = number_from_env("STANCHION_SEED").unwrap_or_else(|| u64::from(rand::random::<u32>()));
    first..first + number_from_env("STANCHION_HISTORIES").unwrap_or(histories)
}

fn number_from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a whole number")))
}
