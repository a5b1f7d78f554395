//! The box office against the payment sandbox at its worst: afterwards both have the same books.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use stanchion::{
    box_office::BoxOfficeConfig,
    clock::{SharedClock, SystemClock},
    pay_sandbox::{Behaviour, PaySandbox, Spread},
};

use crate::support::{
    box_office::{Place, Shop, ask, eventually, on_both_databases},
    fake_provider::Behaviour as Manners,
};

on_both_databases! {
    the_sandbox_and_the_ledger_agree_on_the_money
    a_charge_that_stalls_is_pending_until_it_is_settled_under_the_same_key
    every_fault_at_once_leaves_the_same_books_on_both_sides
    a_poisoned_task_is_parked_and_a_hundred_good_ones_are_not_held_up
    a_charge_that_was_made_is_not_given_up_however_often_its_call_failed
    a_refusal_after_an_unclear_call_does_not_forget_the_money
    a_task_whose_worker_died_is_done_by_another
}

fn quick() -> Behaviour {
    Behaviour { latency: Spread::of(Duration::from_millis(50)), ..Behaviour::default() }
}

const KEY: (&str, &str) = ("authorization", "Bearer the-key");

/// Seat number so many, from 0, in rows of forty.
fn seat(number: usize) -> String {
    format!("{}{}", ["A", "B", "C", "D", "E"][number / 40], number % 40 + 1)
}

async fn records(sandbox: &PaySandbox) -> Value {
    ask(&sandbox.router(), "GET", "/records", &[KEY], "".into()).await.expect(200).body
}

async fn behave(sandbox: &PaySandbox, behaviour: &Behaviour) {
    let body = serde_json::to_string(behaviour).unwrap();
    ask(&sandbox.router(), "PUT", "/behaviour", &[KEY], body.into()).await.expect(200);
}

/// G9, with a provider that was not written for this test: its books and ours agree.
async fn the_sandbox_and_the_ledger_agree_on_the_money(place: Place) {
    let (shop, sandbox) = Shop::with_sandbox(&place, Behaviour { decline_ratio: 0.3, ..quick() }, |_| {}).await;
    for number in 1..=40 {
        let hold = shop.held(json!({ "seats": [format!("A{number}")] })).await;
        shop.order(&format!("key-{number}"), &hold).await.expect(202);
    }

    let audit = shop
        .audit_when("every order is settled and told", |audit| {
            audit.orders.pending == 0 && audit.held == 0 && u64::try_from(audit.sold) == Ok(audit.orders.confirmed)
        })
        .await;

    assert_eq!(audit.orders.confirmed + audit.orders.refused, 40);
    assert!(audit.orders.confirmed > 10 && audit.orders.refused > 0, "{audit:?}");
    let summary = ask(&sandbox.router(), "GET", "/summary", &[], "".into()).await.expect(200).body;
    assert_eq!(summary["captures"], audit.captures);
    assert_eq!(summary["captured_minor"], audit.captures * 4500);
    assert_eq!(summary["declines"], audit.orders.refused);
}

/// D14, with a provider that was not written for this test: it charges, and neither answers nor says anything later.
async fn a_charge_that_stalls_is_pending_until_it_is_settled_under_the_same_key(place: Place) {
    let stalling = Behaviour { stall_ratio: 1.0, lose_ratio: 1.0, ..quick() };
    let (shop, sandbox) = Shop::with_sandbox(&place, stalling, |config| {
        config.provider.timeout = Duration::from_millis(200);
        config.provider.poll_after = Duration::from_millis(300);
    })
    .await;
    let hold = shop.held(json!({"seats": ["A1"]})).await;
    let placed = shop.order("key", &hold).await.expect(202);
    assert_eq!(placed.field("status"), "pending");
    let order = placed.field("order");

    eventually("the charge and a question stall", || async {
        (records(&sandbox).await["faults"]["calls_stalled"].as_u64() >= Some(3)).then_some(())
    })
    .await;
    assert_eq!(shop.status_of(&order).await, "pending");
    shop.hold_seats(&["A1"]).await.expect(409);
    let expected = json!({"charges": 1, "captures": 1, "captured_minor": 4500, "refunded_minor": 0});
    assert_eq!(records(&sandbox).await["orders"], json!({ order.clone(): expected }));

    behave(&sandbox, &Behaviour { lose_ratio: 1.0, ..quick() }).await;
    shop.becomes(&order, "confirmed").await;
    let audit = shop.audit_when("the seat is sold", |audit| audit.sold == 1).await;
    assert_eq!((audit.captures, audit.refunds, audit.refunds_owed), (1, 0, 0));
    let records = records(&sandbox).await;
    assert_eq!(records["orders"], json!({ order: expected }));
    assert_eq!((&records["faults"]["webhooks_lost"], &records["webhooks_unacknowledged"]), (&json!(1), &json!(0)));
}

