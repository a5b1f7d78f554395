//! Admission that follows the shop: what it aims at, and between which rates.

use std::time::Duration;

use serde::Deserialize;

use super::problems::Problems;

/// How far and by what the rate may follow the shop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adaptive {
    /// 95 of 100 admitted visitors' requests should be answered within this. Default 800 ms.
    pub target_p95: Duration,
    /// Most answers that may be errors (5xx, and requests without an answer), as a part of 1. Default 0.05.
    pub max_error_ratio: f64,
    /// The rate is never lower, entries per second. Default 1, or the configured rate if that is less.
    pub min_rate: f64,
    /// The rate is never higher, entries per second. Default: the configured rate.
    pub max_rate: f64,
}

/// `adaptive = { target_p95_ms = 800, max_error_ratio = 0.05, min_rate = 1, max_rate = 50 }`, each with a default.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdaptiveTable {
    /// Milliseconds.
    pub target_p95_ms: Option<u64>,
    /// A part of 1.
    pub max_error_ratio: Option<f64>,
    /// Per second.
    pub min_rate: Option<f64>,
    /// Per second.
    pub max_rate: Option<f64>,
}

impl Adaptive {
    /// Checks the table of a room that starts at `rate`. What is wrong is noted in `problems`.
    pub(super) fn check(
        table: AdaptiveTable,
        rate: f64,
        field: &dyn Fn(&str) -> String,
        problems: &mut Problems,
    ) -> Self {
        let adaptive = Self {
            target_p95: Duration::from_millis(table.target_p95_ms.unwrap_or(800)),
            max_error_ratio: table.max_error_ratio.unwrap_or(0.05),
            min_rate: table.min_rate.unwrap_or_else(|| rate.min(1.0)),
            max_rate: table.max_rate.unwrap_or(rate),
        };
        let target_ms = adaptive.target_p95.as_millis();
        problems.check((1..=30_000).contains(&target_ms), || {
            field(&format!("adaptive target_p95_ms {target_ms}: use 1 to 30000"))
        });
        let ratio = adaptive.max_error_ratio;
        problems.check(ratio > 0.0 && ratio <= 1.0, || {
            field(&format!("adaptive max_error_ratio {ratio}: use more than 0 and at most 1, such as 0.05"))
        });
        problems.check(adaptive.min_rate > 0.0 && adaptive.min_rate <= rate, || {
            field(&format!("adaptive min_rate {}: use more than 0 and at most the rate, {rate}", adaptive.min_rate))
        });
        problems.check(adaptive.max_rate >= rate && adaptive.max_rate <= 1e6, || {
            field(&format!(
                "adaptive max_rate {}: use at least the rate, {rate}, and at most 1000000",
                adaptive.max_rate
            ))
        });
        adaptive
    }
}
