//! What the provider does to its callers, all in one place.

use std::time::Duration;

use ring::digest;

use super::records::Outcome;

/// The provider's manners.
#[derive(Debug, Clone)]
pub(super) struct Behaviour {
    /// Time between `POST` and decision.
    pub(super) latency: Duration,
    /// Share of orders declined, 0 to 1.
    pub(super) decline_ratio: f64,
}

/// What will become of one charge. Written to the journal with it, so a restart does not change its fate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) delay: Duration,
    pub(super) outcome: Outcome,
}

impl Behaviour {
    /// Decides on a charge for `order`. The same order always meets the same outcome, on any run.
    pub(super) fn plan(&self, order: &str) -> Plan {
        let outcome = if share_of(order) < self.decline_ratio { Outcome::Declined } else { Outcome::Captured };
        Plan { delay: self.latency, outcome }
    }
}

/// A number from 0 up to but not including 1, evenly spread over the orders.
fn share_of(order: &str) -> f64 {
    let hash = digest::digest(&digest::SHA256, order.as_bytes());
    let bits = hash.as_ref().iter().take(4).fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declined_of_a_thousand(decline_ratio: f64) -> usize {
        let behaviour = Behaviour { latency: Duration::ZERO, decline_ratio };
        (0..1000).filter(|n| behaviour.plan(&format!("o_{n}")).outcome == Outcome::Declined).count()
    }

    #[test]
    fn the_ratio_is_met_and_its_ends_are_exact() {
        assert_eq!(declined_of_a_thousand(0.0), 0);
        assert_eq!(declined_of_a_thousand(1.0), 1000);
        assert!((200..300).contains(&declined_of_a_thousand(0.25)));
    }
}
