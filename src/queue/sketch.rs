//! The rank sketch: a bounded number of points that answer any position without asking the store.
//!
//! A point is a score together with a bound on how many wait before it. A visitor's position is read off the first point
//! at or behind their own score, so it is never too low. Nobody is ever put into the line before somebody else, so the
//! true number before a fixed score only falls; a point's bound only falls with it, and a point is only taken away where
//! that changes no answer. So no position ever rises. (When the store gives lost places back late, in the middle of the
//! line, the points follow the truth.)
//!
//! [`SketchKeeper`] keeps the points dense enough: exact for the first 1,000, within 0.1 % of the rank behind.

mod keeper;
mod merge;
mod plan;

pub use keeper::SketchKeeper;

use super::{QueueError, Score, reply::Reply};

/// Answers positions. Immutable: readers share it while the next one is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankSketch {
    /// Ascending by score and by rank.
    points: Vec<Point>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Point {
    score: u64,
    /// At least as many as wait before `score`.
    rank: u32,
    /// At least as many as wait between the point before (or the front of the line) and this one, that one counted.
    gap: u32,
}

/// What `sketch-5.lua` is asked: at each score how many come before, and who stands at these distances behind it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question(pub(super) Vec<Walk>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Walk {
    pub(super) from: u64,
    pub(super) distances: Vec<u32>,
}

/// The line, measured at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measures {
    /// When the store's present history began, and the room's epoch.
    history: (u64, u64),
    length: u32,
    /// The last one's score.
    last: u64,
    /// Scores, ascending, with how many come before each.
    found: Vec<(u64, u32)>,
}

impl RankSketch {
    /// How many wait before the waiting visitor with `score`, at most: exact within the first 1,000, and not above by
    /// more than 0.1 % behind. `None` behind the last point: they joined a moment ago.
    pub fn ahead_of(&self, score: Score) -> Option<u64> {
        let point = self.points.get(self.points.partition_point(|point| point.score < score.0))?;
        // Somebody before the point is counted in its rank themselves.
        Some(u64::from(if point.score == score.0 { point.rank } else { point.rank.saturating_sub(1) }))
    }

    /// How many points it holds.
    pub fn points(&self) -> usize {
        self.points.len()
    }

    /// At most `most` of the points, as how many wait before each and its score: the front, the last, and between them
    /// evenly spaced by the logarithm of the rank.
    pub fn outline(&self, most: usize) -> Vec<(u64, Score)> {
        let Some(last) = self.points.last() else { return Vec::new() };
        let steps = u32::try_from(most.saturating_sub(2)).unwrap_or(u32::MAX).max(1);
        let growth = f64::from(last.rank.max(1)).powf(1.0 / f64::from(steps));
        let (mut outline, mut wanted) = (Vec::with_capacity(most.min(self.points.len())), 0.0);
        for point in &self.points {
            if f64::from(point.rank) >= wanted && outline.len() + 1 < most {
                outline.push((u64::from(point.rank), Score(point.score)));
                wanted = f64::from(point.rank.max(1)) * growth;
            }
        }
        let end = (u64::from(last.rank), Score(last.score));
        if outline.last() != Some(&end) {
            outline.push(end);
        }
        outline
    }
}

impl Measures {
    pub(super) fn read(mut reply: Reply) -> Result<Self, QueueError> {
        let history = (reply.number()?, reply.number()?);
        let (length, last) = (reply.small()?, reply.numbers()?.first().copied().unwrap_or(0));
        let (scores, ranks) = (reply.numbers()?, reply.numbers()?);
        let ranks = ranks.into_iter().map(|rank| u32::try_from(rank).unwrap_or(u32::MAX));
        // Whatever is asked from the front of the line is asked from score 0, which is nobody's.
        let mut found: Vec<_> = scores.into_iter().zip(ranks).filter(|(score, _)| *score > 0).collect();
        found.sort_unstable();
        found.dedup_by_key(|(score, _)| *score);
        Ok(Self { history, length, last, found })
    }
}

/// How far off an answer for somebody with `rank` before them may be.
fn tolerance(rank: u32) -> u32 {
    rank / 1_000
}

/// How many may wait between two points, the first counted: whoever is between them is told one less than the second's
/// rank.
fn widest_gap(rank: u32) -> u32 {
    tolerance(rank) + 1
}

#[cfg(test)]
mod tests;
