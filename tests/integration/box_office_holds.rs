//! Holds: one seat one holder, all or nothing, back exactly once. Embedded, and on Redis and `PostgreSQL`.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use stanchion::box_office::BoxOfficeConfig;
use tokio::{sync::Barrier, task::JoinSet};

use crate::support::box_office::{Place, Shop, event, eventually};

/// Runs a story with nothing installed, and on real servers.
macro_rules! embedded_and_on_servers {
    ($($name:ident)*) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                super::$name(super::Place::embedded()).await;
            })*
        }
        mod servers {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                super::$name(super::Place::on_servers()).await;
            })*
        }
    };
}

embedded_and_on_servers! {
    one_of_fifty_gets_the_seat
    a_partly_taken_wish_takes_nothing
    general_admission_stops_at_zero
    a_lapsed_hold_returns_once
    a_cancelled_hold_returns_once
}

/// D01.
async fn one_of_fifty_gets_the_seat(place: Place) {
    let shop = Arc::new(Shop::open(&place, |_| {}).await);
    let barrier = Arc::new(Barrier::new(50));
    let mut buyers = JoinSet::new();
    for _ in 0..50 {
        let (shop, barrier) = (Arc::clone(&shop), Arc::clone(&barrier));
        buyers.spawn(async move {
            barrier.wait().await;
            let reply = shop.hold_seats(&["B7"]).await;
            if reply.status == 409 {
                assert_eq!(reply.body["taken"], json!(["B7"]));
            }
            reply.status.as_u16()
        });
    }
    let statuses = buyers.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 49, "{statuses:?}");
    let audit = shop.audit().await;
    assert_eq!((audit.free, audit.held, audit.sold), (89, 1, 0));
}

/// D02.
async fn a_partly_taken_wish_takes_nothing(place: Place) {
    let shop = Shop::open(&place, |_| {}).await;
    shop.held(json!({"seats": ["A3"]})).await;

    let refused = shop.hold_seats(&["A1", "A2", "A3"]).await.expect(409);

    assert_eq!(refused.problem(), "taken");
    assert_eq!(refused.body["taken"], json!(["A3"]));
    let held = shop.hold_seats(&["A2", "A1"]).await.expect(201);
    assert_eq!(held.body["seats"], json!(["A2", "A1"]));
    assert_eq!((&held.body["quantity"], &held.body["amount_minor"]), (&json!(2), &json!(9000)));
    assert_eq!(held.headers["stanchion-pin"], "600");
    assert_eq!(held.body["expires_in_seconds"], 600);
}

async fn general_admission_stops_at_zero(place: Place) {
    let shop = Arc::new(Shop::open(&place, |_| {}).await);
    let barrier = Arc::new(Barrier::new(20));
    let mut buyers = JoinSet::new();
    for _ in 0..20 {
        let (shop, barrier) = (Arc::clone(&shop), Arc::clone(&barrier));
        buyers.spawn(async move {
            barrier.wait().await;
            shop.hold(json!({"quantity": 3})).await.status.as_u16()
        });
    }
    let statuses = buyers.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 3, "{statuses:?}");

    let refused = shop.hold(json!({"quantity": 2})).await.expect(409);
    assert_eq!((refused.problem(), &refused.body["free"]), ("not-enough", &json!(1)));
    shop.hold(json!({"quantity": 1})).await.expect(201);
    let refused = shop.hold(json!({"quantity": 1})).await.expect(409);
    assert_eq!(refused.body["free"], 0);
    let audit = shop.audit().await;
    assert_eq!((audit.free, audit.held, audit.sold), (80, 10, 0));
    assert!(audit.g8_conservation);
}

fn briefly(config: &mut BoxOfficeConfig) {
    config.hold_ttl = Duration::from_secs(1);
}

