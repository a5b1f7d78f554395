//! A node's part in keeping the pace: once a second it tells what it measured and hears what all nodes did. The one that
//! holds the lease decides; when it falls silent, another does within the lease.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::{
    LiveRoom,
    attendance::{Attendance, AttendanceMeter},
    discord::Fingerprint,
    policy::{self, Decision, Limits, Memory, Reason, Shop, Signals},
    signals::{Meter, Window, report::Report},
};
use crate::{
    config::Adaptive,
    queue::{NodeId, Pace, QueueError, Reported, pace::NodeReport},
};

/// How often nodes report.
pub const REPORT_EVERY: Duration = Duration::from_secs(1);
/// How long the room waits for a node that decides and falls silent.
pub const LEASE: Duration = Duration::from_secs(3);
/// A report that is older says nothing about now, milliseconds.
const FRESH_MS: u64 = 3_000;
/// What the shop said longer ago neither, milliseconds.
const SAID_FOR_MS: u64 = 10_000;

/// What keeps a room's pace where it is, as a node last heard it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outlook {
    /// Why the pace is what it is.
    pub reason: Reason,
    /// Most calls per second: more than the rate when visitors stay away.
    pub call_rate: f64,
    /// Most visitors inside, as configured.
    pub configured_capacity: u32,
    /// Most entries per second, as configured.
    pub configured_rate: f64,
    /// Whether this node decides.
    pub is_decided_here: bool,
    /// The shop, as all nodes together see it.
    pub shop: Option<Shop>,
    /// How many visitors the shop says it takes altogether.
    pub shop_has_room_for: Option<u64>,
    /// Which part of the called did not come.
    pub no_show_ratio: Option<f64>,
}

/// What a node keeps from one second to the next.
#[derive(Debug)]
pub(super) struct Steering {
    node: NodeId,
    window: Window,
    attendance: AttendanceMeter,
    /// The last decision, while this node decides.
    last: Option<Decision>,
}

impl Steering {
    /// For one room, whose requests `meter` counts.
    pub(super) fn new(meter: Arc<Meter>) -> Self {
        let window = Window::new(meter, Instant::now());
        Self { node: NodeId::random(), window, attendance: AttendanceMeter::default(), last: None }
    }

    /// What holds from now on, by this node's lights.
    fn decide(&mut self, reported: &Reported, signals: &Signals, adaptive: Option<Adaptive>) -> Decision {
        let limits = Limits { capacity: reported.capacity, rate: reported.rate, adaptive };
        let memory = self.last.map_or_else(Memory::default, |last| last.memory);
        // What is in force counts, whoever decided it.
        let previous = Decision {
            rate: reported.pace.rate,
            call_rate: reported.pace.call_rate,
            capacity: reported.pace.capacity,
            reason: Reason::of_code(reported.pace.reason),
            at_ms: self.last.map_or(reported.now_ms, |last| last.at_ms),
            memory,
        };
        policy::decide(&limits, signals, Some(&previous), reported.now_ms)
    }
}

impl LiveRoom {
    /// Reports, and decides if that is this node's part.
    pub(super) async fn steer(&self, steering: &mut Steering) -> Result<(), QueueError> {
        let own = Fingerprint::of(&self.keyring, &self.config);
        let text = format!("{}\n{own}", steering.window.report(Instant::now()));
        let reported = self.queue.report(steering.node, &text, LEASE).await?;
        self.compare(&own, &reported.reports);
        let attendance = steering.attendance.update(reported.now_ms, reported.no_shows_total, reported.admitted_total);
        let signals = signals_of(&reported.reports, attendance);
        let mut pace = reported.pace;
        if reported.holds_lease {
            let decision = steering.decide(&reported, &signals, self.config.adaptive);
            self.tell_of(Reason::of_code(reported.pace.reason), &decision);
            let decided = pace_of(&decision);
            if self.queue.decide(steering.node, reported.configured_us, decided).await? {
                pace = decided;
            }
            steering.last = Some(decision);
        } else {
            steering.last = None;
        }
        self.set_outlook(Outlook {
            reason: Reason::of_code(pace.reason),
            call_rate: pace.call_rate,
            configured_capacity: reported.capacity,
            configured_rate: reported.rate,
            is_decided_here: reported.holds_lease,
            shop: signals.shop,
            shop_has_room_for: signals.room_for,
            no_show_ratio: signals.no_shows,
        });
        Ok(())
    }

    /// The operator hears once when the shop gets into trouble, and when it is out of it.
    fn tell_of(&self, before: Reason, decision: &Decision) {
        if before.is_trouble() == decision.reason.is_trouble() {
            return;
        }
        let (room, reason, rate, capacity) = (self.name(), decision.reason, decision.rate, decision.capacity);
        if reason.is_trouble() {
            tracing::warn!(%room, %reason, rate, capacity, "the shop is in trouble: the rate follows it down");
        } else {
            tracing::info!(%room, %reason, rate, capacity, "the shop is well again");
        }
    }
}

const fn pace_of(decision: &Decision) -> Pace {
    let Decision { capacity, rate, call_rate, reason, .. } = *decision;
    Pace { capacity, rate, call_rate, reason: reason.code() }
}

/// What the nodes say together. Reports that are old, or of a form this node does not know, say nothing.
fn signals_of(reports: &[NodeReport], attendance: Attendance) -> Signals {
    let fresh = reports.iter().filter(|report| report.age_ms <= FRESH_MS).filter_map(|report| {
        let mut read = Report::read(report.text.lines().next()?)?;
        let said = read.room_for.map(|(visitors, age_ms)| (visitors, age_ms.saturating_add(report.age_ms)));
        read.room_for = said.filter(|(_, age_ms)| *age_ms <= SAID_FOR_MS);
        Some(read)
    });
    let fresh: Vec<Report> = fresh.collect();
    let nodes = u32::try_from(fresh.len()).unwrap_or(u32::MAX);
    let all = Report::merge(fresh);
    Signals {
        shop: all.as_ref().map(|all| Shop::of(all, nodes)),
        room_for: all.and_then(|all| all.room_for).map(|(visitors, _)| visitors),
        no_shows: attendance.no_shows,
        entries: attendance.entries,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_strange_reports_say_nothing() {
        let report = |age_ms, text: &str| NodeReport { age_ms, text: text.to_owned() };
        let nothing = signals_of(&[report(3_001, "1 2000 5 0 -"), report(0, "9 x")], Attendance::default());
        assert_eq!(nothing, Signals::default());
        let reports = [
            report(900, "1 2000 1 3 40@9500 20:5"),
            report(20, "1 3000 2 4 50@4000 20:10"),
            report(5_000, "1 1 1 1 -"),
        ];
        let signals = signals_of(&reports, Attendance::default());
        let shop = signals.shop.unwrap();
        assert_eq!((shop.nodes, shop.window_ms, shop.answered, shop.failed, shop.in_flight), (2, 3_000, 15, 3, 7));
        assert_eq!(signals.room_for, Some(50));
        assert_eq!(signals_of(&reports[..1], Attendance::default()).room_for, None, "said too long ago");
    }
}