/// G8, G9: everything goes wrong at once, and every order still ends, with one charge each.
async fn every_fault_at_once_leaves_the_same_books_on_both_sides(place: Place) {
    let dreadful = Behaviour {
        seed: 4,
        latency: "0ms..300ms".parse().unwrap(),
        decline_ratio: 0.2,
        error_ratio: 0.15,
        busy_ratio: 0.02,
        stall_ratio: 0.05,
        drop_ratio: 0.1,
        rate_limit: Some(400),
        lose_ratio: 0.2,
        late_ratio: 0.2,
        late_by: "100ms..1s".parse().unwrap(),
        reorder_ratio: 0.3,
        duplicate_ratio: 0.3,
        forge_ratio: 0.3,
    };
    let (shop, sandbox) = Shop::with_sandbox(&place, dreadful, |config| {
        config.event.seats = 200;
        config.event.general_admission = 0;
        config.provider.timeout = Duration::from_millis(300);
        config.provider.poll_after = Duration::from_millis(300);
        config.provider.most_per_second = Some(200.0);
    })
    .await;
    let mut orders = Vec::new();
    for number in 0..200 {
        let hold = shop.held(json!({ "seats": [seat(number)] })).await;
        orders.push(shop.order(&format!("key-{number}"), &hold).await.expect(202).field("order"));
    }

    let deadline = Instant::now() + Duration::from_secs(100);
    let (audit, records) = loop {
        let (audit, records) = (shop.audit().await, records(&sandbox).await);
        assert!(audit.g7_one_seat_one_buyer && audit.g8_conservation && audit.g9_money, "{audit:?}");
        let settled = audit.orders.pending == 0 && audit.held == 0 && audit.refunds_owed == 0;
        if settled && records["summary"]["pending"] == 0 && records["webhooks_unacknowledged"] == 0 {
            break (audit, records);
        }
        assert!(Instant::now() < deadline, "not settled: {audit:?} {records}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };

    let summary = &records["summary"];
    assert_eq!(summary["captures"], audit.orders.confirmed + audit.refunds, "{audit:?}");
    assert_eq!((&summary["captures"], &summary["refunds"]), (&json!(audit.captures), &json!(audit.refunds)));
    assert_eq!(
        summary["captured_minor"].as_u64().unwrap() - summary["refunded_minor"].as_u64().unwrap(),
        audit.orders.confirmed * 4500
    );
    assert_eq!(audit.orders.confirmed + audit.orders.refused + audit.orders.refunded, 200, "{audit:?}");
    assert_eq!(i64::try_from(audit.total).unwrap(), audit.free + audit.sold);
    for order in &orders {
        assert_eq!(records["orders"][order]["charges"], 1, "{order}");
    }
    assert!(audit.orders.refused > 10 && audit.orders.confirmed > 100, "{audit:?}");
    // Nothing of that was luck: everything that can go wrong did.
    assert_eq!(records["faults"]["forgeries_believed"], 0);
    for fault in [
        "calls_failed",
        "calls_busy",
        "calls_stalled",
        "calls_dropped",
        "webhooks_lost",
        "webhooks_late",
        "webhooks_reordered",
        "webhooks_duplicated",
        "webhooks_forged",
    ] {
        assert!(records["faults"][fault].as_u64().unwrap() > 0, "{fault}: {}", records["faults"]);
    }
}

/// Two box offices on one store share the provider's limit; calls beyond it queue and none fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_beyond_the_limit_queue_whichever_node_makes_them() {
    for place in [Place::embedded(), Place::on_redis()] {
        let clock: SharedClock = Arc::new(SystemClock);
        let engine = place.engine(&clock).await;
        let limit = |config: &mut BoxOfficeConfig| config.provider.most_per_second = Some(10.0);
        let shop = Shop::open_on(&place, engine.clone(), clock, limit).await;
        let node = shop.twin_on(engine).await;
        let start = Instant::now();
        for number in 1..=20 {
            let shop = if number % 2 == 0 { &shop } else { &node };
            let hold = shop.held(json!({ "seats": [format!("A{number}")] })).await;
            shop.order(&format!("key-{number}"), &hold).await.expect(202);
        }
        eventually("every order is charged", || async { (shop.provider.charges().len() == 20).then_some(()) }).await;
        // Each node may have had a turn ready; the other eighteen were a tenth of a second apart.
        assert!(start.elapsed() >= Duration::from_millis(1_700), "{:?}", start.elapsed());
        assert_eq!(shop.provider.requests(), 20, "each task was run once, by one node");
    }
}

#[tokio::test]
async fn too_many_requests_hold_up_every_call_for_as_long_as_the_provider_says() {
    let shop = Shop::open(&Place::embedded(), |_| {}).await;
    shop.provider.behave(Manners::Busy(2));
    let hold = shop.held(json!({"seats": ["A1"]})).await;
    let start = Instant::now();
    shop.order("first", &hold).await.expect(202);
    eventually("the provider is asked", || async { (shop.provider.requests() > 0).then_some(()) }).await;
    shop.provider.behave(Manners::Take);

    let (order, _) = shop.ordered(json!({"seats": ["A2"]})).await;

    assert!(start.elapsed() >= Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(shop.status_of(&order).await, "pending");
    eventually("both are charged", || async { (shop.provider.charges().len() == 2).then_some(()) }).await;
    assert_eq!(shop.provider.requests(), 3);
}

/// D17: parked after so many tries, its seats given back, while a hundred others go through.
async fn a_poisoned_task_is_parked_and_a_hundred_good_ones_are_not_held_up(place: Place) {
    let shop = Shop::open(&place, |config| {
        config.event.seats = 101;
        config.event.general_admission = 0;
        config.provider.charge_attempts = 3;
    })
    .await;
    shop.provider.behave(Manners::Fail(500));
    let hold = shop.held(json!({"seats": ["A1"]})).await;
    let poisoned = shop.order("poison", &hold).await.expect(202).field("order");
    shop.provider.poison(&poisoned);
    shop.provider.behave(Manners::Take);

    for number in 1..=100 {
        shop.ordered(json!({ "seats": [seat(number)] })).await;
    }

    shop.becomes(&poisoned, "expired").await;
    assert_eq!(shop.provider.charges().len(), 100);
    let audit = shop.audit_when("its seat is free", |audit| audit.free == 1).await;
    assert_eq!((audit.orders.pending, audit.orders.expired, audit.held), (100, 1, 100));
    shop.held(json!({"seats": ["A1"]})).await;
    // Three tries, and no fourth.
    assert_eq!(shop.provider.requests(), 100 + 3);
}

/// D17: what is given up is not forgotten when the provider took money for it after all.
async fn a_charge_that_was_made_is_not_given_up_however_often_its_call_failed(place: Place) {
    let shop = Shop::open(&place, |config| {
        config.provider.charge_attempts = 2;
        config.provider.poll_after = Duration::from_millis(300);
    })
    .await;
    shop.provider.behave(Manners::TakeAndFail);
    let (order, _) = shop.ordered(json!({"seats": ["A1"]})).await;
    eventually("it is tried twice", || async { (shop.provider.requests() == 2).then_some(()) }).await;
    eventually("it is no longer tried", || async { (shop.provider.questions() > 0).then_some(()) }).await;
    assert_eq!(shop.status_of(&order).await, "pending");

    // No webhook ever comes.
    shop.provider.decide(&order, "captured");
    shop.becomes(&order, "confirmed").await;
    assert_eq!(shop.provider.requests(), 2);
}

/// D14: the first call charged and broke off, the second is refused (a key that was withdrawn meanwhile, say).
async fn a_refusal_after_an_unclear_call_does_not_forget_the_money(place: Place) {
    let soon = |config: &mut BoxOfficeConfig| config.provider.poll_after = Duration::from_millis(300);
    let shop = Shop::open(&place, soon).await;
    shop.provider.behave(Manners::TakeAndFail);
    let (order, _) = shop.ordered(json!({"seats": ["A1"]})).await;
    shop.provider.behave(Manners::Fail(401));
    eventually("it is refused", || async { (shop.provider.requests() >= 2).then_some(()) }).await;
    eventually("it is asked for", || async { (shop.provider.questions() > 0).then_some(()) }).await;
    assert_eq!(shop.status_of(&order).await, "pending");
    shop.provider.decide(&order, "captured");
    shop.becomes(&order, "confirmed").await;
    assert_eq!(shop.audit_when("the seat is sold", |audit| audit.sold == 1).await.captures, 1);
}

/// D17: a process dies in the middle of a call; when its lease is over, another makes the call again, under the same key.
async fn a_task_whose_worker_died_is_done_by_another(place: Place) {
    // So long that the call is still under way when the process dies.
    let patient = |config: &mut BoxOfficeConfig| config.provider.timeout = Duration::from_mins(1);
    let (shop, clock) = Shop::open_by_hand_with(&place, patient).await;
    let shop = Arc::new(shop);
    shop.shutdown.stop();
    assert!(shop.shutdown.drain(Duration::from_secs(10)).await);
    shop.provider.behave(Manners::TakeAndStall);
    let doomed = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let seen = Arc::clone(&shop);
    let work = doomed.spawn(async move {
        let node = seen.twin().await;
        let hold = node.held(json!({"seats": ["A1"]})).await;
        let order = node.order("key", &hold).await.expect(202).field("order");
        (node, order)
    });
    let (node, order) = work.await.unwrap();
    eventually("the call is under way", || async { (shop.provider.requests() == 1).then_some(()) }).await;
    doomed.shutdown_background();
    shop.provider.behave(Manners::Take);

    let heir = shop.twin().await;
    // Not while the lease lasts.
    clock.advance(Duration::from_secs(100));
    eventually("the heir looks after the order", || async { (shop.provider.questions() > 0).then_some(()) }).await;
    assert_eq!(shop.provider.requests(), 1);
    clock.advance(Duration::from_secs(30));
    eventually("the call is made again", || async { (shop.provider.requests() == 2).then_some(()) }).await;
    shop.provider.decide(&order, "captured");
    clock.advance(Duration::from_secs(30));
    heir.becomes(&order, "confirmed").await;
    assert_eq!(shop.provider.charges().len(), 1);
    drop(node);
}
