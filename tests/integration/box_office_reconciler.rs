//! What went wrong behind the office's back: found, mended, told.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use stanchion::clock::{Clock as _, ManualClock, SystemClock};
use tokio::task::JoinSet;

use crate::support::box_office::{Place, Shop, event, eventually, on_both_databases, seat_at};

on_both_databases! {
    a_late_capture_without_a_webhook_is_paid_back_once
    a_late_capture_without_a_webhook_gets_the_seat_if_it_is_free
    nobody_asks_for_ever_about_an_order_that_ended
}

fn seat() -> Value {
    json!({"seats": ["A1"]})
}

/// The payment is refused, the seat goes to another, then the provider takes the money and nobody is told.
async fn a_late_capture_without_a_webhook_is_paid_back_once(place: Place) {
    let (shop, clock) = Shop::open_by_hand(&place).await;
    let twin = shop.twin_at(&place).await;
    let (order, charge) = shop.ordered(seat()).await;
    shop.webhook(&event("evt_1", "charge.declined", &order, &charge)).await.expect(204);
    shop.audit_when("the seat is free", |audit| audit.free == 90).await;
    let (other, other_charge) = shop.ordered(seat()).await;
    shop.webhook(&event("evt_2", "charge.captured", &other, &other_charge)).await.expect(204);

    shop.provider.decide(&order, "captured");
    clock.advance(Duration::from_secs(11));

    shop.becomes(&order, "refunded").await;
    // The webhook comes after all, to both nodes.
    for node in [&shop, &twin] {
        node.webhook(&event("evt_3", "charge.captured", &order, &charge)).await.expect(204);
    }
    assert_eq!(shop.provider.refunds().len(), 1);
    let audit = shop.audit_when("all is told", |audit| audit.sold == 1).await;
    assert_eq!((audit.captures, audit.refunds, audit.refunds_owed), (2, 1, 0));
    assert_eq!(shop.status_of(&other).await, "confirmed");
}

async fn a_late_capture_without_a_webhook_gets_the_seat_if_it_is_free(place: Place) {
    let (shop, clock) = Shop::open_by_hand(&place).await;
    let (order, _) = shop.ordered(seat()).await;
    clock.advance(Duration::from_mins(16));
    shop.becomes(&order, "expired").await;

    shop.provider.decide(&order, "captured");
    clock.advance(Duration::from_secs(11));

    shop.becomes(&order, "confirmed").await;
    shop.audit_when("the seat is sold", |audit| audit.sold == 1).await;
    assert_eq!(shop.provider.refunds().len(), 0);
}

/// Five answers are enough.
async fn nobody_asks_for_ever_about_an_order_that_ended(place: Place) {
    let (shop, clock) = Shop::open_by_hand(&place).await;
    let (order, charge) = shop.ordered(seat()).await;
    shop.provider.decide(&order, "declined");
    shop.webhook(&event("evt_1", "charge.declined", &order, &charge)).await.expect(204);
    for asked in 1..=5 {
        assert_eq!(shop.provider.questions(), asked - 1);
        clock.advance(Duration::from_hours(2));
        eventually("it is asked", || async { (shop.provider.questions() == asked).then_some(()) }).await;
        // The answer is noted before the next is due.
        let noted = format!("{asked} answers are noted");
        eventually(&noted, || async { (shop.audit().await.late_questions_left == 5 - asked as u64).then_some(()) })
            .await;
    }
    clock.advance(Duration::from_hours(1000));
    // A later order is asked about in the same rounds, and the ended one no more.
    let (later, _) = shop.ordered(json!({"seats": ["A2"]})).await;
    shop.provider.decide(&later, "captured");
    clock.advance(Duration::from_secs(11));
    shop.becomes(&later, "confirmed").await;
    assert_eq!(shop.provider.questions(), 6);
}

/// Orders and pays.
async fn bought(shop: &Shop, wish: Value) -> String {
    let (order, charge) = shop.ordered(wish).await;
    let mut paid = event(&format!("evt_{order}"), "charge.captured", &order, &charge);
    paid["amount_minor"] = shop.get_order(&order).await.body["amount_minor"].clone();
    shop.webhook(&paid).await.expect(204);
    order
}

