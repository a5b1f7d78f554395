//! The best seats that are free: together as promised, once each, and nobody refused while there are enough.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Value, json};
use tokio::{sync::Barrier, task::JoinSet};

use crate::support::box_office::{Place, Reply, Shop, eventually};

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
    two_hundred_buyers_at_once_are_all_seated
    a_hall_is_filled_to_the_last_seat
    two_nodes_sell_the_last_seat_once
    seats_are_together_unless_none_are
    a_choice_is_had_again_under_its_key
}

fn best(quantity: u32) -> Value {
    json!({ "best_available": { "quantity": quantity } })
}

fn seats(reply: &Reply) -> Vec<String> {
    serde_json::from_value(reply.body["seats"].clone()).unwrap()
}

/// Row, and number of the seat.
fn row_and_number(seat: &str) -> (&str, u32) {
    let (row, number) = seat.split_at(1);
    (row, number.parse().unwrap())
}

fn are_neighbours(seats: &[String]) -> bool {
    seats.iter().map(|seat| row_and_number(seat)).collect::<Vec<_>>().windows(2).all(|pair| {
        let ((row, left), (next_row, right)) = (pair[0], pair[1]);
        row == next_row && left + 1 == right
    })
}

/// 200 buyers of 2, 3 and 4 want 599 of 800 seats at the same moment.
async fn two_hundred_buyers_at_once_are_all_seated(place: Place) {
    let shop = Arc::new(Shop::open(&place, |config| config.event.seats = 800).await);
    let barrier = Arc::new(Barrier::new(200));
    let mut buyers = JoinSet::new();
    for buyer in 0..200_u32 {
        let (shop, barrier) = (Arc::clone(&shop), Arc::clone(&barrier));
        buyers.spawn(async move {
            let wanted = 2 + buyer % 3;
            barrier.wait().await;
            let reply = shop.hold(best(wanted)).await.expect(201);
            assert_eq!((&reply.body["quantity"], seats(&reply).len()), (&json!(wanted), wanted as usize));
            assert_eq!(reply.body["amount_minor"], 4500 * wanted);
            seats(&reply)
        });
    }
    let held = buyers.join_all().await;
    for seats in &held {
        assert!(are_neighbours(seats), "{seats:?}: a fifth of the hall was still free, in long rows");
    }
    let all: Vec<&String> = held.iter().flatten().collect();
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "a seat was held twice");
    let audit = shop.audit().await;
    assert_eq!((audit.held, audit.total), (599, 810));
    assert!(audit.g8_conservation);

    // What is left goes to the last of them: as many single buyers as there are seats, and one more.
    let mut buyers = JoinSet::new();
    for _ in 0..202 {
        let shop = Arc::clone(&shop);
        buyers.spawn(async move {
            let reply = shop.hold(best(1)).await;
            if reply.status == 409 {
                assert_eq!((reply.problem(), &reply.body["free"]), ("not-enough", &json!(0)));
            }
            reply.status.as_u16()
        });
    }
    let statuses = buyers.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 201);
    assert_eq!(shop.audit().await.free, 10);
}

/// As many seats as there are buyers of four for: nobody is refused, though the last ones sit apart.
async fn a_hall_is_filled_to_the_last_seat(place: Place) {
    let shop = Arc::new(Shop::open(&place, |config| config.event.seats = 800).await);
    let barrier = Arc::new(Barrier::new(200));
    let mut buyers = JoinSet::new();
    for _ in 0..200 {
        let (shop, barrier) = (Arc::clone(&shop), Arc::clone(&barrier));
        buyers.spawn(async move {
            barrier.wait().await;
            seats(&shop.hold(best(4)).await.expect(201))
        });
    }
    let held = buyers.join_all().await;
    assert_eq!(held.iter().flatten().collect::<HashSet<_>>().len(), 800);
    let together = held.iter().filter(|seats| are_neighbours(seats)).count();
    assert!(together >= 150, "only {together} of 200 sit together");
    assert_eq!(shop.hold(best(1)).await.expect(409).body["free"], 0);
}

async fn two_nodes_sell_the_last_seat_once(place: Place) {
    let shop = Shop::open(&place, |config| config.event.seats = 80).await;
    let nodes = if place.is_embedded() {
        vec![Arc::new(shop)]
    } else {
        vec![Arc::new(shop.twin_at(&place).await), Arc::new(shop)]
    };
    let barrier = Arc::new(Barrier::new(100));
    let mut buyers = JoinSet::new();
    for buyer in 0..100 {
        let (shop, barrier) = (Arc::clone(&nodes[buyer % nodes.len()]), Arc::clone(&barrier));
        buyers.spawn(async move {
            barrier.wait().await;
            let reply = shop.hold(best(1)).await;
            if reply.status == 201 {
                seats(&reply)
            } else {
                assert_eq!(reply.problem(), "not-enough");
                Vec::new()
            }
        });
    }
    let held: Vec<String> = buyers.join_all().await.concat();
    assert_eq!((held.len(), held.iter().collect::<HashSet<_>>().len()), (80, 80));
}

