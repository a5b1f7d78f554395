//! Keeps the points.

use std::sync::Arc;

use super::{
    Measures, Point, Question, RankSketch,
    merge::{self, Row},
    plan, widest_gap,
};

/// Most points, 20 bytes each. About 9,000 do for a million waiting.
const MOST_POINTS: usize = 12_288;
/// Points kept back for the end of the line, which nobody can be told of otherwise.
const RESERVE: usize = 1_024;

/// Makes a [`RankSketch`] from what it asks the store, and says what to ask next. Knows no clock and no store.
///
/// A look begins with [`SketchKeeper::begin`]; each answer goes to [`SketchKeeper::take`], which asks on until the points
/// are as close as they should be. The caller may stop at any time and publish [`SketchKeeper::sketch`]: it is only
/// coarser.
#[derive(Debug, Default)]
pub struct SketchKeeper {
    sketch: Arc<RankSketch>,
    lows: Vec<u32>,
    history: (u64, u64),
    is_fresh: bool,
    /// The score up to which vague points were measured last.
    cursor: u64,
    /// The last point's rank when it became that.
    end_rank: u32,
}

impl SketchKeeper {
    /// The sketch so far, unless it is of another history or epoch than the room is seen in.
    pub fn sketch_in(&self, since_ms: u64, epoch: u64) -> Arc<RankSketch> {
        if self.history == (since_ms, epoch) { self.sketch() } else { Arc::default() }
    }

    /// The sketch so far.
    pub fn sketch(&self) -> Arc<RankSketch> {
        Arc::clone(&self.sketch)
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// What to ask at the beginning of a look.
    pub fn begin(&mut self) -> Question {
        self.is_fresh = true;
        plan::anchors(&self.sketch.points)
    }

    /// Takes an answer in; says what else to ask, if anything. Another history or epoch than before starts from nothing.
    pub fn take(&mut self, measures: &Measures) -> Option<Question> {
        if measures.history != self.history {
            *self = Self { history: measures.history, is_fresh: true, ..Self::default() };
        }
        let points = &self.sketch.points;
        let with_new = points.len() + measures.found.len() <= MOST_POINTS;
        let mut rows = merge::merge(points, &self.lows, measures, self.is_fresh, with_new);
        self.is_fresh = false;
        if measures.length == 0 {
            rows.clear();
        } else if rows.len() < MOST_POINTS && self.is_end_due(&rows, measures) {
            rows.push(merge::end(&rows, measures));
            self.end_rank = measures.length - 1;
        }
        self.lows = rows.iter().map(|row| row.low).collect();
        let points: Vec<Point> = rows.into_iter().map(Point::from).collect();
        let question = plan::refine(&points, &self.lows, points.len() < MOST_POINTS - RESERVE, &mut self.cursor);
        self.sketch = Arc::new(RankSketch { points });
        question
    }

    /// Whoever is behind the last point goes by what they were told at joining. That is no longer close when many are
    /// there, or when the line moved.
    fn is_end_due(&self, rows: &[Row], measures: &Measures) -> bool {
        let Some(last) = rows.last() else { return true };
        // Else nobody can say how many are between.
        if !last.is_exact {
            return false;
        }
        let behind = (measures.length - 1).saturating_sub(last.point.rank);
        let (moved, widest) = (self.end_rank.saturating_sub(last.point.rank), widest_gap(measures.length));
        measures.last > last.point.score && (behind > widest / 2 || moved > widest / 4)
    }
}
