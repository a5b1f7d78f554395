//! G1: never more inside than capacity.

use super::{Evidence, Row, server_ahead_ms};
use crate::rehearse::record::Record;

const WHAT: &str = "called and inside, by session tokens";
const WHAT_REDIS: &str = "called and inside, by Redis";
const CURE_REDIS: &str = "give the gateway's Redis with --redis URL, or leave --redis out";

/// The most that were inside at once, by their tokens. A slot counts from the call to the end of the token, or to the
/// instant its holder sent the request that gave it up: the server freed it no earlier, so this never counts too many.
pub(super) fn by_tokens(evidence: &Evidence) -> Row {
    let limits = match evidence.limits.or_row("G1", WHAT) {
        Ok(limits) => limits,
        Err(row) => return row,
    };
    match peak_inside(&evidence.records) {
        0 => Row::not_checked("G1", WHAT, "nobody was let in"),
        peak => {
            let detail = format!("at most {peak} of {}", limits.capacity);
            Row::new("G1", WHAT, peak <= u64::from(limits.capacity), detail)
        }
    }
}

/// The same by the room's own sets.
pub(super) fn by_redis(evidence: &Evidence) -> Option<Row> {
    let samples = match evidence.redis.as_ref()? {
        Ok(samples) if samples.taken > 0 => samples,
        Ok(_) => return Some(Row::unknown("G1", WHAT_REDIS, format!("Redis answered no look at all; {CURE_REDIS}"))),
        Err(why) => return Some(Row::unknown("G1", WHAT_REDIS, format!("{why}; {CURE_REDIS}"))),
    };
    let limits = match evidence.limits.or_row("G1", WHAT_REDIS) {
        Ok(limits) => limits,
        Err(row) => return Some(row),
    };
    let detail = format!(
        "at most {} of {} in {} looks, {} unanswered",
        samples.most, limits.capacity, samples.taken, samples.failed
    );
    if samples.most == 0 && peak_inside(&evidence.records) == 0 {
        return Some(Row::not_checked("G1", WHAT_REDIS, "nobody was let in"));
    }
    if samples.most == 0 {
        let why = format!("{detail}: these sets stay empty, so this is not the system's Redis; {CURE_REDIS}");
        return Some(Row::unknown("G1", WHAT_REDIS, why));
    }
    Some(Row::new("G1", WHAT_REDIS, samples.most <= u64::from(limits.capacity), detail))
}

/// The most sessions that ran at one instant.
pub fn peak_inside(records: &[Record]) -> u64 {
    let sessions = || records.iter().flat_map(|record| &record.sessions);
    let skew_ms = server_ahead_ms(records);
    // At one instant ends come before beginnings, which is in the server's favour.
    let mut changes: Vec<(u64, i64)> = sessions()
        .flat_map(|session| {
            let begins = if session.approximate { session.admitted_ms } else { session.called_ms };
            let ended = session.ended_ms.map(|ended| ended.saturating_add_signed(skew_ms));
            let ends = ended.map_or(session.expires_ms, |ended| ended.min(session.expires_ms));
            [(begins, 1), (ends.max(begins), -1)]
        })
        .collect();
    changes.sort_unstable();
    let (mut inside, mut peak) = (0_i64, 0_i64);
    for (_, change) in changes {
        inside += change;
        peak = peak.max(inside);
    }
    u64::try_from(peak).unwrap_or_default()
}
