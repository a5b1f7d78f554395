//! A Redis sorted set: members ordered by score, then by their bytes, with every rank in O(log n).

mod tree;

use std::{cmp::Ordering, collections::HashMap, ops::Range, sync::Arc};

use tree::Tree;

/// A member's bytes, shared between the index and the tree.
pub type Member = Arc<[u8]>;

/// Members with scores. Scores are never NaN.
#[derive(Default)]
pub struct SortedSet {
    scores: HashMap<Member, f64>,
    order: Tree,
}

impl SortedSet {
    /// How many members.
    pub fn len(&self) -> usize {
        self.scores.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// A member's score.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    /// Adds a member or moves it to another score.
    pub fn insert(&mut self, member: &[u8], score: f64) {
        match self.scores.get_key_value(member) {
            // Equal scores need no move. (Redis keeps the old one too, which tells 0 from -0.)
            #[expect(clippy::float_cmp, reason = "the same comparison that orders the set")]
            Some((_, &old)) if old == score => {}
            Some((shared, &old)) => {
                let shared = shared.clone();
                self.cut(old, member);
                self.scores.insert(shared.clone(), score);
                self.place(shared, score);
            }
            None => {
                let shared = Member::from(member);
                self.scores.insert(shared.clone(), score);
                self.place(shared, score);
            }
        }
    }

    /// Removes a member; whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let Some(score) = self.scores.remove(member) else { return false };
        self.cut(score, member);
        true
    }

    /// How many members come before this one.
    pub fn rank(&self, member: &[u8]) -> Option<usize> {
        self.score(member).map(|score| self.rank_of(score, member))
    }

    /// How many members score less than `score`.
    pub fn count_below(&self, score: f64) -> usize {
        self.order.partition_point(|other, _| other < score)
    }

    /// How many members score at most `score`.
    pub fn count_up_to(&self, score: f64) -> usize {
        self.order.partition_point(|other, _| other <= score)
    }

    /// The members with these ranks, in order.
    pub fn range(&self, ranks: &Range<usize>) -> impl Iterator<Item = (&Member, f64)> {
        self.order.iter_from(ranks.start).take(ranks.len())
    }

    /// Removes the members with these ranks and gives them back in order.
    pub fn remove_range(&mut self, ranks: &Range<usize>) -> Vec<(Member, f64)> {
        let removed = self.order.remove(ranks);
        for (member, _) in &removed {
            self.scores.remove(member);
        }
        removed
    }

    fn rank_of(&self, score: f64, member: &[u8]) -> usize {
        self.order.partition_point(|other_score, other| comes_before((other_score, other), (score, member)))
    }

    fn place(&mut self, member: Member, score: f64) {
        let rank = self.rank_of(score, &member);
        self.order.insert(rank, score, member);
    }

    fn cut(&mut self, score: f64, member: &[u8]) {
        let rank = self.rank_of(score, member);
        self.order.remove(&(rank..rank + 1));
    }
}

fn comes_before(a: (f64, &[u8]), b: (f64, &[u8])) -> bool {
    match a.0.partial_cmp(&b.0) {
        Some(Ordering::Equal) | None => a.1 < b.1,
        Some(order) => order.is_lt(),
    }
}

#[cfg(test)]
#[path = "sorted_set/tests.rs"]
mod tests;
