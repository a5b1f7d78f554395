//! The rank sketch: a bounded number of (rank, score) points that answer any position.

use super::Score;

/// Scores at chosen ranks: exact for the first 1,000, then evenly spaced.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankSketch {}

#[expect(unused_variables, reason = "signatures agreed before the bodies")]
impl RankSketch {
    /// How many waiting visitors come before `score`: exact within the first 1,000, interpolated behind.
    pub fn ahead_of(&self, score: Score) -> u64 {
        unimplemented!()
    }
}
