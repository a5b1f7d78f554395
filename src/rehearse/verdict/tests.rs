//! A sound rehearsal holds in every row; each guarantee broken once is noticed, and nothing else is.

use std::collections::BTreeMap;

use super::*;
use crate::rehearse::{
    personality::Personality,
    record::{Order, Outcome, Session},
};

const OPEN: u64 = 1_000_000;

/// Ten people called 100 ms apart who stay for 250 ms and buy a seat each; the last finds it sold out. One of them has
/// five tabs.
fn sound() -> Evidence {
    let mut records: Vec<Record> = (0..10).map(buyer).collect();
    records[3].personality = Personality::FiveTabs;
    records.push(Record {
        outcome: Outcome::SoldOut,
        subs: vec!["late".to_owned()],
        scores: vec![99],
        joined_ms: Some(OPEN),
        first_position: Some(11),
        last_waiting_ms: Some(OPEN + 900),
        ..Record::default()
    });
    Evidence {
        records,
        limits: Known::Is(Limits { capacity: 3, rate: 10.0, burst: 1 }),
        audit_before: None,
        audit_after: Known::Is(Audit {
            total: 10,
            free: 0,
            held: 0,
            sold: 10,
            tickets_confirmed: 10,
            orders: [("confirmed".to_owned(), 10)].into(),
            g7_one_seat_one_buyer: true,
            g8_conservation: true,
            g9_money: true,
        }),
        redis: Some(Ok(Samples { taken: 100, most: 3, failed: 0 })),
        unexpected: BTreeMap::new(),
        network_errors: 0,
    }
}

fn buyer(number: u64) -> Record {
    let called_ms = OPEN + number * 100;
    Record {
        outcome: Outcome::Bought,
        took_seats: true,
        subs: vec![format!("v{number}")],
        scores: vec![number],
        joined_ms: Some(OPEN),
        first_position: Some(number + 1),
        last_position: Some(1),
        last_waiting_ms: Some(called_ms - 10),
        sessions: vec![Session {
            sub: format!("v{number}"),
            called_ms,
            admitted_ms: called_ms + 5,
            expires_ms: called_ms + 60_000,
            learned_ms: called_ms + 8,
            ended_ms: Some(called_ms + 250),
            approximate: false,
        }],
        orders: vec![Order {
            id: format!("o{number}"),
            status: "confirmed".to_owned(),
            seats: vec![format!("A{number}")],
            quantity: 1,
        }],
        ..Record::default()
    }
}

/// What is broken after `change`, as `guarantee what`.
fn broken(change: impl FnOnce(&mut Evidence)) -> Vec<String> {
    judged(Judgement::Broken, change)
}

fn judged(judgement: Judgement, change: impl FnOnce(&mut Evidence)) -> Vec<String> {
    let mut evidence = sound();
    change(&mut evidence);
    judge(&evidence)
        .into_iter()
        .filter(|row| row.judgement == judgement)
        .map(|row| format!("{} {}", row.guarantee, row.what))
        .collect()
}

fn audit(evidence: &mut Evidence) -> &mut Audit {
    match &mut evidence.audit_after {
        Known::Is(audit) => audit,
        _ => unreachable!("the sound evidence has an audit"),
    }
}

#[test]
fn a_sound_rehearsal_holds_in_every_row() {
    let rows = judge(&sound());
    let other: Vec<&Row> = rows.iter().filter(|row| row.judgement != Judgement::Held).collect();
    assert!(other.is_empty(), "{other:#?}");
    assert_eq!(rows.len(), 15);
}

#[test]
fn one_too_many_inside_is_noticed_in_the_tokens() {
    let stays_on = |evidence: &mut Evidence| evidence.records[0].sessions[0].ended_ms = Some(OPEN + 304);
    assert_eq!(broken(stays_on), ["G1 called and inside, by session tokens"]);
    // The slot counts from the call, and a session without an end lasts as long as its token.
    let never_leaves = |evidence: &mut Evidence| evidence.records[0].sessions[0].ended_ms = None;
    assert_eq!(broken(never_leaves), ["G1 called and inside, by session tokens"]);
}