/// Whatever somebody does to the store: one run finds it and mends it, and tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_store_has_wrong_is_mended_in_one_run() {
    let place = Place::on_redis();
    let shop = Shop::open(&place, |_| {}).await;
    let sold = bought(&shop, seat()).await;
    let tickets = bought(&shop, json!({"quantity": 2})).await;
    let hold = shop.held(json!({"seats": ["A2", "A3"]})).await;
    shop.order("two", &hold).await.expect(202);
    let waiting = shop.held(json!({"quantity": 3})).await;
    shop.order("three", &waiting).await.expect(202);
    let thinking = shop.held(json!({"seats": ["B9"]})).await;
    shop.held(json!({"quantity": 1})).await;
    let before = shop.audit_when("all is told", |audit| audit.sold == 3).await;
    assert!(shop.office.reconcile().await.unwrap());
    assert_eq!(shop.audit().await.reconciler.found, [""; 0]);

    let redis = place.redis();
    let key = |name: &str| format!("stanchion-box:{{demo}}:{name}");
    let nobody = format!("o_{:032}", 1);
    for edit in [
        // A sold seat and a pending one are lost, another is sold to nobody.
        format!("DEL {}", key("seat:A1")),
        format!("DEL {}", key("seat:A2")),
        format!("SET {} {nobody}", key("seat:A3")),
        format!("SET {} {nobody}", key("seat:B1")),
        // Held for ever, by nobody or by a hold of another seat.
        format!("SET {} h_{:032}", key("seat:B2"), 2),
        format!("SET {} {thinking}", key("seat:B3")),
        // General admission: sold to nobody, lost, a hold's record lost, and the counters off by two.
        format!("HSET {} {nobody} 4", key("sold")),
        format!("HDEL {} {tickets}", key("sold")),
        format!("HDEL {} {waiting}", key("holds")),
        format!("HINCRBY {} free 2", key("tickets")),
    ] {
        let answer = redis.command(&edit);
        assert!(!answer.starts_with('-'), "{edit}: {answer}");
    }

    assert!(shop.office.reconcile().await.unwrap());

    let audit = shop.audit().await;
    assert_eq!((audit.free, audit.held, audit.sold), (before.free, before.held, before.sold), "{audit:?}");
    assert!(audit.g8_conservation, "{audit:?}");
    let told = &audit.reconciler;
    assert_eq!((told.freed, told.put_back, told.counters_corrected, told.runs), (5, 4, 1, 2), "{told:?}");
    assert_eq!((told.found.len(), told.unresolved.len()), (10, 0), "{told:?}");
    assert!(told.found.contains(&"seat B1 is sold to no confirmed order".to_owned()), "{told:?}");
    assert!(!format!("{told:?}").contains(&sold), "an order's name is a right");
    for (seat, holder) in [("A1", &sold), ("A2", &hold), ("A3", &hold), ("B9", &thinking)] {
        let has = redis.command(&format!("GET {}", key(&format!("seat:{seat}"))));
        assert!(has.contains(holder.as_str()), "{seat}: {has}");
    }
    shop.held(json!({"seats": ["B1", "B2", "B3"]})).await;
    assert!(shop.office.reconcile().await.unwrap());
    assert_eq!(shop.audit().await.reconciler.found, [""; 0]);
}

/// What an order that ended still holds, after whoever should have told the inventory died, is given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_ended_order_holds_is_freed() {
    let place = Place::on_redis();
    let shop = Shop::open(&place, |_| {}).await;
    let hold = shop.held(seat()).await;
    let order = shop.order("one", &hold).await.expect(202).field("order");
    let charge = shop.provider.charge_of(&order).await;
    shop.webhook(&event("evt_1", "charge.declined", &order, &charge)).await.expect(204);
    shop.audit_when("the seat is free", |audit| audit.free == 90).await;
    let redis = place.redis();
    redis.command(&format!("SET stanchion-box:{{demo}}:seat:A1 {hold}"));
    redis.command(&format!("HSET stanchion-box:{{demo}}:holds {hold} paying:9999999999999:1:A1"));
    assert_eq!(shop.audit().await.held, 1);

    // Not before the ledger notes that the inventory was told.
    eventually("it is freed", || async {
        assert!(shop.office.reconcile().await.unwrap());
        (shop.audit().await.reconciler.freed == 1).then_some(())
    })
    .await;
    let audit = shop.audit().await;
    assert_eq!((audit.free, audit.held), (90, 0), "{audit:?}");
}

/// While buyers come, change their minds, pay and fail, nothing is wrong, and nothing is found to be.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_busy_sale_is_left_alone() {
    let place = Place::on_redis();
    let shop = Arc::new(Shop::open(&place, |config| config.event.general_admission = 200).await);
    let closed = Arc::new(AtomicBool::new(false));
    let mut buyers = JoinSet::new();
    for buyer in 0..8_usize {
        let (shop, closed) = (Arc::clone(&shop), Arc::clone(&closed));
        buyers.spawn(async move {
            for round in 0..10 {
                let wish = match (buyer + round) % 2 {
                    0 => json!({"seats": [seat_at(buyer * 10 + round)]}),
                    _ => json!({"quantity": 1}),
                };
                if round % 3 == 0 {
                    let hold = shop.held(wish).await;
                    shop.cancel(&hold).await.expect(204);
                    continue;
                }
                let (order, charge) = shop.ordered(wish).await;
                let kind = if round % 3 == 1 { "charge.captured" } else { "charge.declined" };
                shop.webhook(&event(&format!("evt_{order}"), kind, &order, &charge)).await.expect(204);
            }
            closed.store(true, Ordering::SeqCst);
        });
    }
    let mut runs = 0;
    while !closed.load(Ordering::SeqCst) || runs < 3 {
        assert!(shop.office.reconcile().await.unwrap());
        runs += 1;
    }
    buyers.join_all().await;
    assert!(shop.office.reconcile().await.unwrap());
    let audit = shop.audit_when("all is told", |audit| audit.held == 0 && audit.sold == 24).await;
    let told = audit.reconciler;
    assert_eq!((told.freed, told.put_back, told.counters_corrected), (0, 0, 0), "{told:?}");
    assert_eq!(told.runs, runs + 1);
}

