//! Judges the guarantees. Every judgement is a pure function of what was recorded.

mod answers;
mod capacity;
mod order;
mod people;
mod rate;
mod sales;

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    audit::{Audit, Limits},
    record::{Record, Session},
    redis_probe::Samples,
};

pub(super) use capacity::peak_inside;

/// What became of a guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// It was checked and held.
    Held,
    /// It was broken.
    Broken,
    /// It should have been checked and could not be.
    Unknown,
    /// There was nothing to check, or the plan left it out.
    NotChecked,
}

/// One line of the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The guarantee, such as `G1`; empty for what has no number.
    pub guarantee: &'static str,
    /// What was checked.
    pub what: &'static str,
    /// What became of it.
    pub judgement: Judgement,
    /// The figures behind it.
    pub detail: String,
}

impl Row {
    pub(super) fn new(guarantee: &'static str, what: &'static str, held: bool, detail: String) -> Self {
        let judgement = if held { Judgement::Held } else { Judgement::Broken };
        Self { guarantee, what, judgement, detail }
    }

    fn unknown(guarantee: &'static str, what: &'static str, why_and_cure: String) -> Self {
        Self { guarantee, what, judgement: Judgement::Unknown, detail: why_and_cure }
    }

    fn not_checked(guarantee: &'static str, what: &'static str, why: &str) -> Self {
        Self { guarantee, what, judgement: Judgement::NotChecked, detail: why.to_owned() }
    }
}

/// Somebody who asked later than this after the time they were told may rightly have been passed over, or have lost the
/// place: that is our fault, not the server's.
const PUNCTUAL_MS: u64 = 2_000;

/// Knowledge from outside the visitors' own records.
#[derive(Debug, Clone)]
pub enum Known<T> {
    /// This is how it is.
    Is(T),
    /// The plan does not want it looked at.
    LeftOut,
    /// It could not be had.
    Missing {
        /// For this reason.
        why: String,
        /// What to do about it.
        cure: &'static str,
    },
}

impl<T> Known<T> {
    /// The value, or the row that says why there is none.
    fn or_row(&self, guarantee: &'static str, what: &'static str) -> Result<&T, Row> {
        match self {
            Self::Is(value) => Ok(value),
            Self::LeftOut => Err(Row::not_checked(guarantee, what, "left out (--no-audit)")),
            Self::Missing { why, cure } => Err(Row::unknown(guarantee, what, format!("{why}; {cure}"))),
        }
    }
}

/// Everything a verdict rests on.
#[derive(Debug)]
pub struct Evidence {
    /// One per person.
    pub records: Vec<Record>,
    /// What the room keeps to.
    pub limits: Known<Limits>,
    /// The box office's account before anybody came.
    pub audit_before: Option<Audit>,
    /// The box office's account after everybody left.
    pub audit_after: Known<Audit>,
    /// What Redis showed; `None` when it was not asked.
    pub redis: Option<Result<Samples, String>>,
    /// What must not happen, and how often it did.
    pub unexpected: BTreeMap<String, u64>,
    /// Connections that failed and were mostly tried again.
    pub network_errors: u64,
}

/// The least by which the server's clock can be ahead of ours: nobody learns of an admission before it happens. Behind
/// counts as negative.
fn server_ahead_ms(records: &[Record]) -> i64 {
    let ahead = |session: &Session| session.admitted_ms.checked_signed_diff(session.learned_ms);
    records.iter().flat_map(|record| &record.sessions).filter_map(ahead).max().unwrap_or_default()
}

/// The verdict, guarantee by guarantee.
pub fn judge(evidence: &Evidence) -> Vec<Row> {
    let mut rows = Vec::from_iter(sales::nothing_to_buy(&evidence.records));
    rows.push(capacity::by_tokens(evidence));
    rows.extend(capacity::by_redis(evidence));
    rows.extend([
        rate::admissions(evidence),
        order::overtaking(&evidence.records),
        order::positions(&evidence.records),
        people::one_place(&evidence.records),
        people::lost(&evidence.records),
        sales::own_seats(&evidence.records),
        sales::ledger(evidence),
        sales::sold_out(evidence),
        sales::conservation(evidence),
        sales::money(evidence),
        people::private(&evidence.records),
        answers::expected(evidence),
        answers::finished(&evidence.records),
    ]);
    rows
}

#[cfg(test)]
mod tests;
