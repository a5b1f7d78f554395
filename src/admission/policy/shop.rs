//! A small shop on virtual time: so many workers answer requests one after the other, and visitors look at some pages with
//! pauses between, so that load follows from who is inside, as late as in life. Nothing in it is left to chance.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Decision, Limits, Shop as Seen, Signals, decide};
use crate::admission::{
    attendance::AttendanceMeter,
    signals::{Exchange, Meter, Window, report::Report},
};

/// Pages of a visit, and the pause before each, milliseconds.
pub(super) const PAGES: u32 = 6;
pub(super) const PAUSE_MS: u64 = 5_000;
/// How long the called have, milliseconds.
const CLAIM_MS: u64 = 30_000;
/// How often nodes call and visitors come, milliseconds.
const TICK_MS: u64 = 100;

/// What may be wrong with the shop, or between it and the policy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weather {
    /// Requests at once.
    pub(super) workers: usize,
    /// How long one takes, milliseconds.
    pub(super) service_ms: u64,
    pub(super) is_dead: bool,
    /// Whether the nodes' reports arrive.
    pub(super) is_seen: bool,
    /// How many of a hundred called visitors do not come.
    pub(super) stay_away: u64,
    /// How many visitors the shop says it takes, if it says so.
    pub(super) room_for: Option<u64>,
}

/// A shop that answers 40 requests a second in a tenth of a second each: 6.7 visits a second, about 204 visitors at once.
pub(super) const FAIR: Weather =
    Weather { workers: 4, service_ms: 100, is_dead: false, is_seen: true, stay_away: 0, room_for: None };

/// What happened in one second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Second {
    pub(super) rate: f64,
    pub(super) capacity: u32,
    pub(super) reason: super::Reason,
    pub(super) entries: u64,
    pub(super) called: u64,
    pub(super) inside: u64,
    /// Pages that were answered well.
    pub(super) pages: u64,
    /// The longest wait that ended, milliseconds.
    pub(super) slowest_ms: u64,
    pub(super) failed: u64,
}

/// A sale with more people before the door than it will ever let in.
pub(super) struct Sale {
    limits: Limits,
    burst: f64,
    now_ms: u64,
    start: Instant,
    meter: Arc<Meter>,
    window: Window,
    attendance: AttendanceMeter,
    decision: Option<Decision>,
    tokens: [f64; 2],
    /// Whoever is called: when they come, if they do, and until when the slot is theirs.
    called: VecDeque<(Option<u64>, u64)>,
    inside: u64,
    totals: [u64; 3],
    /// When each worker is free.
    workers: BinaryHeap<Reverse<u64>>,
    events: BinaryHeap<Reverse<Event>>,
    running: Vec<Option<(Exchange, u64)>>,
    numbered: u64,
}

/// When, a number that makes order certain, and what.
type Event = (u64, u64, What);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A visitor with so many pages left asks for one.
    Ask(u32),
    /// A request ends, well or not, of a visitor with so many pages left.
    End(usize, bool, u32),
}

impl Sale {
    pub(super) fn new(limits: Limits, burst: u32) -> Self {
        let (start, meter) = (Instant::now(), Arc::new(Meter::default()));
        Self {
            limits,
            burst: f64::from(burst),
            now_ms: 0,
            start,
            window: Window::new(Arc::clone(&meter), start),
            meter,
            attendance: AttendanceMeter::default(),
            decision: None,
            tokens: [f64::from(burst); 2],
            called: VecDeque::new(),
            inside: 0,
            totals: [0; 3],
            workers: BinaryHeap::new(),
            events: BinaryHeap::new(),
            running: Vec::new(),
            numbered: 0,
        }
    }

    /// Plays so many seconds.
    pub(super) fn play(&mut self, seconds: u64, weather: Weather) -> Vec<Second> {
        (0..seconds).map(|_| self.second(weather)).collect()
    }

    fn second(&mut self, weather: Weather) -> Second {
        let decision = self.decide(weather);
        let mut second = Second {
            rate: decision.rate,
            capacity: decision.capacity,
            reason: decision.reason,
            entries: 0,
            called: 0,
            inside: 0,
            pages: 0,
            slowest_ms: 0,
            failed: 0,
        };
        for _ in 0..1_000 / TICK_MS {
            self.now_ms += TICK_MS;
            self.run_shop(weather, &mut second);
            self.run_door(decision, weather, &mut second);
        }
        (second.inside, second.called) = (self.inside, self.called.len() as u64);
        second
    }

