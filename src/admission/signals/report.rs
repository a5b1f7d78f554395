//! What a node tells the others, and what all of them together say.

use std::fmt::{self, Write as _};

use super::histogram::Histogram;

/// What one node measured of late.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Over how long, milliseconds.
    pub window_ms: u64,
    /// How long requests waited for the head of an answer that is no error. Those still waiting count with what they have
    /// waited at least, once that is a second or so.
    pub waits: Histogram,
    /// Answers that were errors (5xx), and requests the shop did not answer.
    pub failed: u64,
    /// Requests under way.
    pub in_flight: u64,
    /// How many visitors the shop takes altogether, and how long ago it said so in milliseconds.
    pub room_for: Option<(u64, u64)>,
}

/// First word of the text: nodes of different versions may share a room, and do not understand each other.
const FORM: &str = "1";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORM} {} {} {} ", self.window_ms, self.failed, self.in_flight)?;
        match self.room_for {
            Some((visitors, age_ms)) => write!(f, "{visitors}@{age_ms}")?,
            None => f.write_char('-')?,
        }
        self.waits.filled().try_for_each(|(bucket, count)| write!(f, " {bucket}:{count}"))
    }
}

impl Report {
    /// Reads a node's text. `None` when it is of another form.
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        if words.next() != Some(FORM) {
            return None;
        }
        let mut number = || words.next()?.parse::<u64>().ok();
        let (window_ms, failed, in_flight) = (number()?, number()?, number()?);
        let room_for = match words.next()? {
            "-" => None,
            said => {
                let (visitors, age_ms) = said.split_once('@')?;
                Some((visitors.parse().ok()?, age_ms.parse().ok()?))
            }
        };
        let mut waits = Histogram::default();
        for word in words {
            let (bucket, count) = word.split_once(':')?;
            waits.add(bucket.parse().ok()?, count.parse().ok()?);
        }
        Some(Self { window_ms, waits, failed, in_flight, room_for })
    }

    /// All nodes as one: counts add up, the longest window counts, and the shop's latest word. `None` of no node.
    pub fn merge(reports: impl IntoIterator<Item = Self>) -> Option<Self> {
        reports.into_iter().reduce(|mut all, one| {
            all.window_ms = all.window_ms.max(one.window_ms);
            all.waits.merge(&one.waits);
            all.failed = all.failed.saturating_add(one.failed);
            all.in_flight = all.in_flight.saturating_add(one.in_flight);
            all.room_for = [all.room_for, one.room_for].into_iter().flatten().min_by_key(|(_, age_ms)| *age_ms);
            all
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(buckets: &[usize], room_for: Option<(u64, u64)>) -> Report {
        let mut waits = Histogram::default();
        for bucket in buckets {
            waits.add(*bucket, 3);
        }
        Report { window_ms: 2_000, waits, failed: 1, in_flight: 4, room_for }
    }

    #[test]
    fn a_text_says_what_was_measured() {
        for report in [Report::default(), report(&[0, 71], Some((40, 250)))] {
            assert_eq!(Report::read(&report.to_string()), Some(report));
        }
        for nonsense in ["", "1", "2 0 0 0 -", "1 0 0 0", "1 0 0 0 x", "1 0 0 0 - 5", "1 0 0 0 - 5:x", "1 -1 0 0 -"] {
            assert_eq!(Report::read(nonsense), None, "{nonsense:?}");
        }
        let full = report(&(0..super::super::BUCKETS).collect::<Vec<_>>(), Some((u64::MAX, 10_000)));
        assert!(full.to_string().len() < 600);
    }

    #[test]
    fn several_nodes_add_up_and_the_latest_word_counts() {
        assert_eq!(Report::merge([]), None);
        let all =
            Report::merge([report(&[1], None), report(&[1, 2], Some((9, 80))), report(&[], Some((7, 20)))]).unwrap();
        assert_eq!((all.failed, all.in_flight, all.waits.count(), all.room_for), (3, 12, 9, Some((7, 20))));
    }
}
