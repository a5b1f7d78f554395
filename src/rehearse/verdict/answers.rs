//! Every answer was one the contract knows, and everybody came to an end.

use super::{Evidence, Row};
use crate::rehearse::record::{Outcome, Record};

const EXPECTED: &str = "no unexpected answer";
const FINISHED: &str = "everybody came to an end";

pub(super) fn expected(evidence: &Evidence) -> Row {
    let total: u64 = evidence.unexpected.values().sum();
    let mut parts = vec![format!("{total} unexpected")];
    parts.extend(evidence.unexpected.iter().take(6).map(|(what, count)| format!("{what} ×{count}")));
    if evidence.network_errors > 0 {
        parts.push(format!("{} connections failed", evidence.network_errors));
    }
    Row::new("", EXPECTED, total == 0, parts.join("; "))
}

pub(super) fn finished(records: &[Record]) -> Row {
    let count = |outcome| records.iter().filter(|record| record.outcome == outcome).count();
    let (unfinished, failed) = (count(Outcome::Unfinished), count(Outcome::Failed));
    let detail = format!("{} came, {unfinished} still there at the deadline, {failed} failed", records.len());
    Row::new("", FINISHED, unfinished + failed == 0 && !records.is_empty(), detail)
}
