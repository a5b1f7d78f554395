//! What the provider does to its callers, all in one place.
//!
//! Chance has no part in it: every decision is a hash of the seed, of what is decided and of whom it befalls (an order, or
//! an idempotency key and the number of the try), so the same seed and the same calls meet the same fate on any run.

use std::time::Duration;

use ring::digest;
use serde::{Deserialize, Serialize};

use super::{
    records::{Event, Outcome},
    spread::Spread,
};

/// The provider's manners. In JSON, what is left out is as in [`Behaviour::default`]: well-mannered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// Another number lets other orders and calls meet other fates.
    pub seed: u64,
    /// Time between a charge's `POST` and its capture or decline.
    pub latency: Spread,
    /// Share of orders whose charges are declined, 0 to 1. All ratios are.
    pub decline_ratio: f64,
    /// Calls answered with 500 (after doing what was asked), 502 or 503 (without), in equal parts.
    pub error_ratio: f64,
    /// Calls answered with 429.
    pub busy_ratio: f64,
    /// Calls that are carried out and never answered.
    pub stall_ratio: f64,
    /// Calls that are carried out and whose connection is then closed.
    pub drop_ratio: f64,
    /// Most calls a second, after a burst of one second's worth; those beyond are answered with 429. None when absent.
    pub rate_limit: Option<u32>,
    /// Webhooks that are never sent.
    pub lose_ratio: f64,
    /// Webhooks that are sent only after `late_by`.
    pub late_ratio: f64,
    /// How late.
    pub late_by: Spread,
    /// Webhooks behind which an older one about the same charge arrives, that says otherwise.
    pub reorder_ratio: f64,
    /// Webhooks that are sent twice at the same moment.
    pub duplicate_ratio: f64,
    /// Webhooks before which forged ones arrive.
    pub forge_ratio: f64,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            seed: 0,
            latency: Spread::of(Duration::from_millis(300)),
            decline_ratio: 0.0,
            error_ratio: 0.0,
            busy_ratio: 0.0,
            stall_ratio: 0.0,
            drop_ratio: 0.0,
            rate_limit: None,
            lose_ratio: 0.0,
            late_ratio: 0.0,
            late_by: Spread::of(Duration::from_secs(5)),
            reorder_ratio: 0.0,
            duplicate_ratio: 0.0,
            forge_ratio: 0.0,
        }
    }
}

/// Why a behaviour cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BehaviourError {
    /// It is outside 0 to 1.
    #[error("{0} ratio {1}: use 0 (never) to 1 (always)")]
    Ratio(&'static str, f64),
    /// Only one of them can happen to one call or webhook.
    #[error("the ratios of {0} exclude each other, and their sum is {1}: make it 1 or less")]
    Sum(&'static str, f64),
    /// It would refuse every call.
    #[error("rate limit 0: use 1 call a second or more, or leave it out")]
    RateLimit,
}

/// What will become of one charge. Written to the journal with it, so a restart does not change its fate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) delay: Duration,
    pub(super) outcome: Outcome,
}

/// What goes wrong with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallFault {
    Error(u16),
    Busy,
    Stall,
    Drop,
}

/// What goes wrong with one webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WebhookFaults {
    pub(super) order: Option<OrderFault>,
    pub(super) twice: bool,
    pub(super) forged: bool,
}

/// Whether, and when, a webhook arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OrderFault {
    Lost,
    Late(Duration),
    Reordered,
}

impl Behaviour {
    /// Says what cannot be.
    pub fn check(&self) -> Result<(), BehaviourError> {
        for (name, ratio) in [
            ("decline", self.decline_ratio),
            ("error", self.error_ratio),
            ("busy", self.busy_ratio),
            ("stall", self.stall_ratio),
            ("drop", self.drop_ratio),
            ("lose", self.lose_ratio),
            ("late", self.late_ratio),
            ("reorder", self.reorder_ratio),
            ("duplicate", self.duplicate_ratio),
            ("forge", self.forge_ratio),
        ] {
            if !(0.0..=1.0).contains(&ratio) {
                return Err(BehaviourError::Ratio(name, ratio));
            }
        }
        for (names, sum) in [
            ("error, busy, stall and drop", self.calls_hit()),
            ("lose, late and reorder", self.lose_ratio + self.late_ratio + self.reorder_ratio),
        ] {
            // Tenths do not add up exactly.
            if sum > 1.0 + 1e-9 {
                return Err(BehaviourError::Sum(names, sum));
            }
        }
        if self.rate_limit == Some(0) { Err(BehaviourError::RateLimit) } else { Ok(()) }
    }

    /// Share of calls that something happens to, the rate limit aside.
    pub(super) fn calls_hit(&self) -> f64 {
        self.error_ratio + self.busy_ratio + self.stall_ratio + self.drop_ratio
    }

    /// Decides on a charge for `order`.
    pub(super) fn plan(&self, order: &str) -> Plan {
        let declined = self.share("decline", order) < self.decline_ratio;
        let outcome = if declined { Outcome::Declined } else { Outcome::Captured };
        Plan { delay: self.latency.at(self.share("latency", order)), outcome }
    }

