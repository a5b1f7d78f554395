//! What the box office shows: the JSON of the API, and what its pages render.

use serde::{Deserialize, Serialize};

/// One event with everything a buyer may see.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct EventView {
    /// Identifier, part of paths.
    pub id: String,
    /// Title.
    pub name: String,
    /// Whether anything can be bought now.
    pub on_sale: bool,
    /// ISO 4217 code.
    pub currency: String,
    /// Price of one ticket in the currency's minor unit (cents).
    pub price_minor: u64,
    /// Most tickets in one hold.
    pub per_hold_limit: u32,
    /// Numbered seats.
    pub seats: SeatsView,
    /// Tickets without a seat.
    pub general_admission: CountView,
}

/// The numbered seats of an event.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct SeatsView {
    /// How many there are.
    pub total: u32,
    /// How many can be held now.
    pub free: u32,
    /// Each of them, row by row.
    pub map: Vec<SeatView>,
}

/// One seat.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct SeatView {
    /// Row letters and number, such as `A1` or `AB12`.
    pub seat: String,
    /// What can be done with it.
    pub state: SeatState,
}

/// Whether a seat can be had.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum SeatState {
    /// Can be held.
    Free,
    /// Held by a buyer until a deadline.
    Held,
    /// Sold.
    Sold,
}

/// A pool of equal tickets.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
pub struct CountView {
    /// How many there are.
    pub total: u32,
    /// How many can be held now.
    pub free: u32,
}

/// A hold: seats or a count of general admission, for one buyer, until a deadline.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct HoldView {
    /// `h_` and 128 random bits: knowing it is the right to act on it.
    pub hold: String,
    /// The event's identifier.
    pub event: String,
    /// The seats; empty for general admission.
    pub seats: Vec<String>,
    /// How many tickets.
    pub quantity: u32,
    /// What they cost in the currency's minor unit.
    pub amount_minor: u64,
    /// RFC 3339.
    pub expires_at: String,
    /// Seconds from now.
    pub expires_in_seconds: u64,
}

/// An order.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct OrderView {
    /// `o_` and 128 random bits: knowing it is the right to see it.
    pub order: String,
    /// The event's identifier.
    pub event: String,
    /// How far it is.
    pub status: OrderStatus,
    /// The seats; empty for general admission.
    pub seats: Vec<String>,
    /// How many tickets.
    pub quantity: u32,
    /// What they cost in the currency's minor unit.
    pub amount_minor: u64,
    /// ISO 4217 code.
    pub currency: String,
}

/// How far an order is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum OrderStatus {
    /// The payment runs.
    Pending,
    /// Paid: the tickets are the buyer's.
    Confirmed,
    /// The payment was refused; the seats went back.
    Refused,
    /// Not paid in time; the seats went back.
    Expired,
    /// Paid too late for the seats, and paid back.
    Refunded,
}
