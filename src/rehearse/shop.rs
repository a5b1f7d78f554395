//! The shop's answers, as much of them as a buyer reads.

use std::borrow::Cow;

use rand::{RngExt as _, seq::IndexedRandom as _};
use serde::Deserialize;

use super::personality::Dice;

/// `GET /events/{event}`.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    on_sale: bool,
    #[serde(borrow)]
    seats: Seats<'a>,
    general_admission: Count,
}

#[derive(Debug, Deserialize)]
struct Seats<'a> {
    #[serde(borrow)]
    map: Vec<Seat<'a>>,
}

#[derive(Debug, Deserialize)]
struct Seat<'a> {
    #[serde(borrow)]
    seat: Cow<'a, str>,
    #[serde(borrow)]
    state: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
struct Count {
    total: u32,
    free: u32,
}

/// `POST /events/{event}/holds`.
#[derive(Debug, Deserialize)]
pub(super) struct Hold {
    pub(super) hold: String,
    pub(super) expires_in_seconds: u64,
}

/// `POST /orders` and `GET /orders/{order}`.
#[derive(Debug, Deserialize)]
pub(super) struct OrderDocument {
    pub(super) order: String,
    pub(super) status: String,
    #[serde(default)]
    pub(super) seats: Vec<String>,
    pub(super) quantity: u32,
}

/// What a buyer makes of the map.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Wants these, as the body of a hold.
    Take(serde_json::Value),
    /// Nothing is free now, but something may come back.
    ComeBack,
    /// Nothing is left.
    NothingLeft,
}

impl Event<'_> {
    /// Chooses up to `wanted` of what is free, anywhere in the house: people do not all want row A.
    pub(super) fn choose(&self, wanted: u32, dice: &mut Dice) -> Choice {
        let free: Vec<&str> =
            self.seats.map.iter().filter(|seat| seat.state == "free").map(|seat| &*seat.seat).collect();
        let standing = self.general_admission.free;
        let sits = !free.is_empty() && (standing == 0 || dice.random_bool(0.7));
        if self.on_sale && sits {
            let seats: Vec<&str> = free.sample(dice, wanted as usize).copied().collect();
            return Choice::Take(serde_json::json!({ "seats": seats }));
        }
        if self.on_sale && standing > 0 {
            return Choice::Take(serde_json::json!({ "quantity": wanted.min(standing) }));
        }
        let some_held = self.seats.map.iter().any(|seat| seat.state == "held");
        // Held general admission does not show: as long as the event is on sale, some may come back.
        let may_return = self.on_sale && (some_held || self.general_admission.total > 0);
        if may_return { Choice::ComeBack } else { Choice::NothingLeft }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::personality::dice, *};

    fn choose(json: &serde_json::Value) -> Choice {
        let text = json.to_string();
        serde_json::from_str::<Event<'_>>(&text).unwrap().choose(2, &mut dice(1, 1))
    }

    fn event(states: &[&str], standing: Option<u32>) -> serde_json::Value {
        let map: Vec<_> = states
            .iter()
            .enumerate()
            .map(|(at, state)| serde_json::json!({ "seat": format!("A{at}"), "state": state }))
            .collect();
        serde_json::json!({
            "on_sale": true, "seats": { "total": map.len(), "free": 0, "map": map },
            "general_admission": { "total": standing.map_or(0, |_| 5), "free": standing.unwrap_or(0) },
        })
    }

    #[test]
    fn a_buyer_takes_free_seats_waits_for_held_ones_and_leaves_when_all_are_sold() {
        assert_eq!(
            choose(&event(&["sold", "free", "held"], None)),
            Choice::Take(serde_json::json!({ "seats": ["A1"] }))
        );
        assert_eq!(choose(&event(&["sold", "held"], None)), Choice::ComeBack);
        assert_eq!(choose(&event(&["sold", "sold"], None)), Choice::NothingLeft);
        let mut over = event(&["sold", "held"], None);
        over["on_sale"] = false.into();
        assert_eq!(choose(&over), Choice::NothingLeft);
        assert_eq!(choose(&event(&["sold"], Some(1))), Choice::Take(serde_json::json!({ "quantity": 1 })));
        assert_eq!(choose(&event(&["sold"], Some(0))), Choice::ComeBack);
    }
}
