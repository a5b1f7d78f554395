//! How fast a room admits, as a pure function of its limits, what was measured, and what was decided before.
//!
//! One controller decides for the whole room, once a second. The law is that of congestion control: raise gently, cut by a
//! factor (Chiu and Jain, "Analysis of the increase and decrease algorithms for congestion avoidance", 1989). Their sum in
//! the raise makes several senders fair to each other; here there is one, and a raise in proportion suits a shop of any
//! size. From CUBIC (Ha, Rhee and Xu, 2008; RFC 9438) comes the memory: the pace that was too much last time is approached
//! slowly, so that the pace does not swing. From RFC 7661: a pace that nobody uses proves nothing and is not raised, and
//! a cut starts from what really came in. Little's law (1961) is why a pace can protect a shop at all: how many are inside
//! is the pace times how long they stay, so a change takes as long to show as a visit lasts.
//!
//! Units: rates per second, times in milliseconds, ratios as parts of 1.

use std::fmt;

use serde::Serialize;

use super::signals::report::Report;
use crate::config::Adaptive;

/// What the operator set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Most visitors inside, called ones counted.
    pub capacity: u32,
    /// Entries per second: where an adaptive room starts and what any other keeps.
    pub rate: f64,
    /// How the rate follows the shop, if it does.
    pub adaptive: Option<Adaptive>,
}

/// What was measured of late. Each may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Signals {
    /// What the nodes saw of the shop; `None` when no node reported.
    pub shop: Option<Shop>,
    /// How many visitors the shop says it takes altogether; `None` when it said nothing of late.
    pub room_for: Option<u64>,
    /// Which part of the called did not come.
    pub no_shows: Option<f64>,
    /// Entries per second of late.
    pub entries: Option<f64>,
}

/// The shop as the nodes see it: what became of admitted visitors' requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shop {
    /// How many nodes reported.
    pub nodes: u32,
    /// Over how long it was measured, milliseconds.
    pub window_ms: u64,
    /// Answers in that time, without errors.
    pub answered: u64,
    /// The 95th of 100 waits for an answer, milliseconds; `None` without answers.
    pub p95_ms: Option<f64>,
    /// Errors in that time.
    pub failed: u64,
    /// Requests under way.
    pub in_flight: u64,
}

impl Shop {
    /// What so many nodes' reports say together.
    pub fn of(report: &Report, nodes: u32) -> Self {
        Self {
            nodes,
            window_ms: report.window_ms,
            answered: report.waits.count(),
            p95_ms: report.waits.quantile_ms(0.95),
            failed: report.failed,
            in_flight: report.in_flight,
        }
    }
}

/// What holds until the next decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// Most entries per second.
    pub rate: f64,
    /// Most calls per second: more than `rate`, as some will not come, and at most twice that.
    pub call_rate: f64,
    /// Most visitors inside. Never more than configured.
    pub capacity: u32,
    /// Why.
    pub reason: Reason,
    /// When it was decided, milliseconds.
    pub at_ms: u64,
    /// What the next decision has to know.
    pub memory: Memory,
}

/// What a decision remembers. All of it may be lost: it only makes the next ones calmer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Memory {
    /// When the rate was last cut, milliseconds.
    cut_ms: Option<u64>,
    /// The strain it was cut for.
    cut_strain: f64,
    /// The pace that a shop which had too much got through, entries per second.
    known_good: Option<f64>,
    /// Whether the rate was cut and not raised since.
    is_cut: bool,
    /// Visitors let in, and over how many seconds; what is older counts for less.
    entered: f64,
    watched: f64,
    /// How far beyond its aim the shop was: 1 is at the aim.
    strain: f64,
    /// How many nodes reported.
    nodes: u32,
}

