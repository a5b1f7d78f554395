//! Who sets the limits while a sale runs: once a virtual second, from what can be seen of the room.

use super::Scenario;

/// What can be seen of the room at a full second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gauges {
    /// Seconds since the opening.
    pub second: u64,
    /// In line.
    pub waiting: u32,
    /// At the front.
    pub called: u32,
    /// In the shop.
    pub inside: u32,
    /// Let in since the opening.
    pub admitted: u64,
}

/// What holds until the next second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Most visitors inside, called ones counted.
    pub capacity: u32,
    /// Most admissions per second.
    pub rate: f64,
}

/// Decides once a second.
pub type Helm<'a> = &'a mut dyn FnMut(&Gauges) -> Limits;

impl Limits {
    /// The limits a scenario starts with.
    pub fn of(scenario: &Scenario) -> Self {
        Self { capacity: scenario.capacity, rate: scenario.rate }
    }
}
