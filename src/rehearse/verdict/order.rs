//! G3: nobody is called before a present visitor who came earlier, and no position rises.

use super::{PUNCTUAL_MS, Row, server_ahead_ms};
use crate::rehearse::record::{EXACT_POSITIONS, Record};

const OVERTAKING: &str = "called in order of arrival";
const POSITIONS: &str = "positions never rise";
/// How long before the call itself an answer may still have said "wait": a node's view of the line is that old at most.
const VIEW_AGE_MS: u64 = 1_000;
/// One node's positions never rise. Two nodes may differ by 0.1 % behind the exact region, and a visitor may be answered by
/// either; this share leaves room for that.
const INTERPOLATION: f64 = 0.01;

/// Looks at those who waited in the line and asked as told, in order of their scores: whoever is called later than
/// somebody behind them was overtaken. Who was never called counts as called after the last "wait" they were told.
pub(super) fn overtaking(records: &[Record]) -> Row {
    let ahead_ms = server_ahead_ms(records);
    let (waited, late): (Vec<&Record>, Vec<&Record>) =
        records.iter().filter(|record| !record.direct).partition(|record| record.late_ms <= PUNCTUAL_MS);
    // Whose place was moved cannot be compared; that it was is for G4 and G5 to say.
    let (waited, moved): (Vec<&Record>, Vec<&Record>) = waited.into_iter().partition(|record| record.scores.len() < 2);
    let mut line: Vec<Waited> = waited.into_iter().filter_map(|record| Waited::of(record, ahead_ms)).collect();
    line.sort_unstable_by_key(|waited| waited.score);
    let called = line.iter().filter(|waited| waited.called_ms.is_some()).count();
    if called < 2 {
        return Row::not_checked("G3", OVERTAKING, "fewer than two were called from the line");
    }
    let mut first_call_behind = u64::MAX;
    let (mut overtaken, mut longest_ms) = (0_u64, 0_u64);
    for waited in line.iter().rev() {
        let turn = waited.called_ms.unwrap_or(waited.surely_waiting_ms);
        if first_call_behind < turn {
            overtaken += 1;
            longest_ms = longest_ms.max(turn - first_call_behind);
        }
        first_call_behind = first_call_behind.min(waited.called_ms.unwrap_or(u64::MAX));
    }
    let mut detail = vec![format!("{overtaken} overtaken, {called} called from the line")];
    if overtaken > 0 {
        detail.push(format!("by {longest_ms} ms at most"));
    }
    if !moved.is_empty() {
        detail.push(format!("{} left out, who have several scores", moved.len()));
    }
    if !late.is_empty() {
        detail.push(format!("{} left out, whom we let ask late", late.len()));
    }
    Row::new("G3", OVERTAKING, overtaken == 0, detail.join("; "))
}

struct Waited {
    score: u64,
    called_ms: Option<u64>,
    surely_waiting_ms: u64,
}

impl Waited {
    fn of(record: &Record, ahead_ms: i64) -> Option<Self> {
        let score = *record.scores.first()?;
        let called_ms = record.sessions.first().filter(|session| !session.approximate).map(|session| session.called_ms);
        if called_ms.is_none() && !record.sessions.is_empty() {
            return None;
        }
        let last_waiting_ms = record.last_waiting_ms.unwrap_or_default().saturating_add_signed(ahead_ms);
        let surely_waiting_ms = last_waiting_ms.saturating_sub(VIEW_AGE_MS);
        Some(Self { score, called_ms, surely_waiting_ms })
    }
}

/// Compares each position with the one told before on the same tab.
pub(super) fn positions(records: &[Record]) -> Row {
    if records.iter().all(|record| record.first_position.is_none()) {
        return Row::not_checked("G3", POSITIONS, "nobody was told a position");
    }
    let (near, from) = records.iter().map(|record| record.rise_near).max().unwrap_or_default();
    let far = records.iter().map(|record| record.rise_far).fold(0.0, f64::max);
    let detail =
        format!("largest rise {near} (from {from}) within the first {EXACT_POSITIONS}, {:.2} % behind", far * 100.0);
    Row::new("G3", POSITIONS, near == 0 && far <= INTERPOLATION, detail)
}
