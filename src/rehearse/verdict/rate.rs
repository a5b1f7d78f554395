//! G2: admissions in any window stay within rate × window + burst.

use super::{Evidence, Row};
use crate::rehearse::real;

const WHAT: &str = "admissions in every window";
/// Times are whole milliseconds, so a window may be this much longer than it looks.
const ROUNDING_MS: f64 = 1.0;

/// A window of admissions.
#[derive(Debug, PartialEq)]
struct Window {
    admitted: u64,
    length_ms: u64,
    allowed: f64,
}

pub(super) fn admissions(evidence: &Evidence) -> Row {
    let limits = match evidence.limits.or_row("G2", WHAT) {
        Ok(limits) => limits,
        Err(row) => return row,
    };
    let sessions = || evidence.records.iter().flat_map(|record| &record.sessions);
    let approximate = sessions().filter(|session| session.approximate).count();
    let mut times: Vec<u64> =
        sessions().filter(|session| !session.approximate).map(|session| session.admitted_ms).collect();
    times.sort_unstable();
    let Some(worst) = worst_window(&times, limits.rate, limits.burst) else {
        return Row::not_checked("G2", WHAT, "nobody was let in at a known time");
    };
    let mut detail = vec![format!(
        "tightest: {} in {} ms, {:.1} allowed ({} per s, burst {})",
        worst.admitted, worst.length_ms, worst.allowed, limits.rate, limits.burst
    )];
    if approximate > 0 {
        detail.push(format!("{approximate} of unknown time left out"));
    }
    Row::new("G2", WHAT, real(worst.admitted) <= worst.allowed + 1e-6, detail.join("; "))
}

/// The window that comes closest to its limit, or exceeds it most. `times` is sorted.
///
/// A window from the i-th to the j-th admission is over the limit by (j − rate·tⱼ) − (i − rate·tᵢ) + constant, so for
/// each j the i with the least i − rate·tᵢ is the worst.
fn worst_window(times: &[u64], rate: f64, burst: u32) -> Option<Window> {
    let origin = *times.first()?;
    let allowed = |length_ms: u64| rate * (real(length_ms) + ROUNDING_MS) / 1_000.0 + f64::from(burst);
    let mut least: Option<(f64, u64, u64)> = None;
    let mut worst: Option<(f64, Window)> = None;
    for (at, &time) in (0_u64..).zip(times) {
        let height = real(at) - rate * real(time - origin) / 1_000.0;
        if least.is_none_or(|(lowest, ..)| height < lowest) {
            least = Some((height, at, time));
        }
        if let Some((_, first, begins)) = least {
            let (admitted, length_ms) = (at - first + 1, time - begins);
            let over = real(admitted) - allowed(length_ms);
            if worst.as_ref().is_none_or(|(most, _)| over > *most) {
                worst = Some((over, Window { admitted, length_ms, allowed: allowed(length_ms) }));
            }
        }
    }
    worst.map(|(_, window)| window)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brute_force_over(times: &[u64], rate: f64, burst: u32) -> f64 {
        let mut over = f64::MIN;
        for i in 0..times.len() {
            for j in i..times.len() {
                let allowed = rate * (real(times[j] - times[i]) + ROUNDING_MS) / 1_000.0 + f64::from(burst);
                over = over.max(real((j - i + 1) as u64) - allowed);
            }
        }
        over
    }

    #[test]
    fn the_worst_window_is_the_worst_of_all_windows() {
        let mut state = 12_345_u64;
        for _ in 0..50 {
            let mut times: Vec<u64> = (0..40)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    1_000_000 + (state >> 33) % 2_000
                })
                .collect();
            times.sort_unstable();
            let worst = worst_window(&times, 10.0, 3).unwrap();
            let over = real(worst.admitted) - worst.allowed;
            assert!((over - brute_force_over(&times, 10.0, 3)).abs() < 1e-9);
        }
    }
}
