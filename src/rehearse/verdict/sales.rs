//! G7, G8 and G9: what was sold, by the buyers' own orders and by the box office's account.

use std::collections::HashMap;

use super::{Evidence, Row};
use crate::rehearse::record::{Order, Outcome, Record};

const SOMETHING_TO_BUY: &str = "a sale from its beginning";
const SEATS: &str = "each seat sold once, by the buyers' orders";
const LEDGER: &str = "every confirmed ticket is in the ledger, once";
const SOLD_OUT: &str = "turned away only when all is sold";
const CONSERVATION: &str = "free, held and sold add up";
const MONEY: &str = "captures are confirmed orders and refunds";

/// A sale that was over before anybody could take a seat checks next to nothing, however well the rest holds.
pub(super) fn nothing_to_buy(records: &[Record]) -> Option<Row> {
    let has = |outcome| records.iter().any(|record| record.outcome == outcome);
    let somebody_took_seats = records.iter().any(|record| record.took_seats);
    if somebody_took_seats || !has(Outcome::SoldOut) {
        return None;
    }
    let why = "it was sold out before anybody could buy, so hardly anything was checked; start the demo anew, or put \
               an event with tickets on sale";
    Some(Row::unknown("", SOMETHING_TO_BUY, why.to_owned()))
}

fn confirmed(records: &[Record]) -> impl Iterator<Item = &Order> {
    records.iter().flat_map(|record| &record.orders).filter(|order| order.status == "confirmed")
}

/// How many tickets the buyers were told are theirs.
fn confirmed_tickets(records: &[Record]) -> u64 {
    confirmed(records).map(|order| u64::from(order.quantity)).sum()
}

/// No two confirmed orders name the same seat, and none names one twice.
pub(super) fn own_seats(records: &[Record]) -> Row {
    let mut buyers: HashMap<&str, u32> = HashMap::new();
    for seat in confirmed(records).flat_map(|order| &order.seats) {
        *buyers.entry(seat).or_default() += 1;
    }
    let tickets = confirmed_tickets(records);
    if tickets == 0 {
        return Row::not_checked("G7", SEATS, "nobody bought anything");
    }
    let twice = buyers.values().filter(|count| **count > 1).count();
    let orders = confirmed(records).count();
    let detail = format!("{tickets} tickets in {orders} orders, {} seats, {twice} sold twice", buyers.len());
    Row::new("G7", SEATS, twice == 0, detail)
}

/// The ledger's own judgement, and its count against the buyers'.
pub(super) fn ledger(evidence: &Evidence) -> Row {
    let audit = match evidence.audit_after.or_row("G7", LEDGER) {
        Ok(audit) => audit,
        Err(row) => return row,
    };
    let before = evidence.audit_before.as_ref().map_or(0, |audit| audit.tickets_confirmed);
    let (sold, ours) = (audit.tickets_confirmed.saturating_sub(before), confirmed_tickets(&evidence.records));
    let mut detail = vec![format!("{sold} sold, {ours} of them to us, of {}", audit.total)];
    if ours > sold {
        detail.push(format!("{} confirmed tickets are lost", ours - sold));
    }
    if !audit.g7_one_seat_one_buyer {
        detail.push("the audit finds a seat with two buyers".to_owned());
    }
    let held = audit.g7_one_seat_one_buyer && ours <= sold && audit.tickets_confirmed <= audit.total;
    Row::new("G7", LEDGER, held, detail.join("; "))
}

/// Whoever was told that nothing is left was told the truth.
pub(super) fn sold_out(evidence: &Evidence) -> Row {
    let turned_away = evidence.records.iter().filter(|record| record.outcome == Outcome::SoldOut).count();
    if turned_away == 0 {
        return Row::not_checked("", SOLD_OUT, "nobody was turned away: bring more users to sell out");
    }
    let audit = match evidence.audit_after.or_row("", SOLD_OUT) {
        Ok(audit) => audit,
        Err(row) => return row,
    };
    let detail = format!("{turned_away} turned away, {} of {} sold", audit.tickets_confirmed, audit.total);
    Row::new("", SOLD_OUT, audit.tickets_confirmed == audit.total, detail)
}

pub(super) fn conservation(evidence: &Evidence) -> Row {
    let audit = match evidence.audit_after.or_row("G8", CONSERVATION) {
        Ok(audit) => audit,
        Err(row) => return row,
    };
    let parts = [audit.free, audit.held, audit.sold];
    let adds_up = parts.iter().all(|part| *part >= 0) && u64::try_from(parts.iter().sum::<i64>()) == Ok(audit.total);
    let detail = format!("{} free + {} held + {} sold of {}", audit.free, audit.held, audit.sold, audit.total);
    Row::new("G8", CONSERVATION, adds_up && audit.g8_conservation, detail)
}

pub(super) fn money(evidence: &Evidence) -> Row {
    let audit = match evidence.audit_after.or_row("G9", MONEY) {
        Ok(audit) => audit,
        Err(row) => return row,
    };
    let pending = audit.orders.get("pending").copied().unwrap_or_default();
    let counts: Vec<String> = audit.orders.iter().map(|(status, count)| format!("{count} {status}")).collect();
    Row::new("G9", MONEY, audit.g9_money && pending == 0, format!("orders: {}", counts.join(", ")))
}