/// One node runs; when it is killed, another does, as soon as its lease is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_compares_and_another_takes_over() {
    let place = Place::embedded();
    let clock = ManualClock::at(SystemClock.unix_micros());
    let shared: stanchion::clock::SharedClock = Arc::new(clock.clone());
    let engine = place.engine(&shared).await;
    let first = Shop::open_on(&place, Arc::clone(&engine), shared, |_| {}).await;
    let second = first.twin_on(engine).await;

    for _ in 0..10 {
        assert!(first.office.reconcile().await.unwrap());
        assert!(!second.office.reconcile().await.unwrap(), "one at a time");
        clock.advance(Duration::from_secs(40));
    }
    let told = [first.audit().await.reconciler, second.audit().await.reconciler];
    assert_eq!((told[0].has_lease, told[1].has_lease), (true, false));
    assert_ne!(told[0].node, told[1].node);
    assert!(told.iter().all(|view| view.lease_holder.as_ref() == Some(&told[0].node)), "{told:?}");
    // The first is heard of no more.
    assert!(!second.office.reconcile().await.unwrap());
    clock.advance(Duration::from_secs(36));
    assert!(second.office.reconcile().await.unwrap());
    assert!(!first.office.reconcile().await.unwrap(), "it is not dead after all, but its lease is over");
    assert_eq!((first.audit().await.reconciler.runs, second.audit().await.reconciler.runs), (10, 1));
    // One that ends in good order leaves the lease at once.
    second.shutdown.stop();
    eventually("the lease is free", || async { first.office.reconcile().await.unwrap().then_some(()) }).await;
}

/// Redis comes back with an old picture, in which sold seats are held or free: they are not sold a second time, and the
/// old holds do not come to life again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_was_rolled_back_sells_nothing_twice() {
    let mut place = Place::on_redis();
    let shop = Shop::open(&place, |_| {}).await;
    let held = shop.held(json!({"seats": ["A1", "A2"]})).await;
    let given_back = shop.held(json!({"quantity": 3})).await;
    place.redis().command("SAVE");
    // After the picture: one hold becomes a sale, one is given back, two more seats are sold, one is ordered.
    for (number, hold) in [held.clone(), shop.held(json!({"seats": ["A3", "A4"]})).await].into_iter().enumerate() {
        let order = shop.order(&format!("key-{number}"), &hold).await.expect(202).field("order");
        let charge = shop.provider.charge_of(&order).await;
        let mut paid = event(&format!("evt_{number}"), "charge.captured", &order, &charge);
        paid["amount_minor"] = json!(9000);
        shop.webhook(&paid).await.expect(204);
    }
    shop.audit_when("both are sold", |audit| audit.sold == 4).await;
    shop.cancel(&given_back).await.expect(204);
    let pending = shop.held(json!({"seats": ["A5"]})).await;
    shop.order("pending", &pending).await.expect(202);

    place.redis_mut().restart();

    let alive = async || (shop.get("/events/demo").await.status == 200).then_some(());
    eventually("the shop has its store again", alive).await;
    // Whoever gets a sold seat from the old picture is refused by the ledger, and nothing is charged.
    let reply = shop.hold_seats(&["A3"]).await;
    if reply.status == 201 {
        assert_eq!(shop.order("stranger", &reply.field("hold")).await.expect(409).problem(), "taken");
    }
    // The old hold of what is sold is over, whatever the picture says.
    let again = shop.order("again", &held).await;
    assert!([409, 410].contains(&again.status.as_u16()), "{}", again.text);
    shop.cancel(&held).await;
    assert!(shop.office.reconcile().await.unwrap());
    let seats = shop.hold_seats(&["A1", "A2", "A3", "A4", "A5"]).await.expect(409);
    assert_eq!(seats.body["taken"], json!(["A1", "A2", "A3", "A4", "A5"]));
    // The three that were given back are held in the picture until that hold lapses or is given back once more.
    shop.cancel(&given_back).await.expect(204);
    let audit = shop.audit_when("all agrees", |audit| audit.held == 1).await;
    assert_eq!((audit.free, audit.sold, audit.captures), (85, 4, 2));
    assert!(audit.reconciler.unresolved.is_empty(), "{:?}", audit.reconciler);
}
