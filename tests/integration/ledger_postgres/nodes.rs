//! Several box offices on one database and one Redis.

use std::{sync::Arc, time::Duration};

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{
    box_office::{Place, Shop, event, eventually, seat_at},
    fake_provider::Behaviour,
    http::{get, request},
    postgres::PostgresServer,
    program::Running,
    redis_server::{RedisServer, free_port},
    watched_engine::{Mood, WatchedEngine},
};

/// No task is done by two workers within a lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_order_is_charged_by_one_of_the_nodes() {
    let place = Place::on_servers();
    let shop = Arc::new(Shop::open(&place, |_| {}).await);
    let nodes = [Arc::clone(&shop), Arc::new(shop.twin_at(&place).await), Arc::new(shop.twin_at(&place).await)];
    let mut buyers = JoinSet::new();
    for number in 0..80 {
        let node = Arc::clone(&nodes[number % 3]);
        buyers.spawn(async move { node.ordered(json!({ "seats": [seat_at(number)] })).await });
    }
    let orders = buyers.join_all().await;
    assert_eq!((orders.len(), shop.provider.charges().len()), (80, 80));
    // Every task is noted as done, so none will be tried again.
    assert_eq!(shop.provider.requests(), 80);
    assert_eq!(nodes[1].audit().await.held, 80);
}

/// A node that starts in mid-sale rebuilds the inventory from what the ledger says; what another sells meanwhile stays
/// sold.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_that_starts_does_not_forget_what_another_sells() {
    let place = Place::on_servers();
    let shop = Arc::new(Shop::open(&place, |_| {}).await);
    let (seat, charge) = shop.ordered(json!({"seats": ["A1"]})).await;
    let (general, general_charge) = shop.ordered(json!({"quantity": 1})).await;
    let engine = WatchedEngine::before(place.engine(&shop.clock).await, "open_event");
    engine.set(Mood::Hold);
    let starting = tokio::spawn({
        let (shop, engine) = (Arc::clone(&shop), Arc::clone(&engine));
        async move { shop.twin_on(engine).await }
    });
    engine.until_run(1).await;
    for (order, charge) in [(&seat, &charge), (&general, &general_charge)] {
        shop.webhook(&event(&format!("evt_{order}"), "charge.captured", order, charge)).await.expect(204);
    }
    shop.audit_when("both are sold", |audit| audit.sold == 2).await;
    engine.let_go(1);
    let started = starting.await.unwrap();
    for node in [&*shop, &started] {
        let audit = node.audit().await;
        assert_eq!((audit.sold, audit.held, audit.free), (2, 0, 88));
        assert_eq!(node.hold_seats(&["A1"]).await.expect(409).problem(), "taken");
    }
}

/// A node that dies in the middle of a payment: another takes its task over when the lease is up.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_task_of_a_dead_node_comes_back() {
    let mut place = Place::on_postgres();
    let (shop, clock) = Shop::open_by_hand(&place).await;
    shop.provider.behave(Behaviour::Fail(503));
    let hold = shop.held(json!({"seats": ["A1"]})).await;
    shop.order("key", &hold).await.expect(202);
    eventually("it was tried", || async { (shop.provider.requests() > 0).then_some(()) }).await;
    shop.shutdown.stop();
    assert!(shop.shutdown.drain(Duration::from_secs(10)).await);
    // As if it had been killed in the middle.
    place.postgres().sql_in("ledger_0", "UPDATE outbox SET lease_until_ms = not_before_ms + 5000, not_before_ms = 0");
    let heir = shop.twin().await;
    heir.provider.behave(Behaviour::Take);
    clock.advance(Duration::from_secs(6));
    eventually("the heir charges", || async { (heir.provider.charges().len() == 1).then_some(()) }).await;
}

/// Two processes start at once on an empty database, and sell the same seats to more buyers than there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_processes_sell_each_seat_once() {
    let (postgres, redis) = (PostgresServer::start(), RedisServer::start());
    let [one, other, admin, another_admin, payments] = [(); 5].map(|()| format!("127.0.0.1:{}", free_port()));
    let secrets = [("STANCHION_PROVIDER_KEY", "a-key"), ("STANCHION_WEBHOOK_SECRET", "sixteen-or-more-characters")];
    let provider = format!("http://{payments}");
    let dir = tempfile::tempdir().unwrap();
    let office = |listen: &str, admin: &str| {
        let args = ["box-office", "--listen", listen, "--admin", admin, "--seats", "60", "--provider", &provider];
        let places = ["--redis", &redis.url(), "--data", dir.path().to_str().unwrap()];
        let database = [("STANCHION_DATABASE", postgres.url())];
        let database = database.iter().map(|(name, value)| (*name, value.as_str())).chain(secrets);
        Running::start(&[&args[..], &places].concat(), &database.collect::<Vec<_>>())
    };
    let _running = [office(&one, &admin), office(&other, &another_admin)];
    let webhook = format!("http://{other}/webhooks/payments");
    let sandbox = ["pay-sandbox", "--listen", &payments, "--webhook", &webhook, "--latency", "20ms"];
    let _sandbox = Running::start(&sandbox, &secrets);
    let up = |address: String| async move { tokio::net::TcpStream::connect(address).await.ok() };
    for address in [&one, &other, &payments] {
        eventually("all are up", || up(address.clone())).await;
    }

    let mut buyers = JoinSet::new();
    for buyer in 0..120 {
        let node = if buyer % 2 == 0 { one.clone() } else { other.clone() };
        buyers.spawn(async move { buy(&node, buyer).await });
    }
    let sold = buyers.join_all().await.into_iter().filter(|bought| *bought).count();
    assert_eq!(sold, 60);
    let audit = eventually("all is settled", || async {
        let audit: Value = get(&format!("http://{admin}/events/demo/audit")).await.json();
        (audit["orders"]["confirmed"] == 60 && audit["sold"] == 60).then_some(audit)
    })
    .await;
    assert_eq!((&audit["captures"], &audit["distinct_seats_sold"]), (&json!(60), &json!(60)), "{audit}");
}

/// Whether the seat could be had.
async fn buy(node: &str, buyer: usize) -> bool {
    let json = ("content-type", "application/json");
    // Each seat is wanted by two.
    let wish = json!({ "seats": [seat_at(buyer / 2)] }).to_string();
    let held = request(Method::POST, &format!("http://{node}/events/demo/holds"), &[json], wish).await;
    if held.status == 409 {
        return false;
    }
    assert_eq!(held.status, 201, "{}", held.text());
    let (key, body) = (format!("key-{buyer}"), json!({ "hold": held.json()["hold"] }).to_string());
    let headers = [json, ("idempotency-key", key.as_str())];
    let placed = request(Method::POST, &format!("http://{node}/orders"), &headers, body).await;
    assert_eq!(placed.status, 202, "{}", placed.text());
    true
}
