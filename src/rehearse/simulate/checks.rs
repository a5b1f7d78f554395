//! Holds the scripts to the guarantees while they run.

use crate::rehearse::{real, verdict::Row};

/// What was seen of each guarantee so far.
#[derive(Debug)]
pub struct Checks {
    capacity: u32,
    most_occupied: u32,
    /// By how many a call or an entry exceeded the capacity at worst.
    most_over: u32,
    windows: Windows,
    /// How many were called or let in, in the order of their arrival.
    in_order: u64,
    /// The first thing that went wrong with the order, and with everything else.
    disorder: Option<String>,
    difference: Option<String>,
    audits: u64,
}

impl Checks {
    /// Nothing seen yet.
    pub fn new(capacity: u32, rate: f64, burst: u32) -> Self {
        Self {
            capacity,
            most_occupied: 0,
            most_over: 0,
            windows: Windows::new(rate, burst),
            in_order: 0,
            disorder: None,
            difference: None,
            audits: 0,
        }
    }

    /// From now on these limits hold.
    pub fn limits(&mut self, now_us: u64, capacity: u32, rate: f64) {
        self.capacity = capacity;
        self.windows.at_rate(now_us, rate);
    }

    /// G1: somebody was called or let straight in, and so many are called or inside now. (A lower capacity ejects nobody.)
    pub fn taken(&mut self, occupied: u32) {
        self.most_occupied = self.most_occupied.max(occupied);
        self.most_over = self.most_over.max(occupied.saturating_sub(self.capacity));
    }

    /// G2: somebody is let in now.
    pub fn admitted(&mut self, now_us: u64) {
        self.windows.admitted(now_us);
    }

    /// G3: this call or admission was of whoever was first in line, or not.
    pub fn turn(&mut self, first: bool, otherwise: impl FnOnce() -> String) {
        self.in_order += u64::from(first);
        if !first {
            self.disorder.get_or_insert_with(otherwise);
        }
    }

    /// The store and the book agree, or not.
    pub fn agree(&mut self, same: bool, otherwise: impl FnOnce() -> String) {
        self.audits += 1;
        if !same {
            self.difference.get_or_insert_with(otherwise);
        }
    }

    /// The most called or inside at once.
    pub fn peak(&self) -> u32 {
        self.most_occupied
    }

    /// The verdict; the store has no place for `lost` people.
    pub fn verdict(self, lost: u64) -> Vec<Row> {
        let Self { capacity, most_occupied, most_over, windows, in_order, disorder, difference, audits } = self;
        let order = disorder.clone().unwrap_or_else(|| format!("{in_order} turns"));
        let agreement = difference.clone().unwrap_or_else(|| format!("{audits} answers as predicted"));
        vec![
            Row::new("G1", "called and inside", most_over == 0, format!("at most {most_occupied} of {capacity}")),
            Row::new("G2", "admissions in every window", windows.closest <= TOLERANCE, windows.describe()),
            Row::new("G3", "turns in order of arrival", disorder.is_none(), order),
            Row::new("", "the store answers as predicted", difference.is_none(), agreement),
            Row::new("G5", "places lost", lost == 0, format!("{lost}")),
        ]
    }
}

/// What summing a million fractions may be off by.
const TOLERANCE: f64 = 1e-6;

/// Admissions in every window against rate × window + burst.
///
/// A window from the i-th to the j-th admission is over by (j − allowance(tⱼ)) − (i − allowance(tᵢ)) − burst + 1, where
/// the allowance is what the rate has let flow since the opening; so for each j the i with the least difference is the
/// worst.
#[derive(Debug)]
struct Windows {
    rate: f64,
    burst: u32,
    /// What flowed until the rate last changed, and when that was.
    allowance: f64,
    since_us: u64,
    admitted: u64,
    lowest: f64,
    /// The tightest window: admissions less what was allowed; above 0 is too many.
    closest: f64,
}

impl Windows {
    fn new(rate: f64, burst: u32) -> Self {
        Self { rate, burst, allowance: 0.0, since_us: 0, admitted: 0, lowest: f64::MAX, closest: f64::MIN }
    }

    fn at_rate(&mut self, now_us: u64, rate: f64) {
        (self.allowance, self.since_us, self.rate) = (self.allowance_at(now_us), now_us, rate);
    }

    fn allowance_at(&self, now_us: u64) -> f64 {
        self.allowance + self.rate * real(now_us - self.since_us) / 1e6
    }

    fn admitted(&mut self, now_us: u64) {
        let allowance = self.allowance_at(now_us);
        self.lowest = self.lowest.min(real(self.admitted) - allowance);
        self.admitted += 1;
        self.closest = self.closest.max(real(self.admitted) - allowance - self.lowest - f64::from(self.burst));
    }

    fn describe(&self) -> String {
        let limits = format!("({} per s, burst {})", self.rate, self.burst);
        match self.admitted {
            0 => format!("nobody was let in {limits}"),
            _ if self.closest > TOLERANCE => format!("{:.3} too many in the worst {limits}", self.closest),
            _ => format!("{:.1} below the limit in the tightest {limits}", self.closest.min(0.0).abs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worst of all windows, looked at one by one.
    fn brute_force(times: &[u64], rate: f64, burst: u32) -> f64 {
        let over =
            |i: usize, j: usize| real((j - i + 1) as u64) - rate * real(times[j] - times[i]) / 1e6 - f64::from(burst);
        (0..times.len())
            .flat_map(|i| (i..times.len()).map(move |j| (i, j)))
            .map(|(i, j)| over(i, j))
            .fold(f64::MIN, f64::max)
    }

    #[test]
    fn the_tightest_window_is_the_tightest_of_all() {
        let mut state = 12_345_u64;
        for _ in 0..50 {
            let mut times: Vec<u64> = (0..40)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (state >> 33) % 2_000_000
                })
                .collect();
            times.sort_unstable();
            let mut windows = Windows::new(10.0, 3);
            for time in &times {
                windows.admitted(*time);
            }
            assert!((windows.closest - brute_force(&times, 10.0, 3)).abs() < 1e-9);
        }
    }

    #[test]
    fn a_broken_guarantee_is_named() {
        let mut checks = Checks::new(2, 1.0, 1);
        checks.taken(3);
        checks.admitted(0);
        checks.admitted(500_000);
        checks.turn(false, || "somebody else".to_owned());
        checks.agree(false, || "another count".to_owned());
        let held: Vec<_> = checks.verdict(1).iter().map(|row| row.judgement).collect();
        assert_eq!(held, [crate::rehearse::verdict::Judgement::Broken; 5]);
    }
}
