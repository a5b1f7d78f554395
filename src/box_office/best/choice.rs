//! Candidates: blocks of neighbours that do not overlap, or single seats, the best first.

use crate::box_office::seats::SeatPlan;

/// Most seats among the candidates, unless a single buyer wants nearly as many.
const MOST_SEATS: usize = 100;
/// So many possible blocks or seats are compared; further back in the hall there is nothing better.
const ENOUGH: usize = 2_000;
/// How much less a row further back is worth, in halves of a seat further from the middle.
const ROW: usize = 3;
/// How much less a block is worth that leaves one free seat alone at its side, which hardly anybody wants.
const ORPHAN: usize = 4;

/// What one run of the script may choose from.
#[derive(Debug, PartialEq, Eq)]
pub struct Choice {
    /// Names, no seat twice.
    pub seats: Vec<String>,
    /// How many blocks they begin with.
    pub blocks: u32,
}

impl Choice {
    /// Blocks of `quantity` neighbours, the best first, but those before `start` last; `None` when there is none.
    pub fn together(plan: &SeatPlan, is_free: &[bool], quantity: u32, start: usize) -> Option<Self> {
        let length = quantity as usize;
        let mut in_use = vec![false; is_free.len()];
        let mut blocks = Vec::new();
        for first in best_first(plan, is_free, length) {
            let block = first..first + length;
            if !in_use[block.clone()].contains(&true) {
                in_use[block.clone()].fill(true);
                blocks.push(block);
            }
        }
        if blocks.is_empty() {
            return None;
        }
        let start = start % blocks.len();
        blocks.rotate_left(start);
        blocks.truncate((MOST_SEATS / length).max(1));
        let count = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
        let seats = blocks.into_iter().flatten().map(|at| plan.names()[at].clone()).collect();
        Some(Self { seats, blocks: count })
    }

    /// Single seats, the best first, but those before the `start`-th group of `quantity` last.
    pub fn apart(plan: &SeatPlan, is_free: &[bool], quantity: u32, start: usize) -> Self {
        let mut seats = best_first(plan, is_free, 1);
        let start = start.saturating_mul(quantity as usize) % seats.len().max(1);
        seats.rotate_left(start);
        seats.truncate(MOST_SEATS.max(2 * quantity as usize));
        Self { seats: seats.into_iter().map(|at| plan.names()[at].clone()).collect(), blocks: 0 }
    }
}

/// The first seats of all blocks of free neighbours, the best block first.
fn best_first(plan: &SeatPlan, is_free: &[bool], length: usize) -> Vec<usize> {
    let mut possible = Vec::new();
    let mut row_start = 0;
    for (row, (_, seats)) in plan.rows().enumerate() {
        let of_row = is_free.get(row_start..row_start + seats.len()).unwrap_or_default();
        let blocks = blocks_of(of_row, length);
        possible.extend(blocks.map(|(loss, first)| (row * ROW + loss, row_start + first)));
        row_start += seats.len();
        if possible.len() >= ENOUGH {
            break;
        }
    }
    possible.sort_unstable();
    possible.into_iter().map(|(_, first)| first).collect()
}

/// Every block of free neighbours in a row: how much less it is worth than the row's best, and its first seat.
fn blocks_of(is_free: &[bool], length: usize) -> impl Iterator<Item = (usize, usize)> {
    let is_there = |seat: Option<usize>| seat.and_then(|seat| is_free.get(seat)).copied().unwrap_or(false);
    is_free.windows(length).enumerate().filter(|(_, block)| !block.contains(&false)).map(move |(first, _)| {
        let next = first + length;
        let alone_left = is_there(first.checked_sub(1)) && !is_there(first.checked_sub(2));
        let alone_right = is_there(Some(next)) && !is_there(Some(next + 1));
        let orphans = usize::from(alone_left) + usize::from(alone_right);
        ((first + next).abs_diff(is_free.len()) + orphans * ORPHAN, first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hall(free: &[&str], seats: u32) -> (SeatPlan, Vec<bool>) {
        let plan = SeatPlan::new(seats);
        let is_free = plan.names().iter().map(|name| free.is_empty() || free.contains(&name.as_str())).collect();
        (plan, is_free)
    }

    #[test]
    fn the_best_are_together_in_the_middle_of_the_front() {
        let (plan, is_free) = hall(&[], 800);
        let choice = Choice::together(&plan, &is_free, 2, 0).unwrap();
        assert_eq!(choice.seats[..2], ["A20", "A21"]);
        assert_eq!((choice.blocks, choice.seats.len()), (50, 100));
        let mut once = choice.seats.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), 100, "a seat is a candidate once");
    }

    #[test]
    fn whoever_starts_later_begins_elsewhere() {
        let (plan, is_free) = hall(&[], 800);
        let at = |start| Choice::together(&plan, &is_free, 4, start).unwrap().seats[..4].to_vec();
        let firsts: std::collections::HashSet<Vec<String>> = (0..150).map(at).collect();
        assert_eq!(firsts.len(), 150);
        assert_eq!(at(0), ["A19", "A20", "A21", "A22"]);
    }

    #[test]
    fn a_block_lies_in_one_row() {
        let (plan, is_free) = hall(&["A39", "A40", "B1", "B2"], 80);
        assert_eq!(Choice::together(&plan, &is_free, 3, 0), None);
        let pairs = Choice::together(&plan, &is_free, 2, 0).unwrap();
        assert_eq!((pairs.seats.join(" "), pairs.blocks), ("A39 A40 B1 B2".to_owned(), 2));
    }

    #[test]
    fn no_seat_is_left_alone_where_there_is_another_way() {
        let (plan, is_free) = hall(&["A20", "A21", "A22", "A23", "A24"], 40);
        let pair = Choice::together(&plan, &is_free, 2, 0).unwrap();
        assert!(pair.seats[..2] == ["A20", "A21"] || pair.seats[..2] == ["A23", "A24"], "{:?}", pair.seats);
    }

    #[test]
    fn seats_apart_are_the_nearest_to_the_stage() {
        let (plan, is_free) = hall(&["A1", "A20", "B20", "B23"], 80);
        let choice = Choice::apart(&plan, &is_free, 3, 0);
        assert_eq!((choice.seats.join(" "), choice.blocks), ("A20 B20 B23 A1".to_owned(), 0));
    }
}
