//! How fast a room really moves, from successive snapshots.

use crate::queue::Snapshot;

/// Smoothed rates, per second. Old movement fades with a time constant of 20 s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Flow {
    /// Visitors let in.
    pub admitted: f64,
    /// Visitors called, which is how fast the line gets shorter at the front.
    pub called: f64,
}

/// Turns totals into a [`Flow`].
#[derive(Debug, Clone, Default)]
pub struct FlowMeter {
    last: Option<Totals>,
    admitted: f64,
    called: f64,
    /// How much of the averages is real: rises from 0 to 1, and corrects for having begun at nought.
    weight: f64,
}

#[derive(Debug, Clone, Copy)]
struct Totals {
    now_ms: u64,
    since_ms: u64,
    epoch: u64,
    admitted: u64,
    called: u64,
}

const FADE_SECONDS: f64 = 20.0;

impl FlowMeter {
    /// Takes the next snapshot in. Another history of the store only moves the base line: the pace is remembered.
    /// Another epoch is another sale, of whose pace nothing is known.
    #[expect(clippy::cast_precision_loss, reason = "counts of visitors, far below 2^52")]
    pub fn update(&mut self, snapshot: &Snapshot) -> Flow {
        let totals = Totals {
            now_ms: snapshot.now_ms,
            since_ms: snapshot.since_ms,
            epoch: snapshot.epoch,
            admitted: snapshot.admitted_total,
            called: snapshot.called_total,
        };
        if self.last.is_some_and(|last| last.epoch != totals.epoch) {
            *self = Self::default();
        }
        if let Some(last) = self.last
            && last.since_ms == totals.since_ms
            && totals.now_ms > last.now_ms
        {
            let seconds = (totals.now_ms - last.now_ms) as f64 / 1_000.0;
            let fresh = 1.0 - (-seconds / FADE_SECONDS).exp();
            let pace = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
            self.admitted += fresh * (pace(totals.admitted, last.admitted) - self.admitted);
            self.called += fresh * (pace(totals.called, last.called) - self.called);
            self.weight += fresh * (1.0 - self.weight);
        }
        self.last = Some(totals);
        if self.weight <= 0.0 {
            return Flow::default();
        }
        Flow { admitted: self.admitted / self.weight, called: self.called / self.weight }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::view::tests::snapshot;

    fn feed(meter: &mut FlowMeter, ticks: std::ops::Range<u64>, per_tick: u64) -> Flow {
        let mut flow = Flow::default();
        for tick in ticks {
            let mut next = snapshot();
            next.now_ms += tick * 250;
            next.admitted_total = tick * per_tick;
            next.called_total = tick * per_tick;
            flow = meter.update(&next);
        }
        flow
    }

    #[test]
    fn is_nought_before_anything_moved() {
        assert_eq!(FlowMeter::default().update(&snapshot()), Flow::default());
    }

    #[test]
    fn measures_an_even_flow_at_once_and_lets_it_fade_when_it_stops() {
        let mut meter = FlowMeter::default();
        let flow = feed(&mut meter, 0..5, 10);
        assert!((flow.admitted - 40.0).abs() < 1e-6, "{flow:?}");
        let mut stopped = snapshot();
        stopped.now_ms += 60_000;
        stopped.admitted_total = 40;
        let flow = meter.update(&stopped);
        assert!(flow.admitted < 3.0, "{flow:?}");
    }

    #[test]
    fn nothing_is_known_of_the_pace_of_another_epoch() {
        let mut meter = FlowMeter::default();
        assert!(feed(&mut meter, 0..40, 10).called > 0.0);
        let mut reset = snapshot();
        (reset.epoch, reset.now_ms) = (2, reset.now_ms + 40 * 250);
        assert_eq!(meter.update(&reset), Flow::default());
    }

    #[test]
    fn a_store_that_lost_its_totals_gives_no_negative_and_no_jump() {
        let mut meter = FlowMeter::default();
        let before = feed(&mut meter, 0..40, 10);
        let mut lost = snapshot();
        lost.now_ms += 40 * 250;
        lost.since_ms += 1;
        let after = meter.update(&lost);
        assert!((after.admitted - before.admitted).abs() < 1e-6, "{after:?}");
    }
}