#[test]
fn a_server_clock_ahead_of_ours_makes_nobody_overlap() {
    let hour_ahead = |evidence: &mut Evidence| {
        for session in evidence.records.iter_mut().flat_map(|record| &mut record.sessions) {
            session.learned_ms -= 900_000;
            session.ended_ms = session.ended_ms.map(|ended| ended - 900_000);
        }
    };
    assert_eq!(broken(hour_ahead), Vec::<String>::new());
}

#[test]
fn one_too_many_inside_is_noticed_in_redis() {
    let over = |evidence: &mut Evidence| evidence.redis = Some(Ok(Samples { taken: 9, most: 4, failed: 0 }));
    assert_eq!(broken(over), ["G1 called and inside, by Redis"]);
    let away = |evidence: &mut Evidence| evidence.redis = Some(Err("not there".to_owned()));
    assert_eq!(broken(away), Vec::<String>::new());
    assert_eq!(judged(Judgement::Unknown, away), ["G1 called and inside, by Redis"]);
}

#[test]
fn an_admission_too_early_is_noticed() {
    let hasty = |evidence: &mut Evidence| evidence.records[5].sessions[0].admitted_ms -= 3;
    assert_eq!(broken(hasty), ["G2 admissions in every window"]);
    let rounding = |evidence: &mut Evidence| evidence.records[5].sessions[0].admitted_ms -= 1;
    assert_eq!(broken(rounding), Vec::<String>::new());
}

#[test]
fn overtaking_is_noticed_also_of_those_never_called() {
    let swapped = |evidence: &mut Evidence| {
        evidence.records[4].scores = vec![5];
        evidence.records[5].scores = vec![4];
    };
    assert_eq!(broken(swapped), ["G3 called in order of arrival"]);
    let forgotten = |evidence: &mut Evidence| {
        evidence.records[10].scores = vec![0];
        evidence.records[10].last_waiting_ms = Some(OPEN + 5_000);
    };
    assert_eq!(broken(forgotten), ["G3 called in order of arrival"]);
    let our_fault = |evidence: &mut Evidence| {
        swapped(evidence);
        evidence.records[4].late_ms = 2_001;
    };
    assert_eq!(broken(our_fault), Vec::<String>::new());
}

#[test]
fn a_rising_position_is_noticed() {
    let near = |evidence: &mut Evidence| evidence.records[9].note_position(Some(9), 10);
    assert_eq!(broken(near), ["G3 positions never rise"]);
    let far = |evidence: &mut Evidence| evidence.records[9].note_position(Some(5_000), 5_051);
    assert_eq!(broken(far), ["G3 positions never rise"]);
    let interpolated = |evidence: &mut Evidence| evidence.records[9].note_position(Some(5_000), 5_050);
    assert_eq!(broken(interpolated), Vec::<String>::new());
}

#[test]
fn a_second_place_is_noticed() {
    let place = |evidence: &mut Evidence| evidence.records[3].subs.push("again".to_owned());
    assert_eq!(broken(place), ["G4 five tabs or endless reloads: one place, one session"]);
}

#[test]
fn a_lost_place_and_a_session_cut_short_are_noticed() {
    let place = |evidence: &mut Evidence| evidence.records[10].outcome = Outcome::LostPlace;
    assert_eq!(broken(place), ["G5 no place and no session lost"]);
    let moved_back = |evidence: &mut Evidence| evidence.records[10].scores.push(100);
    assert_eq!(broken(moved_back), ["G5 no place and no session lost"]);
    let session = |evidence: &mut Evidence| evidence.records[2].cut_short = 1;
    assert_eq!(broken(session), ["G5 no place and no session lost"]);
}

#[test]
fn a_seat_sold_twice_is_noticed_by_its_buyers() {
    let twice = |evidence: &mut Evidence| evidence.records[1].orders[0].seats = vec!["A0".to_owned()];
    assert_eq!(broken(twice), ["G7 each seat sold once, by the buyers' orders"]);
}