async fn seats_are_together_unless_none_are(place: Place) {
    let shop = Shop::open(&place, |config| config.event.seats = 80).await;
    let reply = shop.hold(best(3)).await.expect(201);
    assert_eq!(reply.headers["stanchion-pin"], "600");
    let front = seats(&reply);
    assert!(are_neighbours(&front) && front.contains(&"A20".to_owned()), "{front:?}");
    shop.cancel(&reply.field("hold")).await.expect(204);
    let back = json!({ "best_available": { "quantity": 2, "rows": ["B"] } });
    let reply = shop.hold(back).await.expect(201);
    assert_eq!(seats(&reply), ["B20", "B21"]);
    shop.cancel(&reply.field("hold")).await.expect(204);

    // Every other seat is taken: nothing is left side by side.
    let uneven: Vec<String> =
        ["A", "B"].iter().flat_map(|row| (1..=39).step_by(2).map(move |at| format!("{row}{at}"))).collect();
    for ten in uneven.chunks(10) {
        shop.held(json!({ "seats": ten })).await;
    }
    // Seen by everybody: the box office looks anew before it gives seats apart or refuses.
    let together = json!({ "best_available": { "quantity": 2, "together": true } });
    let refused = shop.hold(together.clone()).await.expect(409);
    assert_eq!((refused.problem(), &refused.body["free"]), ("not-together", &json!(40)));
    let reply = shop.hold(best(2)).await.expect(201);
    let apart = seats(&reply);
    assert!(apart.len() == 2 && !are_neighbours(&apart), "{apart:?}");
    shop.cancel(&reply.field("hold")).await.expect(204);
    let half_of_the_row = json!({ "best_available": { "quantity": 10, "rows": ["A"] } });
    for _ in 0..2 {
        let half = seats(&shop.hold(half_of_the_row.clone()).await.expect(201));
        assert!(half.iter().all(|seat| row_and_number(seat).0 == "A"), "{half:?}");
    }
    let refused = shop.hold(half_of_the_row).await.expect(409);
    assert_eq!((refused.problem(), &refused.body["free"]), ("not-enough", &json!(0)));
}

async fn a_choice_is_had_again_under_its_key(place: Place) {
    let shop = Shop::open(&place, |_| {}).await;
    let me = Some("my-visit");
    let first = shop.hold_in(me, "key", best(2)).await.expect(201);
    let again = shop.hold_in(me, "key", best(2)).await.expect(201);
    for field in ["hold", "seats", "expires_at", "amount_minor"] {
        assert_eq!(first.body[field], again.body[field], "{field}");
    }
    assert_eq!(shop.audit().await.held, 2);
    assert_eq!(shop.hold_in(me, "key", best(3)).await.expect(422).problem(), "key-reused");
    assert_eq!(shop.hold_in(me, "key", json!({ "quantity": 2 })).await.expect(422).problem(), "key-reused");
    shop.cancel(&first.field("hold")).await.expect(204);
    assert_eq!(shop.hold_in(me, "key", best(2)).await.expect(410).problem(), "hold-over");
}

/// A store that lost everything is rebuilt from the ledger before it gives the best seats away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_best_seats_of_a_flushed_redis_are_not_sold_twice() {
    let place = Place::on_redis();
    let shop = Shop::open(&place, |_| {}).await;
    let reply = shop.hold(best(2)).await.expect(201);
    assert_eq!(seats(&reply), ["A20", "A21"]);
    shop.order("one", &reply.field("hold")).await.expect(202);
    place.redis().command("FLUSHALL");

    let next = seats(&shop.hold(best(2)).await.expect(201));

    assert!(!next.contains(&"A20".to_owned()) && !next.contains(&"A21".to_owned()), "{next:?}");
}

/// Seats that come back are found although everybody was shown a full hall a moment ago.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_back_is_found_at_once() {
    let shop = Shop::open(&Place::embedded(), |config| config.event.seats = 4).await;
    let all = shop.hold(best(4)).await.expect(201).field("hold");
    eventually("everybody is shown a full hall", || async {
        (shop.get("/events/demo").await.body["seats"]["free"] == 0).then_some(())
    })
    .await;
    shop.cancel(&all).await.expect(204);
    assert_eq!(seats(&shop.hold(best(4)).await.expect(201)), ["A1", "A2", "A3", "A4"]);
}
