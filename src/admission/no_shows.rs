//! Which part of the called visitors does not come.

/// Turns totals into a smoothed ratio. What happened fades with a time constant of a minute.
#[derive(Debug, Clone, Default)]
pub struct NoShows {
    last: Option<Totals>,
    missed: f64,
    came: f64,
}

#[derive(Debug, Clone, Copy)]
struct Totals {
    now_ms: u64,
    since_ms: u64,
    missed: u64,
    came: u64,
}

const FADE_SECONDS: f64 = 60.0;
/// So many visitors who came are assumed at first, so that the first ones who do not come prove little.
const ASSUMED: f64 = 10.0;

impl NoShows {
    /// Takes the next totals in: the store's time, when its history began, calls nobody answered, and visitors let in.
    /// `None` until something happened. Another history of the store only moves the base line.
    #[expect(clippy::cast_precision_loss, reason = "counts of visitors, far below 2^52")]
    pub fn update(&mut self, now_ms: u64, since_ms: u64, missed: u64, came: u64) -> Option<f64> {
        let totals = Totals { now_ms, since_ms, missed, came };
        if let Some(last) = self.last.replace(totals)
            && last.since_ms == since_ms
        {
            let left = (-(now_ms.saturating_sub(last.now_ms) as f64) / 1_000.0 / FADE_SECONDS).exp();
            self.missed = self.missed * left + missed.saturating_sub(last.missed) as f64;
            self.came = self.came * left + came.saturating_sub(last.came) as f64;
        }
        let called = self.missed + self.came;
        (called > 0.0).then(|| self.missed / (called + ASSUMED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_of_five_who_stay_away_show_within_a_minute_and_fade() {
        let mut meter = NoShows::default();
        assert_eq!(meter.update(0, 1, 0, 0), None);
        let mut ratio = None;
        for second in 1..=60 {
            ratio = meter.update(second * 1_000, 1, second * 6, second * 4);
        }
        assert!((0.54..=0.6).contains(&ratio.unwrap()), "{ratio:?}");
        for second in 61..=400 {
            ratio = meter.update(second * 1_000, 1, 360, second * 10);
        }
        assert!(ratio.unwrap() < 0.05, "{ratio:?}");
    }

    #[test]
    fn a_few_prove_little_and_a_lost_store_nothing() {
        let mut meter = NoShows::default();
        meter.update(0, 1, 0, 0);
        let first = meter.update(1_000, 1, 1, 0).unwrap();
        assert!(first < 0.1, "{first}");
        let lost = meter.update(2_000, 2, 0, 0).unwrap();
        assert!((lost - first).abs() < 1e-9, "{lost}");
    }
}
