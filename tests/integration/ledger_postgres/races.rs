//! Transactions that lose races, and locks that others hold.

use std::sync::Arc;

use serde_json::json;
use sqlx::{Connection as _, PgConnection};
use tokio::task::JoinSet;

use crate::support::box_office::{Place, Shop, event, eventually, seat_at};

/// Makes the first `times` insertions into `table` fail with this SQLSTATE; what a sequence counted is not undone.
fn fail_first(place: &mut Place, table: &str, times: u32, code: &str) {
    place.postgres().sql_in(
        "ledger_0",
        &format!(
            "DROP SEQUENCE IF EXISTS failures CASCADE; CREATE SEQUENCE failures;
         CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF nextval('failures') <= {times} THEN RAISE EXCEPTION 'as told' USING ERRCODE = '{code}'; END IF;
           RETURN NEW; END $$;
         GRANT ALL ON SEQUENCE failures TO stanchion;
         CREATE OR REPLACE TRIGGER fail BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION fail();"
        ),
    );
}

/// D15: the database breaks off one of those who wait for each other; it is their business, not the buyer's.
#[tokio::test]
async fn deadlocks_and_failures_to_serialize_are_repeated() {
    let mut place = Place::on_postgres();
    let shop = Shop::open(&place, |_| {}).await;
    for (number, code) in ["40P01", "40001", "23505"].into_iter().enumerate() {
        fail_first(&mut place, "orders", 3, code);
        let hold = shop.held(json!({ "seats": [format!("A{}", number + 1)] })).await;
        let order = shop.order(&format!("key-{code}"), &hold).await.expect(202).field("order");
        let charge = shop.provider.charge_of(&order).await;
        fail_first(&mut place, "payments", 3, code);
        shop.webhook(&event(&format!("evt_{code}"), "charge.captured", &order, &charge)).await.expect(204);
        assert_eq!(shop.status_of(&order).await, "confirmed");
    }
}

/// D15: a deadlock that `PostgreSQL` itself finds and breaks, not one that is only claimed: the webhook's transaction has
/// the event and waits for the order; another has the order and waits for the event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_deadlock_is_survived() {
    let place = Place::on_postgres();
    let shop = Arc::new(Shop::open(&place, |_| {}).await);
    let (order, charge) = shop.ordered(json!({"seats": ["A1"]})).await;
    let before = deadlocks(&place);
    let mut other =
        PgConnection::connect(&place.ledger_server().superuser_url().replace("/stanchion", "/ledger_0")).await.unwrap();
    // It looks for no deadlock itself, so the one to be broken off is the box office's.
    sqlx::query("SET deadlock_timeout = '1h'").execute(&mut other).await.unwrap();
    let mut tx = other.begin().await.unwrap();
    sqlx::query("SELECT 1 FROM orders WHERE id = $1 FOR UPDATE").bind(&order).execute(&mut *tx).await.unwrap();

    let told = tokio::spawn({
        let (shop, order) = (Arc::clone(&shop), order.clone());
        async move { shop.webhook(&event("evt_1", "charge.captured", &order, &charge)).await.status }
    });
    let waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = 'ledger_0'";
    eventually("the webhook waits for the order", || {
        let rows = place.ledger_server().sql(waiting);
        async move { (rows.trim() == "1").then_some(()) }
    })
    .await;
    // Goes on when the box office's transaction has been broken off.
    sqlx::query("INSERT INTO webhook_events (id, received_ms) VALUES ('evt_1', 0)").execute(&mut *tx).await.unwrap();
    tx.rollback().await.unwrap();

    assert_eq!(told.await.unwrap(), 204);
    assert_eq!(shop.status_of(&order).await, "confirmed");
    eventually("the server counts the deadlock", || {
        let counted = deadlocks(&place);
        async move { (counted > before).then_some(()) }
    })
    .await;
}

fn deadlocks(place: &Place) -> u32 {
    let counted = place.ledger_server().sql("SELECT deadlocks FROM pg_stat_database WHERE datname = 'ledger_0'");
    counted.trim().parse().unwrap()
}

