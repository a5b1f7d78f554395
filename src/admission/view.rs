//! A snapshot with what the node adds to it: when it was taken by the node's own clock, and the pace.

use std::sync::Arc;

use super::flow::Flow;
use crate::{
    clock::Clock,
    queue::{Mode, RankSketch, Snapshot, lottery::Draws},
};

/// What a node knows of a room.
#[derive(Debug, Clone)]
pub struct View {
    /// The store's word.
    pub snapshot: Snapshot,
    /// Answers positions.
    pub sketch: Arc<RankSketch>,
    /// The node's clock when it asked, microseconds since the epoch.
    pub asked_at_micros: u64,
    /// The pace of late.
    pub flow: Flow,
    /// What everybody drew, once they did.
    pub draws: Option<Draws>,
}

/// A snapshot older than this says more about the store than about the room.
const STALE_AFTER_MS: u64 = 2_000;

impl View {
    /// The store's time now, by the node's clock. Never behind the store's own, because it counts from when the
    /// snapshot was asked for: a token checked against it never outlives its slot.
    pub fn now_ms(&self, clock: &dyn Clock) -> u64 {
        self.snapshot.now_ms.saturating_add(self.age_ms(clock))
    }

    /// How old the snapshot is.
    pub fn age_ms(&self, clock: &dyn Clock) -> u64 {
        clock.unix_micros().saturating_sub(self.asked_at_micros) / 1_000
    }

    /// Whether the store has not been heard of for a while.
    pub fn is_stale(&self, clock: &dyn Clock) -> bool {
        self.age_ms(clock) > STALE_AFTER_MS
    }

    /// Whether places and sessions of a lost history are still registering.
    pub fn is_settling(&self) -> bool {
        self.snapshot.is_settling()
    }

    /// What the room does at `now_ms`: a schedule may have come since the snapshot.
    pub fn mode(&self, now_ms: u64) -> Mode {
        let snapshot = &self.snapshot;
        let has_come = |at_ms: Option<u64>| at_ms.is_some_and(|at_ms| at_ms <= now_ms);
        match snapshot.mode {
            Mode::Scheduled | Mode::Prequeue if has_come(snapshot.opens_at_ms) => {
                let draws = snapshot.draw.as_ref().is_some_and(|draw| !draw.is_done);
                if draws { Mode::Drawing } else { Mode::Open }
            }
            mode => mode,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{clock::ManualClock, queue::Score};

    /// An open room with nobody in it.
    pub(crate) fn snapshot() -> Snapshot {
        Snapshot {
            now_ms: 1_700_000_000_000,
            since_ms: 1_699_999_000_000,
            settle_until_ms: 0,
            epoch: 1,
            mode: Mode::Open,
            opens_at_ms: None,
            capacity: 10,
            rate: 5.0,
            line: 0,
            called: 0,
            inside: 0,
            watermark: Score(0),
            joined_total: 0,
            called_total: 0,
            admitted_total: 0,
            no_shows_total: 0,
            closes_at_ms: None,
            draw: None,
            ended: Vec::new(),
            ended_until: 0,
        }
    }

    fn view(snapshot: Snapshot, asked_at_micros: u64) -> View {
        View { snapshot, sketch: Arc::default(), asked_at_micros, flow: Flow::default(), draws: None }
    }

    #[test]
    fn keeps_the_stores_time_and_notices_when_it_is_old() {
        let clock = ManualClock::at(5_000_000_000);
        let view = view(snapshot(), 5_000_000_000);
        clock.advance(std::time::Duration::from_millis(1_500));
        assert_eq!(view.now_ms(&clock), 1_700_000_001_500);
        assert!(!view.is_stale(&clock));
        clock.advance(std::time::Duration::from_secs(1));
        assert!(view.is_stale(&clock));
    }

    #[test]
    fn opens_by_itself_when_the_schedule_has_come() {
        let mut snapshot = snapshot();
        snapshot.mode = Mode::Scheduled;
        snapshot.opens_at_ms = Some(1_700_000_005_000);
        let view = view(snapshot, 0);
        assert_eq!(view.mode(1_700_000_004_999), Mode::Scheduled);
        assert_eq!(view.mode(1_700_000_005_000), Mode::Open);
    }
}