/// D03, D04: cancelling what lapsed, twice, returns nothing a second time.
async fn a_lapsed_hold_returns_once(place: Place) {
    let shop = Shop::open(&place, briefly).await;
    let tickets = shop.held(json!({"quantity": 4})).await;
    let seat = shop.held(json!({"seats": ["A1"]})).await;
    assert_eq!(shop.audit().await.held, 5);

    eventually("both holds lapse", || async { (shop.audit().await.held == 0).then_some(()) }).await;

    for hold in [&tickets, &seat] {
        assert_eq!(shop.cancel(hold).await.expect(410).problem(), "hold-over");
        assert_eq!(shop.order("key", hold).await.expect(410).problem(), "hold-over");
    }
    let again = shop.held(json!({"seats": ["A1"]})).await;
    assert_ne!(again, seat);
    shop.cancel(&seat).await.expect(410);
    let audit = shop.audit().await;
    assert_eq!((audit.free, audit.held, audit.total), (89, 1, 90));
    assert!(audit.g8_conservation);
}

/// D04.
async fn a_cancelled_hold_returns_once(place: Place) {
    let shop = Arc::new(Shop::open(&place, |_| {}).await);
    let tickets = shop.held(json!({"quantity": 4})).await;
    let seats = shop.held(json!({"seats": ["A1", "A2"]})).await;

    for hold in [tickets, seats] {
        let mut cancels = JoinSet::new();
        for _ in 0..8 {
            let (shop, hold) = (Arc::clone(&shop), hold.clone());
            cancels.spawn(async move { shop.cancel(&hold).await.status.as_u16() });
        }
        let statuses = cancels.join_all().await;
        assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 410).count(), 7, "{statuses:?}");
        // What came back belongs to the next, whom the old name can do nothing to.
        shop.cancel(&hold).await.expect(410);
    }
    let next = shop.held(json!({"seats": ["A1"]})).await;
    let audit = shop.audit().await;
    assert_eq!((audit.free, audit.held), (89, 1));
    shop.cancel(&next).await.expect(204);
    let stranger = format!("h_{}", "0".repeat(32));
    assert_eq!(shop.cancel(&stranger).await.expect(404).problem(), "not-found");
    assert_eq!(shop.order("key", &stranger).await.expect(404).problem(), "not-found");
    assert_eq!(shop.audit().await.free, 90);
}

#[tokio::test]
async fn impossible_wishes_are_refused_with_the_reason() {
    let shop = Shop::open(&Place::embedded(), |_| {}).await;
    let eleven: Vec<String> = (1..=11).map(|number| format!("A{number}")).collect();
    for (wish, problem) in [
        (json!({"seats": ["A1", "A1"]}), "duplicates"),
        (json!({"seats": ["A1", "C1"]}), "unknown-seats"),
        (json!({"seats": ["a1"]}), "unknown-seats"),
        (json!({"seats": ["A1,A2"]}), "unknown-seats"),
        (json!({"seats": []}), "nothing-wanted"),
        (json!({"quantity": 0}), "nothing-wanted"),
        (json!({"seats": eleven}), "too-many"),
        (json!({"quantity": 11}), "too-many"),
        (json!({"quantity": 4_000_000_000_u32}), "too-many"),
        (json!({"quantity": -1}), "body-unfit"),
        (json!({"quantity": 1.5}), "body-unfit"),
        (json!({"quantity": "2"}), "body-unfit"),
        (json!({"seats": "A1"}), "body-unfit"),
        (json!({"seat": ["A1"]}), "body-unfit"),
        (json!({"seats": ["A1"], "quantity": 1}), "wish-unclear"),
        (json!({"seats": ["A1"], "best_available": {"quantity": 1}}), "wish-unclear"),
        (json!({"best_available": {"quantity": 0}}), "nothing-wanted"),
        (json!({"best_available": {"quantity": 11}}), "too-many"),
        (json!({"best_available": {"quantity": 1, "rows": ["A", "C"]}}), "unknown-rows"),
        (json!({"best_available": {"quantity": 1, "row": "A"}}), "body-unfit"),
        (json!({"best_available": 2}), "body-unfit"),
        (json!({}), "wish-unclear"),
        (json!([]), "body-unfit"),
    ] {
        let reply = shop.hold(wish.clone()).await.expect(422);
        assert_eq!(reply.problem(), problem, "{wish}");
    }
    assert_eq!(shop.hold(json!({"seats": ["A1", "C1"]})).await.body["unknown"], json!(["C1"]));
    assert_eq!(shop.audit().await.held, 0);
}

