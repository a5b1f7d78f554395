//! Waits in fixed buckets, four to each doubling, so that what several nodes counted can be added up.

use std::time::Duration;

/// From a quarter of a millisecond to more than a minute.
pub const BUCKETS: usize = 72;

/// The unit of the buckets' bounds: 1/4096 s.
const UNITS_PER_SECOND: u128 = 4_096;

/// Which bucket a wait falls into; the last takes everything longer.
pub fn bucket_of(wait: Duration) -> usize {
    let units = wait.as_micros() * UNITS_PER_SECOND / 1_000_000;
    let bucket = match units.checked_ilog2() {
        None | Some(0 | 1) => usize::try_from(units).unwrap_or(0),
        Some(doubling) => {
            let quarter = usize::try_from((units >> (doubling - 2)) & 3).unwrap_or(0);
            4 * (doubling as usize - 1) + quarter
        }
    };
    bucket.min(BUCKETS - 1)
}

/// The least wait of a bucket, in milliseconds.
#[expect(clippy::cast_precision_loss, reason = "below 2^20")]
fn least_ms(bucket: usize) -> f64 {
    let units = if bucket < 4 { bucket } else { (4 + bucket % 4) << (bucket / 4 - 1) };
    units as f64 * 1_000.0 / 4_096.0
}

/// How many waits fell into each bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram([u64; BUCKETS]);

impl Default for Histogram {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl Histogram {
    /// With these counts.
    pub const fn from_counts(counts: [u64; BUCKETS]) -> Self {
        Self(counts)
    }

    /// Adds `count` waits to a bucket; nothing to one that does not exist.
    pub fn add(&mut self, bucket: usize, count: u64) {
        if let Some(all) = self.0.get_mut(bucket) {
            *all = all.saturating_add(count);
        }
    }

    /// Adds what another counted.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in other.filled() {
            self.add(bucket, count);
        }
    }

    /// What was counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut since = self.clone();
        for (all, old) in since.0.iter_mut().zip(&before.0) {
            *all = all.saturating_sub(*old);
        }
        since
    }

    /// How many waits.
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The buckets that are not empty, with their counts.
    pub fn filled(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }

    /// The wait that this part of all waits does not exceed, in milliseconds, interpolated within its bucket: off by an
    /// eighth at most. `None` without waits.
    #[expect(clippy::cast_precision_loss, reason = "counts of requests within seconds")]
    pub fn quantile_ms(&self, part: f64) -> Option<f64> {
        let wanted = self.count() as f64 * part;
        let mut below = 0.0;
        let mut longest = None;
        for (bucket, count) in self.filled() {
            let count = count as f64;
            let (from, to) = (least_ms(bucket), least_ms(bucket + 1));
            if below + count >= wanted {
                return Some(from + (to - from) * ((wanted - below) / count).clamp(0.0, 1.0));
            }
            below += count;
            longest = Some(to);
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_wait_is_within_the_bounds_of_its_bucket(micros in 0_u64..60_000_000) {
            let bucket = bucket_of(Duration::from_micros(micros));
            let ms = Duration::from_micros(micros).as_secs_f64() * 1_000.0;
            prop_assert!(least_ms(bucket) <= ms + 0.25 && ms < least_ms(bucket + 1) + 1e-9, "{micros} in {bucket}");
        }
    }

    #[test]
    fn buckets_follow_each_other() {
        let bounds: Vec<f64> = (0..=BUCKETS).map(least_ms).collect();
        assert!(bounds.is_sorted_by(|a, b| a < b), "{bounds:?}");
        assert_eq!(bucket_of(Duration::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_95th_of_a_hundred_is_found() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile_ms(0.95), None);
        for wait in 1..=100 {
            histogram.add(bucket_of(Duration::from_millis(wait * 10)), 1);
        }
        let p95 = histogram.quantile_ms(0.95).unwrap();
        assert!((900.0..1_010.0).contains(&p95), "{p95}");
        let older = histogram.clone();
        histogram.merge(&older);
        assert_eq!(histogram.since(&older), older);
    }
}
