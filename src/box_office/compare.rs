//! Where the store and the ledger disagree, found by looking at both.

use std::collections::{HashMap, HashSet};

use super::{
    ids::{HoldId, OrderId},
    inventory::{Counts, Survey},
    ledger::Order,
    views::OrderStatus,
};

/// One thing that the store has wrong. Things move while they are read, so it is one only when found twice in a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Finding {
    /// Sold to an order that the ledger has not confirmed with it; without a seat, general admission.
    SoldToNobody { order: String, seat: Option<String> },
    /// A seat held under a name that holds no such seat.
    HeldByNobody { holder: String, seat: String },
    /// Held for an order that ended without a sale.
    HeldForEnded { hold: HoldId },
    /// An order in force does not have its tickets.
    Missing { order: OrderId },
    /// The counters of general admission are off by this much: what they should be less what they are.
    Counters(Counts),
}

/// Compares a survey with the ledger as it was read after it. `ended` are orders that the survey still has as being paid.
pub fn compare(
    names: &[String],
    tickets_total: u32,
    survey: &Survey,
    orders: &[Order],
    ended: &[Order],
) -> HashSet<Finding> {
    let holds: HashSet<&str> = orders.iter().map(|order| order.hold.as_str()).collect();
    let confirmed = orders.iter().filter(|order| order.status == OrderStatus::Confirmed);
    let confirmed: HashMap<&str, &Order> = confirmed.map(|order| (order.id.as_str(), order)).collect();
    let holders: HashMap<&str, &str> = names
        .iter()
        .zip(&survey.seats)
        .filter_map(|(seat, holder)| Some((seat.as_str(), holder.as_deref()?)))
        .collect();

    let mut findings = HashSet::new();
    for (&seat, &holder) in &holders {
        if holder.starts_with("o_") {
            let is_theirs = |order: &&Order| order.tickets.seats.iter().any(|theirs| theirs == seat);
            if !confirmed.get(holder).is_some_and(is_theirs) {
                findings.insert(Finding::SoldToNobody { order: holder.to_owned(), seat: Some(seat.to_owned()) });
            }
        } else if !holds.contains(holder) {
            let hold = survey.holds.get(holder).filter(|hold| !hold.is_gone);
            if !hold.is_some_and(|hold| hold.tickets.seats.iter().any(|held| held == seat)) {
                findings.insert(Finding::HeldByNobody { holder: holder.to_owned(), seat: seat.to_owned() });
            }
        }
    }
    for (order, tickets) in &survey.sold {
        let fits = |of: &&Order| of.tickets.seats.is_empty() && of.tickets.quantity == *tickets;
        if !confirmed.get(order.as_str()).is_some_and(fits) {
            findings.insert(Finding::SoldToNobody { order: order.clone(), seat: None });
        }
    }
    // The inventory is still to be told of the others.
    for order in orders.iter().filter(|order| order.is_told && !has_its_tickets(order, survey, &holders)) {
        findings.insert(Finding::Missing { order: order.id.clone() });
    }
    findings.extend(ended.iter().map(|order| Finding::HeldForEnded { hold: order.hold.clone() }));
    findings.extend(off_by(survey, tickets_total).map(Finding::Counters));
    findings
}

fn has_its_tickets(order: &Order, survey: &Survey, holders: &HashMap<&str, &str>) -> bool {
    let seats = &order.tickets.seats;
    let all_seats_are_of = |name: &str| seats.iter().all(|seat| holders.get(seat.as_str()) == Some(&name));
    if order.status == OrderStatus::Confirmed {
        return if seats.is_empty() {
            survey.sold.get(order.id.as_str()) == Some(&order.tickets.quantity)
        } else {
            all_seats_are_of(order.id.as_str())
        };
    }
    let hold = survey.holds.get(order.hold.as_str());
    hold.is_some_and(|hold| !hold.is_gone && hold.tickets == order.tickets) && all_seats_are_of(order.hold.as_str())
}

/// What the counters should be: every live hold without seats is held, every sale is sold, the rest is free.
pub fn right_counters(survey: &Survey, total: u32) -> Counts {
    let held = survey.holds.values().filter(|hold| !hold.is_gone && hold.tickets.seats.is_empty());
    let held = held.map(|hold| i64::from(hold.tickets.quantity)).sum();
    let sold = survey.sold.values().copied().map(i64::from).sum();
    Counts { free: i64::from(total) - held - sold, held, sold }
}

/// `None` when they are right, or when things moved and nobody can say.
fn off_by(survey: &Survey, total: u32) -> Option<Counts> {
    let (seen, right) = (survey.counters?.counts, right_counters(survey, total));
    (seen != right).then(|| right.minus(seen))
}