/// A hold in Redis outlives the process; what the store never had comes from the ledger.
#[tokio::test]
async fn holds_in_redis_outlive_a_restart() {
    let redis = Place::on_redis();
    let shop = Shop::open(&redis, |_| {}).await;
    let hold = shop.held(json!({"seats": ["A1"]})).await;
    let database = shop.config.database.clone();
    shop.shutdown.stop();

    let restarted = Shop::open(&redis, |config| config.database = database).await;

    restarted.hold_seats(&["A1"]).await.expect(409);
    restarted.order("key", &hold).await.expect(202);
}

/// The ledger is the truth: what only the store calls sold is for sale again.
#[tokio::test]
async fn sales_that_the_ledger_does_not_know_are_forgotten() {
    let redis = Place::on_redis();
    let shop = Shop::open(&redis, |_| {}).await;
    for wish in [json!({"seats": ["A1", "A2"]}), json!({"quantity": 2})] {
        let (order, charge) = shop.ordered(wish).await;
        let mut paid = event(&format!("evt_{order}"), "charge.captured", &order, &charge);
        paid["amount_minor"] = json!(9000);
        shop.webhook(&paid).await.expect(204);
    }
    shop.audit_when("all is sold", |audit| audit.sold == 4).await;
    shop.shutdown.stop();
    assert!(shop.shutdown.drain(Duration::from_secs(10)).await);

    let with_another_ledger = Shop::open(&redis, |_| {}).await;

    let audit = with_another_ledger.audit().await;
    assert_eq!((audit.free, audit.held, audit.sold), (90, 0, 0));
    with_another_ledger.ordered(json!({"seats": ["A1", "A2"]})).await;
}

#[tokio::test]
async fn a_flushed_redis_is_rebuilt_before_anything_is_sold() {
    let place = Place::on_redis();
    let shop = Shop::open(&place, |_| {}).await;
    let hold = shop.held(json!({"seats": ["A1"]})).await;
    let tickets = shop.held(json!({"quantity": 3})).await;
    shop.order("one", &hold).await.expect(202);
    shop.order("two", &tickets).await.expect(202);
    let server = place.redis();

    server.command("FLUSHALL");

    assert_eq!(shop.hold_seats(&["A1"]).await.expect(409).problem(), "taken");
    assert_eq!(shop.hold(json!({"quantity": 8})).await.expect(409).body["free"], 7);
    let audit = shop.audit().await;
    assert_eq!((audit.free, audit.held, audit.sold), (86, 4, 0));
}

/// The store wakes the office when the next hold runs out; an alarm that was lost is set again by the sweep.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_is_set_for_the_next_hold() {
    let place = Place::on_redis();
    let shop = Shop::open(&place, |_| {}).await;
    let alarm = || place.redis().command("EXISTS stanchion-box:{demo}:alarm");
    assert_eq!(alarm(), ":0\r\n");
    shop.held(json!({"quantity": 1})).await;
    assert_eq!(alarm(), ":1\r\n");
    place.redis().command("DEL stanchion-box:{demo}:alarm");
    eventually("the alarm is set again", || async { (alarm() == ":1\r\n").then_some(()) }).await;
}