/// What cannot be had now can be had later, under the same key; what is broken is said to be.
#[tokio::test]
async fn trouble_is_told_apart() {
    let mut place = Place::on_postgres();
    let shop = Shop::open(&place, |_| {}).await;
    let hold = shop.held(json!({"seats": ["A1"]})).await;
    for (code, status) in
        [("40P01", 503), ("55P03", 503), ("57014", 503), ("53100", 503), ("25006", 503), ("57P01", 503), ("XX000", 500)]
    {
        fail_first(&mut place, "orders", 1_000, code);
        let reply = shop.order("key", &hold).await;
        assert_eq!(reply.status.as_u16(), status, "{code}: {}", reply.text);
        assert_eq!(reply.headers.contains_key("retry-after"), status == 503, "{code}");
        assert!(!reply.text.contains("as told"), "{code}: {}", reply.text);
    }
    fail_first(&mut place, "orders", 0, "XX000");
    shop.order("key", &hold).await.expect(202);
}

/// D15: two orders of the same two seats, named in opposite order; then every kind of news about the one that got them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn orders_and_webhooks_in_opposite_order_never_break() {
    let place = Place::on_postgres();
    let shop = Arc::new(Shop::open(&place, |config| config.event.seats = 100).await);
    // Two inventories that know nothing of each other: only the ledger keeps the seats apart.
    let twin = Arc::new(shop.twin().await);
    let mut pairs = JoinSet::new();
    for number in 0..50 {
        let (shop, twin) = (Arc::clone(&shop), Arc::clone(&twin));
        pairs.spawn(async move {
            let [one, two] = [0, 1].map(|seat| seat_at(number * 2 + seat));
            let mine = shop.held(json!({"seats": [one, two]})).await;
            let theirs = twin.held(json!({"seats": [two, one]})).await;
            let (mine, theirs) = tokio::join!(shop.order(&mine, &mine), twin.order(&theirs, &theirs));
            let (placed, refused) = if mine.status == 202 { (mine, theirs) } else { (theirs, mine) };
            assert_eq!(refused.expect(409).problem(), "taken");
            let order = placed.expect(202).field("order");
            let charge = shop.provider.charge_of(&order).await;
            let mut news = JoinSet::new();
            // Each event twice, to two nodes at once.
            for (id, kind) in [(1, "charge.captured"), (2, "charge.declined")] {
                for node in [&shop, &twin] {
                    let mut event = event(&format!("evt_{order}_{id}"), kind, &order, &charge);
                    event["amount_minor"] = json!(9000);
                    let node = Arc::clone(node);
                    news.spawn(async move { node.webhook(&event).await.expect(204) });
                }
            }
            news.join_all().await;
            assert_eq!(twin.status_of(&order).await, "confirmed");
        });
    }
    while let Some(pair) = pairs.join_next().await {
        pair.unwrap();
    }
    let audit = shop.audit().await;
    assert_eq!((audit.captures, audit.orders.confirmed, audit.refunds_owed), (50, 50, 0));
    assert_eq!((audit.tickets_confirmed, audit.distinct_seats_sold), (100, 100));
}

/// D16: a task whose transaction took long is found when it is there, though younger ones were done before.
#[tokio::test]
async fn a_task_committed_late_is_found() {
    let mut place = Place::on_postgres();
    let shop = Shop::open(&place, |_| {}).await;
    let (first, _) = shop.ordered(json!({"seats": ["A1"]})).await;
    let mut late = PgConnection::connect(&place.postgres().url_of("ledger_0")).await.unwrap();
    let mut tx = late.begin().await.unwrap();
    let slow: String = "o_".chars().chain(first.chars().skip(2).collect::<Vec<_>>().into_iter().rev()).collect();
    for statement in [
        "INSERT INTO orders (id, event, hold, status, quantity, amount_minor, currency, created_ms, poll_ms) \
         SELECT $2, event, 'h_' || substr($2, 3), status, 1, amount_minor, currency, created_ms, poll_ms FROM orders \
         WHERE id = $1",
        "INSERT INTO outbox (kind, subject, order_id, state, not_before_ms) \
         SELECT kind, $2, $2, 'due', not_before_ms FROM outbox WHERE subject = $1",
    ] {
        sqlx::query(statement).bind(&first).bind(&slow).execute(&mut *tx).await.unwrap();
    }
    shop.ordered(json!({"seats": ["A3"]})).await;
    assert_eq!(shop.provider.requests(), 2);
    tx.commit().await.unwrap();
    shop.provider.charge_of(&slow).await;
}

