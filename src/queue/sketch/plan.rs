//! What to ask next.

use std::{cmp::Reverse, collections::BTreeMap};

use super::{Point, Question, Walk, tolerance, widest_gap};

/// Look-ups of one run of the script, about: a third of a millisecond at a million waiting.
const LOOK_UPS: usize = 64;
/// At most so many points divide a gap at once, so that the widest gaps get narrower together.
const PARTS: u32 = 17;
/// The first answers are told from points this much apart, in parts of the rank.
const COARSE: u32 = 5;

/// Questions collected by score.
#[derive(Debug, Default)]
struct Asked {
    walks: BTreeMap<u64, Vec<u32>>,
    look_ups: usize,
}

impl Asked {
    fn measure(&mut self, score: u64) {
        self.walk(score, Vec::new());
    }

    fn walk(&mut self, from: u64, distances: Vec<u32>) {
        let known = self.walks.len();
        let look_ups = distances.len();
        self.walks.entry(from).or_default().extend(distances);
        self.look_ups += look_ups + self.walks.len() - known;
    }

    fn question(self) -> Question {
        Question(self.walks.into_iter().map(|(from, distances)| Walk { from, distances }).collect())
    }
}

/// The points to measure first at each look: what left the line shows between two of them.
pub(super) fn anchors(points: &[Point]) -> Question {
    let mut asked = Asked::default();
    let mut last = (0, 0);
    for (at, point) in points.iter().enumerate() {
        let is_near = point.rank < 1_000 && at - last.0 >= 32;
        if is_near || point.rank > last.1 + (last.1 / COARSE).max(200) || at + 1 == points.len() {
            asked.measure(point.score);
            last = (at, point.rank);
        }
    }
    asked.question()
}

/// What is not as it should be.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Flaw {
    /// So many are between two points, whose ranks are known, that one more has to go in between: the widest first.
    Wide { excess: Reverse<u64>, at: usize },
    /// Neighbours whose ranks are too vague: one after the other, so that each has its turn.
    Vague { is_past: bool, first: usize, last: usize },
}

/// Asks for what is worst: first of all the first thousand are to be exact. `None` when all is well. `cursor` is the
/// score up to which vague ranks were measured last.
pub(super) fn refine(points: &[Point], lows: &[u32], may_grow: bool, cursor: &mut u64) -> Option<Question> {
    let mut flaws = flaws(points, lows, may_grow, *cursor);
    flaws.sort_unstable();
    let mut asked = Asked::default();
    for (is_behind, flaw) in flaws {
        let left = LOOK_UPS.saturating_sub(asked.look_ups);
        if left == 0 {
            break;
        }
        let before = |at: usize| at.checked_sub(1).and_then(|before| points.get(before).zip(lows.get(before)));
        match flaw {
            Flaw::Wide { at, .. } => {
                let (from, low) = before(at).map_or((0, 0), |(before, low)| (before.score, *low));
                if let Some(point) = points.get(at) {
                    asked.walk(from, divide(low, point.rank.saturating_sub(low), left));
                    // Of the gap there is only an estimate if everybody left whom the walk looks for.
                    asked.measure(point.score);
                }
            }
            Flaw::Vague { first, last, .. } => {
                // Together with the neighbour, so that it is known how many are between each two.
                let vague = points.get(first..=last).unwrap_or_default().iter().take(left);
                for point in before(first).map(|(before, _)| before).into_iter().chain(vague) {
                    asked.measure(point.score);
                    // The front comes first anyway, and must not start the others' round anew.
                    *cursor = if is_behind { point.score } else { *cursor };
                }
            }
        }
    }
    (asked.look_ups > 0).then(|| asked.question())
}

/// With whether they are behind the first thousand. A stretch of neighbours counts as a whole once one of them is too
/// vague: whoever left may have been anywhere there.
fn flaws(points: &[Point], lows: &[u32], may_grow: bool, cursor: u64) -> Vec<(bool, Flaw)> {
    let mut flaws = Vec::new();
    let (mut low_before, mut is_vague_before) = (0, false);
    let (mut first, mut is_flawed) = (None, false);
    // Whose turn it is: the first point behind the cursor.
    let turn = points.partition_point(|point| point.score <= cursor);
    for (at, (point, &low)) in points.iter().zip(lows).enumerate() {
        let is_behind = low_before >= 1_000;
        let (vague, wide) = (point.rank.saturating_sub(low), point.rank.saturating_sub(low_before));
        let most = widest_gap(low_before);
        let is_vague = vague > 0;
        if wide > most && !is_vague && !is_vague_before {
            if may_grow {
                let excess = Reverse(u64::from(wide) * 1_000 / u64::from(most));
                flaws.push((is_behind, Flaw::Wide { excess, at }));
            }
        } else if is_vague || is_vague_before {
            first = first.or(Some(at));
            is_flawed |= vague > tolerance(low) || wide > most;
        }
        if !is_vague || at + 1 == points.len() {
            if let Some(first) = first.take().filter(|_| is_flawed) {
                if first < turn && turn <= at {
                    flaws.push((is_behind, Flaw::Vague { is_past: true, first, last: turn - 1 }));
                }
                let first = if turn <= at { first.max(turn) } else { first };
                flaws.push((is_behind, Flaw::Vague { is_past: at < turn, first, last: at }));
            }
            is_flawed = false;
        }
        (low_before, is_vague_before) = (low, is_vague);
    }
    flaws
}

/// Distances from `rank` that divide the `gap` behind it.
fn divide(rank: u32, gap: u32, most: usize) -> Vec<u32> {
    // A little closer than need be: gaps grow in proportion while the line is served.
    let fine = |rank: u32| (widest_gap(rank) * 3 / 4).max(1);
    let is_vast = gap > rank / 2 + 64;
    let even = gap.div_ceil(gap.div_ceil(fine(rank)).clamp(1, PARTS)).max(1);
    let mut distances = Vec::new();
    let mut distance = 0_u32;
    while distances.len() < most {
        let here = rank.saturating_add(distance);
        distance = distance.saturating_add(if is_vast { (here / COARSE).max(16) } else { even });
        if distance >= gap {
            break;
        }
        distances.push(distance);
    }
    distances
}
