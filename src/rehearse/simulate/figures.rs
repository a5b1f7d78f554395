//! What is measured while a sale runs, and the figures it comes down to.

use serde::Serialize;

use super::crowd::Nth;
use crate::rehearse::real;

/// The crowd is looked at in ten parts, by order of arrival; the sale in ten parts, by time.
pub const PARTS: u32 = 10;

/// Notes taken on the way.
#[derive(Debug)]
pub struct Tape {
    users: u32,
    /// How long whoever was let in had waited, in microseconds, by part of the crowd.
    waits: [Vec<u64>; PARTS as usize],
    admissions: u64,
    last_admission_us: Option<u64>,
    /// The last of the crowd who was called or let in.
    reached: Option<Nth>,
    seconds: Vec<Second>,
}

/// The room at a full second.
#[derive(Debug, Clone, Copy)]
struct Second {
    admissions: u64,
    waiting: u32,
    inside: u32,
}

/// How long people waited from their arrival to the door, in seconds. All 0 when nobody was let in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Waits {
    /// How many were let in.
    pub people: u64,
    /// Half waited at most this long.
    pub p50: f64,
    /// 90 % waited at most this long.
    pub p90: f64,
    /// 99 % waited at most this long.
    pub p99: f64,
    /// The longest wait.
    pub max: f64,
}

/// A part of the sale.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stretch {
    /// When it ends, in seconds since the opening.
    pub until: f64,
    /// Admissions per second.
    pub admitted_per_second: f64,
    /// In line at its end.
    pub waiting: u32,
    /// Inside at its end.
    pub inside: u32,
}

impl Tape {
    /// Nothing noted yet.
    pub fn of(users: u32) -> Self {
        Self {
            users,
            waits: Default::default(),
            admissions: 0,
            last_admission_us: None,
            reached: None,
            seconds: Vec::new(),
        }
    }

    /// Somebody is called.
    pub fn called(&mut self, nth: Nth) {
        self.reached = self.reached.max(Some(nth));
    }

    /// Somebody is let in.
    pub fn admitted(&mut self, nth: Nth, now_us: u64, waited_us: u64) {
        self.reached = self.reached.max(Some(nth));
        self.admissions += 1;
        self.last_admission_us = Some(now_us);
        let part = u64::from(nth) * u64::from(PARTS) / u64::from(self.users.max(1));
        if let Some(waits) = usize::try_from(part).ok().and_then(|part| self.waits.get_mut(part)) {
            waits.push(waited_us);
        }
    }

    /// A full second has passed.
    pub fn second(&mut self, waiting: u32, inside: u32) {
        self.seconds.push(Second { admissions: self.admissions, waiting, inside });
    }

    /// How many were let in so far.
    pub fn admissions(&self) -> u64 {
        self.admissions
    }

    /// When the last visitor was let in.
    pub fn last_admission_us(&self) -> Option<u64> {
        self.last_admission_us
    }

    /// How many of the crowd arrived no later than the last one called or let in.
    pub fn reached(&self) -> u64 {
        self.reached.map_or(0, |nth| u64::from(nth) + 1)
    }

    /// The waits of each part of the crowd, and of all.
    pub fn waits(&self) -> (Vec<Waits>, Waits) {
        let parts = self.waits.iter().map(|waits| Waits::of(waits.clone())).collect();
        (parts, Waits::of(self.waits.concat()))
    }

    /// Ten stretches of equal length up to a moment, fewer when it comes within ten seconds.
    pub fn stretches(&self, until_us: u64) -> Vec<Stretch> {
        let full = usize::try_from(until_us.div_ceil(1_000_000)).unwrap_or(usize::MAX);
        let count = self.seconds.len().min(full.saturating_add(1));
        let mut begin = Second { admissions: 0, waiting: 0, inside: 0 };
        let mut begins = 0;
        let ends = (1..=PARTS as usize).map(|part| (count.saturating_sub(1) * part).div_ceil(PARTS as usize));
        let mut stretches = Vec::new();
        for at in ends {
            let Some(end) = self.seconds.get(at).filter(|_| at > begins) else { continue };
            stretches.push(Stretch {
                until: real(at as u64),
                admitted_per_second: real(end.admissions - begin.admissions) / real((at - begins) as u64),
                waiting: end.waiting,
                inside: end.inside,
            });
            (begin, begins) = (*end, at);
        }
        stretches
    }
}

impl Waits {
    /// Exact, by the nearest rank.
    fn of(mut micros: Vec<u64>) -> Self {
        micros.sort_unstable();
        let at = |share: usize| {
            let rank = (micros.len() * share).div_ceil(100).max(1);
            micros.get(rank - 1).map_or(0.0, |wait| seconds(*wait))
        };
        Self { people: micros.len() as u64, p50: at(50), p90: at(90), p99: at(99), max: at(100) }
    }
}

/// Microseconds as seconds, to the millisecond.
pub fn seconds(micros: u64) -> f64 {
    real(micros / 1_000) / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_exact_by_nearest_rank() {
        let waits = Waits::of((1..=200).rev().map(|second| second * 1_000_000).collect());
        assert_eq!(waits, Waits { people: 200, p50: 100.0, p90: 180.0, p99: 198.0, max: 200.0 });
        assert_eq!(Waits::of(Vec::new()), Waits { people: 0, p50: 0.0, p90: 0.0, p99: 0.0, max: 0.0 });
    }

    #[test]
    fn stretches_add_up_to_the_sale() {
        for count in [0_u64, 1, 2, 5, 10, 11, 95, 1_000] {
            let mut tape = Tape::of(10);
            for second in 0..count {
                tape.second(0, 0);
                tape.admitted(0, second, 0);
            }
            let stretches = tape.stretches(u64::MAX);
            let mut last = 0.0;
            let mut sum = 0.0;
            for stretch in &stretches {
                sum += stretch.admitted_per_second * (stretch.until - last);
                last = stretch.until;
            }
            assert_eq!(stretches.len() as u64, count.saturating_sub(1).min(10));
            assert!((sum - real(count.saturating_sub(1))).abs() < 1e-6, "{count}: {stretches:?}");
        }
    }
}