/// Somebody's lock on one task or order holds up that one only.
#[tokio::test]
async fn what_is_locked_is_passed_over() {
    let mut place = Place::on_postgres();
    let (shop, clock) = Shop::open_by_hand(&place).await;
    let (stuck, _) = shop.ordered(json!({"seats": ["A1"]})).await;
    let mut other = PgConnection::connect(&place.postgres().url_of("ledger_0")).await.unwrap();
    let mut tx = other.begin().await.unwrap();
    sqlx::query("SELECT 1 FROM orders WHERE id = $1 FOR UPDATE").bind(&stuck).execute(&mut *tx).await.unwrap();
    let (order, _) = shop.ordered(json!({"seats": ["A2"]})).await;
    shop.provider.decide(&stuck, "captured");
    shop.provider.decide(&order, "captured");
    clock.advance(std::time::Duration::from_secs(11));
    shop.becomes(&order, "confirmed").await;
    assert_eq!(shop.status_of(&stuck).await, "pending");
    tx.rollback().await.unwrap();
    shop.becomes(&stuck, "confirmed").await;
}

/// Few connections and many buyers: they wait for a turn or are told to come back, and nothing breaks.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_buyers_share_two_connections() {
    let place = Place::on_postgres();
    let few = std::num::NonZeroU32::new(2);
    let shop =
        Arc::new(Shop::open(&place, |config| (config.event.seats, config.database_connections) = (100, few)).await);
    let mut buyers = JoinSet::new();
    for number in 0..100 {
        let shop = Arc::clone(&shop);
        buyers.spawn(async move {
            let hold = shop.held(json!({ "seats": [seat_at(number)] })).await;
            eventually("the order", || async {
                let reply = shop.order(&format!("key-{number}"), &hold).await;
                match reply.status.as_u16() {
                    202 => Some(()),
                    503 => None,
                    other => panic!("{other}: {}", reply.text),
                }
            })
            .await;
        });
    }
    buyers.join_all().await;
    eventually("each is charged once", || async { (shop.provider.charges().len() == 100).then_some(()) }).await;
    assert_eq!(shop.audit().await.orders.pending, 100);
}

/// Clients that leave at any moment leave neither an open transaction nor half an order behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clients_that_leave_spoil_no_connection() {
    let mut place = Place::on_postgres();
    let few = std::num::NonZeroU32::new(3);
    let shop = Arc::new(Shop::open(&place, |config| config.database_connections = few).await);
    let mut holds = Vec::new();
    for number in 0..60 {
        let hold = shop.held(json!({ "seats": [seat_at(number)] })).await;
        let leaving = tokio::spawn({
            let (shop, hold) = (Arc::clone(&shop), hold.clone());
            async move {
                shop.order(&hold, &hold).await;
                shop.audit().await;
            }
        });
        for _ in 0..number * 20 {
            tokio::task::yield_now().await;
        }
        leaving.abort();
        holds.push(hold);
    }
    for hold in &holds {
        let placed = || async { (shop.order(hold, hold).await.status == 202).then_some(()) };
        eventually("the order", placed).await;
    }
    assert_eq!(shop.audit().await.orders.pending, 60);
    let open = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = 'ledger_0' AND state LIKE 'idle in transaction%' \
                AND state_change < now() - interval '1 second'";
    assert_eq!(place.postgres().sql(open), "0");
}
