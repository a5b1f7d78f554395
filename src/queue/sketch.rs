//! The rank sketch: a bounded number of (rank, score) points that answer any position.

use super::{Score, reply::Reply};
use crate::store::StoreError;

/// Scores at chosen ranks: exact for the first 1,000, then evenly spaced.
///
/// Behind the first 1,000, the points are visitors at even distances in the order of joining. While the line is
/// served from the front they stay the same people, whose ranks only fall, and so does every position between them.
/// It may still rise by a fraction of the distance when the distance itself changes (the line doubled or halved),
/// when visitors leave from the middle, and near the end of the line, which moves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankSketch {
    /// Those who were absent when their turn came. They are ahead of whoever came after them: they may come back.
    aside: Part,
    /// The rest of the line.
    rest: Part,
}

/// A stretch of the line.
#[derive(Debug, Clone, Default, PartialEq)]
struct Part {
    length: u64,
    /// The first scores, ascending.
    exact: Vec<u64>,
    /// Points behind those, ascending; the first is the last exact one.
    behind: Vec<Point>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    rank: u64,
    score: u64,
}

impl RankSketch {
    /// How many waiting visitors come before `score`: exact within the first 1,000, interpolated behind.
    pub fn ahead_of(&self, score: Score) -> u64 {
        self.aside.ahead_of(score.0) + self.rest.ahead_of(score.0)
    }

    /// How many points it holds.
    pub fn points(&self) -> usize {
        self.aside.exact.len() + self.aside.behind.len() + self.rest.exact.len() + self.rest.behind.len()
    }

    pub(super) fn read(reply: &mut Reply) -> Result<Self, StoreError> {
        Ok(Self { aside: Part::read(reply)?, rest: Part::read(reply)? })
    }
}

impl Part {
    fn read(reply: &mut Reply) -> Result<Self, StoreError> {
        let (length, exact) = (reply.number()?, reply.numbers()?);
        let (ranks, scores) = (reply.numbers()?, reply.numbers()?);
        Ok(Self::new(length, exact, ranks.into_iter().zip(scores)))
    }

    fn new(length: u64, exact: Vec<u64>, behind: impl Iterator<Item = (u64, u64)>) -> Self {
        let last_exact = exact.last().map(|&score| (exact.len() as u64 - 1, score));
        let behind: Vec<Point> =
            last_exact.into_iter().chain(behind).map(|(rank, score)| Point { rank, score }).collect();
        Self { length, exact, behind }
    }

    fn ahead_of(&self, score: u64) -> u64 {
        let next = self.behind.partition_point(|point| point.score < score);
        match (next.checked_sub(1).and_then(|before| self.behind.get(before)), self.behind.get(next)) {
            (Some(before), Some(after)) => between(*before, *after, score),
            (Some(_), None) => self.length,
            (None, _) => self.exact.partition_point(|&exact| exact < score) as u64,
        }
    }
}

/// The rank of `score`, above `before` and at most `after`: one step behind `before` at least, `after`'s own at its score.
fn between(before: Point, after: Point, score: u64) -> u64 {
    let (ranks, scores) = (after.rank.saturating_sub(before.rank), after.score - before.score);
    let part = u128::from(score - before.score) * u128::from(ranks);
    before.rank + u64::try_from(part.div_ceil(u128::from(scores))).unwrap_or(ranks)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Part, RankSketch, Score};

    /// Points as `snapshot-7.lua` chooses them.
    fn sketch(scores: &[u64], departed: usize) -> RankSketch {
        let exact = &scores[..scores.len().min(1000)];
        let mut step = 1;
        while scores.len().saturating_sub(1000) / step > 510 {
            step *= 2;
        }
        let first = (1000 + departed).next_multiple_of(step) - departed;
        let mut ranks: Vec<usize> = (first..scores.len().saturating_sub(1)).step_by(step).collect();
        if scores.len() > 1000 {
            ranks.push(scores.len() - 1);
        }
        let behind = ranks.into_iter().map(|rank| (rank as u64, scores[rank]));
        RankSketch { aside: Part::default(), rest: Part::new(scores.len() as u64, exact.to_vec(), behind) }
    }

    /// Arrivals whose gaps jump about by three orders of magnitude.
    fn arrivals() -> impl Strategy<Value = Vec<u64>> {
        let gaps = prop::collection::vec((1_u64..1000, 0_u32..3), 1..12_000);
        gaps.prop_map(|gaps| {
            let running = gaps.into_iter().scan(1_800_000_000_000_000, |at, (gap, scale)| {
                *at += gap * 10_u64.pow(scale);
                Some(*at)
            });
            running.collect()
        })
    }

    #[test]
    fn an_empty_line_has_nobody_ahead() {
        assert_eq!(RankSketch::default().ahead_of(Score(7)), 0);
    }

    #[test]
    fn a_line_of_a_few_is_answered_exactly_also_for_scores_that_left() {
        let sketch = sketch(&[10, 20, 30], 0);
        let ahead: Vec<u64> = [5, 10, 15, 20, 25, 30, 35].map(|score| sketch.ahead_of(Score(score))).to_vec();
        assert_eq!(ahead, [0, 0, 1, 1, 2, 2, 3]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn positions_are_exact_at_the_front_and_near_behind(scores in arrivals(), departed in 0_usize..5000) {
            let sketch = sketch(&scores, departed);
            prop_assert!(sketch.points() <= 1000 + 513);
            let step = (scores.len().saturating_sub(1000) as u64 / 510 + 1).next_power_of_two();
            let mut before = None;
            for (rank, score) in scores.iter().enumerate() {
                let (rank, ahead) = (rank as u64, sketch.ahead_of(Score(*score)));
                let off = if rank < 1000 { 0 } else { step - 1 };
                prop_assert!(ahead.abs_diff(rank) <= off, "rank {rank} answered as {ahead}");
                prop_assert!(before <= Some(ahead), "two visitors in the wrong order");
                before = Some(ahead);
            }
            prop_assert_eq!(sketch.ahead_of(Score(u64::MAX)), scores.len() as u64);
        }

        #[test]
        fn positions_never_rise_while_the_front_is_served(scores in arrivals(), served in 1_usize..300) {
            // The distance between the points must be the same in both: that change is the documented exception.
            prop_assume!(scores.len() > 1100 + served && (scores.len() - served - 1000) / 510 == (scores.len() - 1000) / 510);
            let (before, after) = (sketch(&scores, 0), sketch(&scores[served..], served));
            for score in &scores[(1000 + served).next_multiple_of(64)..] {
                prop_assert!(after.ahead_of(Score(*score)) <= before.ahead_of(Score(*score)));
            }
        }
    }
}
