//! How many of the called visitors come, and how fast.

/// What the totals say of late.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Attendance {
    /// Which part of the called did not come, within a minute or so; `None` until anybody came or did not.
    pub no_shows: Option<f64>,
    /// Entries per second, within some seconds; `None` until two totals are known.
    pub entries: Option<f64>,
}

/// Turns totals into [`Attendance`].
#[derive(Debug, Clone, Default)]
pub struct AttendanceMeter {
    last: Option<Totals>,
    missed: f64,
    came: f64,
    entries: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Totals {
    now_ms: u64,
    missed: u64,
    came: u64,
}

/// Whoever came or did not is forgotten with this time constant,
const FADE_SECONDS: f64 = 60.0;
/// and the pace with this one.
const PACE_SECONDS: f64 = 5.0;
/// So many visitors who came are assumed at first, so that the first ones who do not come prove little.
const ASSUMED: f64 = 10.0;

impl AttendanceMeter {
    /// Takes the next totals in: the store's time, calls nobody answered, visitors let in. Totals that fell are those of a
    /// store that lost its history, and only move the base line.
    #[expect(clippy::cast_precision_loss, reason = "counts of visitors, far below 2^52")]
    pub fn update(&mut self, now_ms: u64, missed: u64, came: u64) -> Attendance {
        if let Some(last) = self.last.replace(Totals { now_ms, missed, came })
            && now_ms > last.now_ms
        {
            let seconds = (now_ms - last.now_ms) as f64 / 1_000.0;
            let (missed, came) = (missed.saturating_sub(last.missed) as f64, came.saturating_sub(last.came) as f64);
            let left = (-seconds / FADE_SECONDS).exp();
            self.missed = self.missed * left + missed;
            self.came = self.came * left + came;
            let (before, pace) = (self.entries.unwrap_or(came / seconds), came / seconds);
            self.entries = Some(before + (pace - before) * (1.0 - (-seconds / PACE_SECONDS).exp()));
        }
        let called = self.missed + self.came;
        Attendance { no_shows: (called > 0.0).then(|| self.missed / (called + ASSUMED)), entries: self.entries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_of_five_who_stay_away_show_within_a_minute_and_fade() {
        let mut meter = AttendanceMeter::default();
        assert_eq!(meter.update(0, 0, 0), Attendance::default());
        let mut attendance = Attendance::default();
        for second in 1..=60 {
            attendance = meter.update(second * 1_000, second * 6, second * 4);
        }
        assert!((0.54..=0.6).contains(&attendance.no_shows.unwrap()), "{attendance:?}");
        assert!((attendance.entries.unwrap() - 4.0).abs() < 0.1, "{attendance:?}");
        for second in 61..=400 {
            attendance = meter.update(second * 1_000, 360, second * 10);
        }
        assert!(attendance.no_shows.unwrap() < 0.05, "{attendance:?}");
    }

    #[test]
    fn a_few_prove_little_and_a_lost_store_nothing() {
        let mut meter = AttendanceMeter::default();
        meter.update(0, 0, 0);
        let first = meter.update(1_000, 1, 0).no_shows.unwrap();
        assert!(first < 0.1, "{first}");
        let lost = meter.update(2_000, 0, 0).no_shows.unwrap();
        assert!(lost <= first, "{lost}");
        assert_eq!(meter.update(2_000, 0, 0).no_shows, Some(lost), "time that stands still");
    }
}