/// Why the pace is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// As configured: the room follows nothing.
    Configured,
    /// The shop is near its aim, or has all it may get.
    Steady,
    /// The shop is well, so it gets more.
    Raising,
    /// Answers take too long.
    Slow,
    /// Too many answers are errors.
    Errors,
    /// The shop asked for fewer visitors than configured.
    OriginAsked,
    /// Nobody knows how the shop is.
    SignalsMissing,
}

impl fmt::Display for Reason {
    /// The word that the admin API has for it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Reason {
    const ALL: [Self; 7] = [
        Self::Configured,
        Self::Steady,
        Self::Raising,
        Self::Slow,
        Self::Errors,
        Self::OriginAsked,
        Self::SignalsMissing,
    ];

    /// Whether something is wrong.
    pub const fn is_trouble(self) -> bool {
        matches!(self, Self::Slow | Self::Errors | Self::OriginAsked | Self::SignalsMissing)
    }

    /// The number it has in the store.
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The reason of a number from the store; [`Reason::Configured`] of one that is unknown.
    pub fn of_code(code: u32) -> Self {
        Self::ALL.into_iter().find(|reason| reason.code() == code).unwrap_or(Self::Configured)
    }
}

/// A cut after slow answers leaves this much.
const CUT: f64 = 0.8;
/// A cut leaves this much after errors, and when the shop is [`SEVERE`] times beyond its aim.
const HARD_CUT: f64 = 0.5;
const SEVERE: f64 = 3.0;
/// A strain that falls by this much from one decision to the next needs no further cut: the shop is working it off.
const EASES: f64 = 0.95;
/// A cut gets so many milliseconds to show beyond the window of measurement, divided by the strain.
const PATIENCE_MS: f64 = 8_000.0;
/// A strain so many times that of the last cut calls for another one,
const GROWS: f64 = 1.5;
/// after so many milliseconds at the soonest.
const SOONEST_MS: u64 = 2_000;
/// Below this strain the shop is well and gets more.
const WELL: f64 = 0.8;
/// Raise per second towards the pace that is known to be good,
const RAISE: f64 = 0.05;
/// and from there on, bolder with every [`BOLDER_SECONDS`] since the last cut, but no more than [`RAISE`].
const CAREFUL_RAISE: f64 = 0.01;
const BOLDER_SECONDS: f64 = 60.0;
/// Up to this part of the pace that a strained shop got through, a pace is known to be good.
const KNOWN_GOOD: f64 = 0.9;
/// What was let in long ago counts less for that: seconds.
const FADE_SECONDS: f64 = 120.0;
/// Cuts for slowness leave this part of what was let in of late, or the shop runs dry when it has worked off its strain.
const LEAST: f64 = 0.5;
const LEAST_HARD: f64 = 0.25;
/// After so long the shop may have changed, and what was too much once is forgotten.
const REMEMBER_MS: u64 = 10 * 60 * 1_000;
/// A pace is used when this much of it really came in.
const USED: f64 = 0.6;
/// A cut starts from no less than this part of the rate.
const LEAST_USED: f64 = 0.25;
/// Loss per second while nobody knows how the shop is.
const MISSING: f64 = 0.05;
/// Fewer than so many requests are an accident rather than a signal.
const FEWEST: u64 = 20;
const FEWEST_FAILED: u64 = 3;
/// Raise of the capacity per second, as a part of the configured one, once the shop no longer asks for less.
const CAPACITY_RAISE: f64 = 0.05;
/// Time beyond this between two decisions does not count: nobody looked.
const LONGEST_STEP_MS: u64 = 2_000;

/// What holds from `now_ms` on.
pub fn decide(limits: &Limits, signals: &Signals, previous: Option<&Decision>, now_ms: u64) -> Decision {
    let elapsed_ms = previous.map_or(0, |previous| now_ms.saturating_sub(previous.at_ms)).min(LONGEST_STEP_MS);
    let step = Step { signals, now_ms, seconds: seconds(elapsed_ms) };
    let (rate, reason, memory) = match &limits.adaptive {
        Some(adaptive) => step.follow(adaptive, limits.rate, previous),
        None => (limits.rate, Reason::Configured, Memory::default()),
    };
    let capacity = step.capacity(limits, previous);
    let reason = match reason {
        Reason::Configured | Reason::Steady | Reason::Raising if capacity < limits.capacity => Reason::OriginAsked,
        reason => reason,
    };
    let no_shows = signals.no_shows.filter(|ratio| ratio.is_finite()).unwrap_or(0.0).clamp(0.0, 0.5);
    Decision { rate, call_rate: rate / (1.0 - no_shows), capacity, reason, at_ms: now_ms, memory }
}