    /// Decides on a call: on the `number`th with this `subject`, its idempotency key or else its path.
    pub(super) fn call_fault(&self, subject: &str, number: u32) -> Option<CallFault> {
        let subject = format!("{number} {subject}");
        let code = match self.share("error", &subject) {
            third if third < 1.0 / 3.0 => 500,
            third if third < 2.0 / 3.0 => 502,
            _ => 503,
        };
        pick(
            self.share("call", &subject),
            [
                (self.error_ratio, CallFault::Error(code)),
                (self.busy_ratio, CallFault::Busy),
                (self.stall_ratio, CallFault::Stall),
                (self.drop_ratio, CallFault::Drop),
            ],
        )
    }

    /// Decides on an event's webhook.
    pub(super) fn webhook_faults(&self, event: &Event) -> WebhookFaults {
        let subject = format!("{} {}", event.kind, event.order);
        let late_by = self.late_by.at(self.share("late", &subject));
        let order = pick(
            self.share("webhook", &subject),
            [
                (self.lose_ratio, OrderFault::Lost),
                (self.late_ratio, OrderFault::Late(late_by)),
                (self.reorder_ratio, OrderFault::Reordered),
            ],
        );
        WebhookFaults {
            order,
            twice: self.share("duplicate", &subject) < self.duplicate_ratio,
            forged: self.share("forge", &subject) < self.forge_ratio,
        }
    }

    /// A number from 0 up to but not including 1, evenly spread over the subjects of one topic.
    fn share(&self, topic: &str, subject: &str) -> f64 {
        let hash = digest::digest(&digest::SHA256, format!("{} {topic} {subject}", self.seed).as_bytes());
        let bits = hash.as_ref().iter().take(4).fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }
}

/// Lays the ratios end to end and takes the one at `place`.
fn pick<T>(place: f64, choices: impl IntoIterator<Item = (f64, T)>) -> Option<T> {
    let mut end = 0.0;
    choices.into_iter().find_map(|(ratio, choice)| {
        end += ratio;
        (place < end).then_some(choice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declined_of_a_thousand(decline_ratio: f64, seed: u64) -> Vec<usize> {
        let behaviour = Behaviour { seed, decline_ratio, ..Behaviour::default() };
        (0..1000).filter(|n| behaviour.plan(&format!("o_{n}")).outcome == Outcome::Declined).collect()
    }

    #[test]
    fn the_ratio_is_met_and_its_ends_are_exact() {
        assert_eq!(declined_of_a_thousand(0.0, 0).len(), 0);
        assert_eq!(declined_of_a_thousand(1.0, 0).len(), 1000);
        assert!((200..300).contains(&declined_of_a_thousand(0.25, 0).len()));
        assert_eq!(declined_of_a_thousand(0.25, 7), declined_of_a_thousand(0.25, 7));
        assert_ne!(declined_of_a_thousand(0.25, 7), declined_of_a_thousand(0.25, 8));
    }

    #[test]
    fn latencies_fill_their_range() {
        let behaviour = Behaviour { latency: "100ms..200ms".parse().unwrap(), ..Behaviour::default() };
        let delays: Vec<_> = (0..1000).map(|n| behaviour.plan(&format!("o_{n}")).delay.as_millis()).collect();
        assert!(delays.iter().all(|delay| (100..=200).contains(delay)));
        assert!((400..600).contains(&delays.iter().filter(|delay| **delay < 150).count()));
    }

    #[test]
    fn each_try_of_a_call_has_a_fate_of_its_own() {
        let behaviour =
            Behaviour { error_ratio: 0.3, busy_ratio: 0.1, stall_ratio: 0.1, drop_ratio: 0.1, ..Behaviour::default() };
        let fates: Vec<_> = (0..1000).map(|number| behaviour.call_fault("key", number)).collect();
        let count = |fate| fates.iter().filter(|other| **other == fate).count();
        assert!((350..450).contains(&count(None)));
        for fault in [CallFault::Busy, CallFault::Stall, CallFault::Drop] {
            assert!((70..130).contains(&count(Some(fault))), "{fault:?}");
        }
        for code in [500, 502, 503] {
            assert!((70..130).contains(&count(Some(CallFault::Error(code)))), "{code}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_cure() {
        type Change = fn(&mut Behaviour);
        let cases: [(Change, &str); 6] = [
            (|behaviour| behaviour.decline_ratio = 1.1, "decline ratio 1.1: use 0 (never) to 1 (always)"),
            (|behaviour| behaviour.forge_ratio = -0.1, "forge ratio -0.1"),
            (|behaviour| behaviour.late_ratio = f64::NAN, "late ratio NaN"),
            (
                |behaviour| (behaviour.error_ratio, behaviour.stall_ratio) = (0.5, 0.6),
                "of error, busy, stall and drop exclude each other, and their sum is 1.1",
            ),
            (|behaviour| (behaviour.lose_ratio, behaviour.late_ratio) = (1.0, 0.5), "lose, late and reorder"),
            (|behaviour| behaviour.rate_limit = Some(0), "1 call a second or more"),
        ];
        for (change, complaint) in cases {
            let mut behaviour = Behaviour::default();
            change(&mut behaviour);
            let error = behaviour.check().unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
        let tenths = Behaviour { error_ratio: 0.1, busy_ratio: 0.2, stall_ratio: 0.7, ..Behaviour::default() };
        assert_eq!(tenths.check(), Ok(()));
    }
}