/// A hold whose answer was lost is had again under its key, on any node; it is nobody else's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_is_had_again_under_its_key() {
    let place = Place::on_redis();
    let shop = Shop::open(&place, |_| {}).await;
    let twin = shop.twin_at(&place).await;
    let me = Some("my-visit");
    for (key, wish, other) in [
        ("seats", json!({"seats": ["A1", "A2"]}), json!({"seats": ["A1"]})),
        ("tickets", json!({"quantity": 2}), json!({"quantity": 1})),
    ] {
        let first = shop.hold_in(me, key, wish.clone()).await.expect(201);
        let again = twin.hold_in(me, key, wish.clone()).await.expect(201);
        for field in ["hold", "expires_at", "seats", "quantity", "amount_minor"] {
            assert_eq!(first.body[field], again.body[field], "{field}");
        }
        assert_eq!(twin.hold_in(me, key, other).await.expect(422).problem(), "key-reused");
        let stranger = shop.hold_in(Some("other"), key, json!({"quantity": 2})).await.expect(201);
        assert_ne!(stranger.field("hold"), first.field("hold"));
        shop.cancel(&stranger.field("hold")).await.expect(204);
        shop.cancel(&first.field("hold")).await.expect(204);
        assert_eq!(twin.hold_in(me, key, wish).await.expect(410).problem(), "hold-over");
    }
    assert_eq!(shop.audit().await.free, 90);

    // What became of it once the store has forgotten it, the ledger knows.
    let hold = shop.hold_in(me, "third", json!({"seats": ["B1"]})).await.expect(201).field("hold");
    shop.order("order", &hold).await.expect(202);
    place.redis().command(&format!("HDEL stanchion-box:{{demo}}:holds {hold}"));
    shop.hold_in(me, "third", json!({"seats": ["B1"]})).await.expect(410);

    // Where nobody vouches for a visit, whoever knows the key is the one: it must be no easy guess.
    let uuid = "6f1ed002-ab5a-4b2f-9c3a-0d9a4d1f2e77";
    let hold = shop.hold_in(None, uuid, json!({"quantity": 1})).await.expect(201).field("hold");
    assert_eq!(twin.hold_in(None, uuid, json!({"quantity": 1})).await.expect(201).field("hold"), hold);
    assert_eq!(shop.hold_in(None, "1", json!({"quantity": 1})).await.expect(400).problem(), "idempotency-key");
}

/// A hold lasts while it is paid for, however short it was: two minutes at least, and nobody can give it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_is_extended_while_its_payment_runs() {
    let place = Place::on_redis();
    let shop = Shop::open(&place, |config| config.hold_ttl = Duration::from_secs(20)).await;
    let hold = shop.held(json!({"seats": ["A1"]})).await;
    let left = || {
        let reply = place.redis().command("PTTL stanchion-box:{demo}:seat:A1");
        reply.trim().trim_start_matches(':').parse::<i64>().unwrap()
    };
    assert!((1..=20_000).contains(&left()));

    shop.order("key", &hold).await.expect(202);

    assert!(left() > 90_000, "{} ms", left());
    shop.cancel(&hold).await.expect(410);
}

/// Rotating what the operator shares with the provider leaves alone what buyers hold under their keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_is_had_again_after_every_secret_was_rotated() {
    let place = Place::on_servers();
    let mut shop = Shop::open(&place, |_| {}).await;
    let me = Some("my-visit");
    let wish = json!({"seats": ["A1", "A2"]});
    let first = shop.hold_in(me, "key", wish.clone()).await.expect(201);

    shop.config.provider.api_key = "another-key".into();
    shop.config.provider.webhook_secrets = vec!["another secret of the test's own".into()];
    let rotated = shop.twin_at(&place).await;

    let again = rotated.hold_in(me, "key", wish).await.expect(201);
    assert_eq!(again.field("hold"), first.field("hold"));
    // No guess: another ledger names it otherwise.
    let elsewhere = Shop::open(&Place::embedded(), |_| {}).await;
    let other = elsewhere.hold_in(me, "key", json!({"seats": ["A1", "A2"]})).await.expect(201);
    assert_ne!(other.field("hold"), first.field("hold"));
}