    fn decide(&mut self, weather: Weather) -> Decision {
        let now = self.instant(self.now_ms);
        if let Some(more) = weather.room_for {
            self.meter.note_room_for(more, now);
        }
        let report = Report::read(&self.window.report(now).to_string()).unwrap();
        let attendance = self.attendance.update(self.now_ms, self.totals[2], self.totals[1]);
        let signals = Signals {
            shop: weather.is_seen.then(|| Seen::of(&report, 1)),
            room_for: report.room_for.map(|(visitors, _)| visitors),
            no_shows: attendance.no_shows,
            entries: attendance.entries,
        };
        let decision = decide(&self.limits, &signals, self.decision.as_ref(), self.now_ms);
        self.decision = Some(decision);
        decision
    }

    fn instant(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    /// Calls and lets in, as `call` and `claim` do.
    fn run_door(&mut self, decision: Decision, weather: Weather, second: &mut Second) {
        let part = TICK_MS as f64 / 1_000.0;
        self.tokens[0] = (self.tokens[0] + decision.call_rate * part).min(self.burst);
        self.tokens[1] = (self.tokens[1] + decision.rate * part).min(self.burst);
        let now_ms = self.now_ms;
        let before = self.called.len();
        self.called.retain(|(_, until)| *until > now_ms);
        self.totals[2] += (before - self.called.len()) as u64;
        while self.tokens[0] >= 1.0 && (self.called.len() as u64 + self.inside) < u64::from(decision.capacity) {
            self.tokens[0] -= 1.0;
            let comes = self.totals[0] * 61 % 100 >= weather.stay_away;
            let arrives = now_ms + 300 + self.totals[0] * 37 % 1_500;
            self.called.push_back((comes.then_some(arrives), now_ms + CLAIM_MS));
            self.totals[0] += 1;
        }
        while self.tokens[1] >= 1.0
            && let Some(first) = self.called.iter().position(|(comes, _)| comes.is_some_and(|at| at <= now_ms))
        {
            self.tokens[1] -= 1.0;
            self.called.remove(first);
            self.inside += 1;
            self.totals[1] += 1;
            second.entries += 1;
            self.push(now_ms, What::Ask(PAGES));
        }
    }

    fn run_shop(&mut self, weather: Weather, second: &mut Second) {
        while self.workers.len() < weather.workers {
            self.workers.push(Reverse(self.now_ms));
        }
        while self.workers.len() > weather.workers {
            self.workers.pop();
        }
        while let Some(&Reverse((at, _, what))) = self.events.peek()
            && at <= self.now_ms
        {
            self.events.pop();
            match what {
                What::Ask(left) => self.ask(at, left, weather),
                What::End(number, is_well, left) => self.end(at, number, is_well, left, second),
            }
        }
    }

    fn ask(&mut self, at: u64, left: u32, weather: Weather) {
        let exchange = self.meter.start(self.instant(at));
        let number = self.running.len();
        self.running.push(Some((exchange, at)));
        let ends = if weather.is_dead {
            at + 20
        } else {
            let Reverse(free) = self.workers.pop().unwrap();
            // Some pages take twice as long as others.
            let ends = free.max(at) + weather.service_ms * (67 + self.numbered * 29 % 67) / 100;
            self.workers.push(Reverse(ends));
            ends
        };
        self.push(ends, What::End(number, !weather.is_dead, left));
    }

    fn end(&mut self, at: u64, number: usize, is_well: bool, left: u32, second: &mut Second) {
        let (exchange, asked) = self.running[number].take().unwrap();
        let status = if is_well { http::StatusCode::OK } else { http::StatusCode::BAD_GATEWAY };
        exchange.answered(status, self.instant(at));
        if is_well {
            second.pages += 1;
            second.slowest_ms = second.slowest_ms.max(at - asked);
        } else {
            second.failed += 1;
        }
        let left = left - u32::from(is_well);
        if left == 0 {
            self.inside -= 1;
        } else {
            let pause = PAUSE_MS / 2 + self.numbered * 997 % PAUSE_MS;
            self.push(at + pause, What::Ask(left));
        }
    }

    fn push(&mut self, at: u64, what: What) {
        self.numbered += 1;
        self.events.push(Reverse((at, self.numbered, what)));
    }
}