#[test]
fn the_ledger_is_held_to_its_word_and_to_the_buyers() {
    let two_buyers = |evidence: &mut Evidence| audit(evidence).g7_one_seat_one_buyer = false;
    assert_eq!(broken(two_buyers), ["G7 every confirmed ticket is in the ledger, once"]);
    let lost = |evidence: &mut Evidence| audit(evidence).tickets_confirmed = 9;
    let lost_and_unsold = ["G7 every confirmed ticket is in the ledger, once", " turned away only when all is sold"];
    assert_eq!(broken(lost), lost_and_unsold);
    let sold_before = |evidence: &mut Evidence| {
        evidence.audit_before = Some(Audit { tickets_confirmed: 1, ..audit(evidence).clone() });
    };
    assert_eq!(broken(sold_before), ["G7 every confirmed ticket is in the ledger, once"]);
}

#[test]
fn a_false_sold_out_a_leak_and_missing_money_are_noticed() {
    let unsold = |evidence: &mut Evidence| (audit(evidence).total, audit(evidence).free) = (11, 1);
    assert_eq!(broken(unsold), [" turned away only when all is sold"]);
    let leak = |evidence: &mut Evidence| audit(evidence).held = 1;
    assert_eq!(broken(leak), ["G8 free, held and sold add up"]);
    let money = |evidence: &mut Evidence| audit(evidence).g9_money = false;
    assert_eq!(broken(money), ["G9 captures are confirmed orders and refunds"]);
    let pending = |evidence: &mut Evidence| _ = audit(evidence).orders.insert("pending".to_owned(), 1);
    assert_eq!(broken(pending), ["G9 captures are confirmed orders and refunds"]);
}

#[test]
fn tokens_in_addresses_odd_answers_and_people_left_over_are_noticed() {
    let token = |evidence: &mut Evidence| evidence.records[0].tokens_in_urls = 1;
    assert_eq!(broken(token), ["G10 no token in any address"]);
    let odd = |evidence: &mut Evidence| _ = evidence.unexpected.insert("hold: status 500".to_owned(), 1);
    assert_eq!(broken(odd), [" no unexpected answer"]);
    let still_there = |evidence: &mut Evidence| evidence.records[10].outcome = Outcome::Unfinished;
    assert!(broken(still_there).contains(&" everybody came to an end".to_owned()));
}

#[test]
fn without_the_private_listener_its_rows_are_unknown_with_the_cure_or_left_out() {
    let mut evidence = sound();
    evidence.limits = Known::Missing { why: "connection refused".to_owned(), cure: "say where" };
    evidence.audit_after = Known::Missing { why: "connection refused".to_owned(), cure: "say where" };
    let rows = judge(&evidence);
    assert!(rows.iter().all(|row| row.judgement != Judgement::Broken));
    let unknown: Vec<&Row> = rows.iter().filter(|row| row.judgement == Judgement::Unknown).collect();
    assert_eq!(unknown.len(), 7);
    assert!(unknown.iter().all(|row| row.detail == "connection refused; say where"), "{unknown:#?}");

    (evidence.limits, evidence.audit_after) = (Known::LeftOut, Known::LeftOut);
    assert!(judge(&evidence).iter().all(|row| matches!(row.judgement, Judgement::Held | Judgement::NotChecked)));
}

#[test]
fn a_sale_that_was_over_before_it_began_is_said_first() {
    let over = |evidence: &mut Evidence| {
        for record in &mut evidence.records {
            *record = Record { outcome: Outcome::SoldOut, ..Record::default() };
        }
    };
    let mut evidence = sound();
    over(&mut evidence);
    let first = &judge(&evidence)[0];
    assert_eq!(first.judgement, Judgement::Unknown);
    assert!(first.detail.contains("start the demo anew"), "{first:?}");
}

#[test]
fn nobody_at_all_is_not_a_success() {
    let nobody = |evidence: &mut Evidence| evidence.records.clear();
    assert!(broken(nobody).contains(&" everybody came to an end".to_owned()));
}
