//! The seating plan: numbered seats in rows of forty, `A1` to `A40`, then `B1`; row `Z` is followed by `AA`.

use std::collections::HashMap;

/// Seats in one row.
const ROW_WIDTH: u32 = 40;
/// Most seats of one event: each is a key in the store, and the map is read as a whole.
pub const MOST_SEATS: u32 = 100_000;

/// The seats of an event, in the order of the map.
#[derive(Debug, Clone)]
pub struct SeatPlan {
    names: Vec<String>,
    by_name: HashMap<String, usize>,
}

impl SeatPlan {
    /// A plan of `count` seats.
    pub fn new(count: u32) -> Self {
        let names: Vec<String> = (0..count.min(MOST_SEATS)).map(name).collect();
        let by_name = names.iter().enumerate().map(|(index, name)| (name.clone(), index)).collect();
        Self { names, by_name }
    }

    /// Every seat, row by row.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Every row's letters and seats, from the stage back.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.names.chunks(ROW_WIDTH as usize).map(|row| {
            let first = row.first().map_or("", String::as_str);
            (first.trim_end_matches(|char: char| char.is_ascii_digit()), row)
        })
    }

    /// Where a seat is in the order of the map.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Whether there is such a seat.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }
}

fn name(index: u32) -> String {
    let mut row = index / ROW_WIDTH + 1;
    let mut letters = Vec::new();
    while row > 0 {
        row -= 1;
        letters.push(char::from(b'A' + u8::try_from(row % 26).unwrap_or(0)));
        row /= 26;
    }
    let row: String = letters.into_iter().rev().collect();
    format!("{row}{}", index % ROW_WIDTH + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_continue_with_two_letters_after_z() {
        let plan = SeatPlan::new(40 * 28);
        assert_eq!(plan.names()[0], "A1");
        assert_eq!(plan.names()[39], "A40");
        assert_eq!(plan.names()[40], "B1");
        assert_eq!(plan.names()[26 * 40], "AA1");
        assert_eq!(plan.names()[27 * 40 + 11], "AB12");
        assert!(plan.has("Z40") && !plan.has("A41") && !plan.has("a1"));
    }

    #[test]
    fn every_name_is_another() {
        let plan = SeatPlan::new(MOST_SEATS);
        assert_eq!(plan.by_name.len(), MOST_SEATS as usize);
    }
}