impl Memory {
    fn watch(&mut self, entries: f64, seconds: f64) {
        let left = (-seconds / FADE_SECONDS).exp();
        self.entered = self.entered * left + entries * seconds;
        self.watched = self.watched * left + seconds;
    }

    /// Visitors let in per second of late. From one moment at which the shop was well to the next, as many left as came
    /// (flow balance: Denning and Buzen, "The operational analysis of queueing network models", 1978), so this is what
    /// the shop gets through.
    fn mean(&self) -> f64 {
        if self.watched > 0.0 { self.entered / self.watched } else { 0.0 }
    }
}

/// What one decision follows from.
struct Step<'a> {
    signals: &'a Signals,
    now_ms: u64,
    /// Since the last decision.
    seconds: f64,
}

/// How the shop is.
enum Health {
    Unknown,
    /// Strain by errors or by slow answers; whether that is certain enough to act on.
    Strained {
        strain: f64,
        reason: Reason,
        certain: bool,
    },
    /// Nothing is wrong.
    Fine {
        strain: f64,
    },
}

impl Step<'_> {
    fn follow(&self, adaptive: &Adaptive, start: f64, previous: Option<&Decision>) -> (f64, Reason, Memory) {
        let mut memory = previous.map_or_else(Memory::default, |previous| previous.memory);
        let rate = previous.map_or(start, |previous| previous.rate).clamp(adaptive.min_rate, adaptive.max_rate);
        memory.watch(self.signals.entries.unwrap_or(rate), self.seconds);
        let nodes = self.signals.shop.map_or(0, |shop| shop.nodes);
        let lost_a_node = nodes < memory.nodes;
        memory.nodes = nodes;
        let (wanted, reason) = match self.health(adaptive) {
            Health::Unknown => (rate * (1.0 - MISSING).powf(self.seconds), Reason::SignalsMissing),
            Health::Strained { strain, reason, certain } => {
                let eases = strain < memory.strain * EASES;
                memory.strain = strain;
                if certain && !eases && self.may_cut(&memory, strain) {
                    (self.cut(rate, strain, reason, &mut memory), reason)
                } else {
                    (rate, reason)
                }
            }
            _ if lost_a_node => (rate * (1.0 - MISSING).powf(self.seconds), Reason::SignalsMissing),
            Health::Fine { strain } => {
                memory.strain = strain;
                let wanted = if strain < WELL { self.raised(rate, start, &mut memory) } else { rate };
                (wanted, if wanted > rate { Reason::Raising } else { Reason::Steady })
            }
        };
        let wanted = wanted.clamp(adaptive.min_rate, adaptive.max_rate);
        let reason = if reason == Reason::Raising && wanted <= rate { Reason::Steady } else { reason };
        (wanted, reason, memory)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of requests within seconds")]
    fn health(&self, adaptive: &Adaptive) -> Health {
        let Some(shop) = self.signals.shop else { return Health::Unknown };
        let ended = shop.answered.saturating_add(shop.failed);
        let by_errors = shop.failed as f64 / ended.max(1) as f64 / adaptive.max_error_ratio;
        let by_waits = shop.p95_ms.unwrap_or(0.0) / (adaptive.target_p95.as_secs_f64() * 1_000.0);
        if by_errors > 1.0 {
            Health::Strained { strain: by_errors, reason: Reason::Errors, certain: shop.failed >= FEWEST_FAILED }
        } else if by_waits > 1.0 {
            Health::Strained { strain: by_waits, reason: Reason::Slow, certain: shop.answered >= FEWEST }
        } else if ended == 0 && shop.in_flight > 0 {
            // It may hang: silence is no ground to send it more.
            Health::Fine { strain: WELL }
        } else {
            Health::Fine { strain: by_errors.max(by_waits) }
        }
    }

    /// A cut is judged by requests from after it, and gets the more time to show the less beyond its aim the shop is. What has
    /// become much worse since needs no such proof.
    fn may_cut(&self, memory: &Memory, strain: f64) -> bool {
        let window_ms = self.signals.shop.map_or(0, |shop| shop.window_ms);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "strain is above 1")]
        let patience_ms = (PATIENCE_MS / strain) as u64;
        let grows = strain > memory.cut_strain * GROWS;
        let wait_ms = if grows { SOONEST_MS } else { window_ms.saturating_add(patience_ms) };
        memory.cut_ms.is_none_or(|cut_ms| self.now_ms.saturating_sub(cut_ms) >= wait_ms)
    }

    fn cut(&self, rate: f64, strain: f64, reason: Reason, memory: &mut Memory) -> f64 {
        (memory.cut_ms, memory.cut_strain, memory.is_cut) = (Some(self.now_ms), strain, true);
        // Seconds in which nobody came by chance do not make it a trickle.
        let came = self.signals.entries.unwrap_or(rate).clamp(rate * LEAST_USED, rate);
        match reason {
            Reason::Errors => came * HARD_CUT,
            _ if strain > SEVERE => (came * HARD_CUT).max(memory.mean() * LEAST_HARD).min(rate),
            _ => (came * CUT).max(memory.mean() * LEAST).min(rate),
        }
    }

    /// Beyond what the operator set only as far as the pace is used.
    fn raised(&self, rate: f64, start: f64, memory: &mut Memory) -> f64 {
        if std::mem::take(&mut memory.is_cut) {
            memory.known_good = Some(memory.mean());
        }
        let since_cut_ms = memory.cut_ms.map_or(u64::MAX, |cut_ms| self.now_ms.saturating_sub(cut_ms));
        let known_good = memory.known_good.filter(|_| since_cut_ms < REMEMBER_MS);
        let known_good = known_good.map_or(start, |pace| pace * KNOWN_GOOD);
        let bolder = memory.cut_ms.map_or(1.0, |_| seconds(since_cut_ms) / BOLDER_SECONDS);
        let careful = (CAREFUL_RAISE * bolder).clamp(CAREFUL_RAISE, RAISE);
        let by = |raise: f64| rate * (1.0 + raise).powf(self.seconds);
        let is_used = self.signals.entries.is_some_and(|entries| entries >= rate * USED);
        if rate < known_good {
            by(RAISE).min(known_good)
        } else if is_used {
            by(careful)
        } else if rate < start {
            by(careful).min(start)
        } else {
            rate
        }
    }

    /// As many as the shop says; when it no longer says anything, back to what is configured, gently.
    fn capacity(&self, limits: &Limits, previous: Option<&Decision>) -> u32 {
        let asked = match (self.signals.room_for, previous) {
            (Some(room_for), _) => f64::from(u32::try_from(room_for).unwrap_or(u32::MAX)),
            (None, Some(previous)) if previous.capacity < limits.capacity => {
                let raise = (f64::from(limits.capacity) * CAPACITY_RAISE).max(1.0);
                f64::from(previous.capacity) + (raise * self.seconds).ceil()
            }
            (None, _) => return limits.capacity,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and saturates")]
        let asked = asked as u32;
        asked.min(limits.capacity)
    }
}

#[expect(clippy::cast_precision_loss, reason = "some seconds")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "counts of visitors and seconds of a simulation")]
mod shop;
#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "counts of visitors and seconds of a simulation")]
mod simulations;
#[cfg(test)]
mod tests;
