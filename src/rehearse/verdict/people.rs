//! G4, G5 and G10: one person has one place, keeps it, and sees no token in an address.

use super::{PUNCTUAL_MS, Row};
use crate::rehearse::{
    personality::Personality,
    record::{Outcome, Record},
};

const ONE_PLACE: &str = "five tabs or endless reloads: one place, one session";
const LOST: &str = "no place and no session lost";
const PRIVATE: &str = "no token in any address";

/// The people whose behaviour tempts a waiting room into giving them two places.
pub(super) fn one_place(records: &[Record]) -> Row {
    let tempting: Vec<&Record> = records
        .iter()
        .filter(|record| matches!(record.personality, Personality::FiveTabs | Personality::F5))
        .filter(|record| record.had_place() && record.returns == 0)
        .collect();
    if tempting.is_empty() {
        return Row::not_checked("G4", ONE_PLACE, "nobody with five tabs or endless reloads had a place");
    }
    let twice = |count: fn(&Record) -> usize| tempting.iter().filter(|record| count(record) > 1).count();
    let places = twice(|record| record.subs.len());
    let scores = twice(|record| record.scores.len());
    let sessions = twice(|record| record.sessions.len());
    let detail = format!(
        "of {}, {places} are several visitors, {scores} have several scores, {sessions} several sessions",
        tempting.len()
    );
    Row::new("G4", ONE_PLACE, places + scores + sessions == 0, detail)
}

/// Whoever asked as told keeps what they have.
pub(super) fn lost(records: &[Record]) -> Row {
    if !records.iter().any(Record::had_place) {
        return Row::not_checked("G5", LOST, "nobody had a place");
    }
    let places =
        records.iter().filter(|record| record.outcome == Outcome::LostPlace && record.late_ms <= PUNCTUAL_MS).count();
    let late =
        records.iter().filter(|record| record.outcome == Outcome::LostPlace && record.late_ms > PUNCTUAL_MS).count();
    let sessions: u32 = records.iter().map(|record| record.cut_short).sum();
    // Whoever did not have to come back keeps the first score; a later one is a place further back.
    let moved = records
        .iter()
        .filter(|record| record.returns == 0 && record.scores.iter().max() > record.scores.first())
        .count();
    let mut detail = vec![format!("{places} places lost, {moved} moved back, {sessions} sessions cut short")];
    if late > 0 {
        detail.push(format!("{late} left out, whom we let ask late"));
    }
    Row::new("G5", LOST, places + moved == 0 && sessions == 0, detail.join("; "))
}

/// Addresses asked for, redirected to, and named in status documents.
pub(super) fn private(records: &[Record]) -> Row {
    if !records.iter().any(Record::had_place) {
        return Row::not_checked("G10", PRIVATE, "nobody had a token");
    }
    let seen: u32 = records.iter().map(|record| record.tokens_in_urls).sum();
    Row::new("G10", PRIVATE, seen == 0, format!("{seen} seen"))
}
