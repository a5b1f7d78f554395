//! The database dies, comes back, or keeps its answer to itself.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::support::{
    box_office::{Place, Reply, Shop, event, eventually, seat_at},
    postgres::PostgresServer,
};

/// Asks the same again while the answer is 503, and gives the other.
async fn insist<F: Future<Output = Reply>>(what: &str, troubles: &AtomicUsize, ask: impl Fn() -> F) -> Reply {
    eventually(what, || async {
        let reply = ask().await;
        if reply.status != 503 {
            return Some(reply);
        }
        assert!(reply.headers.contains_key("retry-after"));
        troubles.fetch_add(1, Ordering::Relaxed);
        None
    })
    .await
}

/// Killed in mid-sale and started again: who asked meanwhile waits or is told to ask again, and nothing is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_killed_in_mid_sale_loses_nothing() {
    let mut place = Place::on_postgres();
    let shop = Arc::new(Shop::open(&place, |_| {}).await);
    let (sold, troubles) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut buyers = JoinSet::new();
    for buyer in 0..8 {
        let (shop, sold, troubles) = (Arc::clone(&shop), Arc::clone(&sold), Arc::clone(&troubles));
        buyers.spawn(async move {
            for number in 0..10 {
                let hold = shop.held(json!({ "seats": [seat_at(buyer * 10 + number)] })).await;
                let key = format!("key-{hold}");
                let order = insist("the order", &troubles, || shop.order(&key, &hold)).await.expect(202).field("order");
                let charge = eventually("the charge", || async {
                    let charges = shop.provider.charges();
                    let mine = charges.iter().find(|charge| charge["order"] == order.as_str())?;
                    Some(mine["charge"].as_str().unwrap().to_owned())
                })
                .await;
                let paid = event(&format!("evt_{order}"), "charge.captured", &order, &charge);
                insist("the webhook", &troubles, || shop.webhook(&paid)).await.expect(204);
                let seen = insist("the order's page", &troubles, || shop.get_order(&order)).await.expect(200);
                assert_eq!(seen.field("status"), "confirmed");
                sold.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    for stage in [10, 30] {
        let reached = || async { (sold.load(Ordering::Relaxed) >= stage).then_some(()) };
        eventually("the sale goes on", reached).await;
        place.postgres().kill();
        place.postgres().start_again();
    }
    while let Some(buyer) = buyers.join_next().await {
        buyer.unwrap();
    }
    let audit = shop.audit_when("all is told", |audit| audit.sold == 80).await;
    assert_eq!((audit.captures, audit.orders.confirmed, audit.orders.pending, audit.free), (80, 80, 0, 10));
    assert_eq!(shop.provider.charges().len(), 80);
}

/// While it is away every answer is 503 with the time to come back, and once it is back the same again works.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_absent_server_is_said_to_be_passing() {
    let mut place = Place::on_postgres();
    let shop = Shop::open(&place, |_| {}).await;
    let (order, charge) = shop.ordered(json!({"seats": ["A1"]})).await;
    let hold = shop.held(json!({"seats": ["A2"]})).await;
    place.postgres().kill();
    let paid = event("evt_1", "charge.captured", &order, &charge);
    let (placed, paid_now, shown) = tokio::join!(shop.order("key", &hold), shop.webhook(&paid), shop.get_order(&order));
    for reply in [placed, paid_now, shown] {
        assert_eq!(reply.headers["retry-after"], "1", "{}", reply.text);
        reply.expect(503);
    }
    // What needs no ledger is served.
    shop.hold_seats(&["A3"]).await.expect(201);
    place.postgres().start_again();
    shop.order("key", &hold).await.expect(202);
    shop.webhook(&paid).await.expect(204);
    assert_eq!(shop.status_of(&order).await, "confirmed");
}

/// The commit is done, the answer lost: asking again under the same key tells what happened.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_whose_answer_was_lost_is_found_under_its_key() {
    let mut place = Place::on_postgres();
    let line = CutLine::to(place.postgres()).await;
    let address = place.postgres().database("behind");
    let address = address.replace(&place.postgres().port().to_string(), &line.address.port().to_string());
    let shop = Shop::open(&place, |config| config.database = address.into()).await;
    // Only requests write now: a worker's commit must not be the one that is cut.
    shop.shutdown.stop();
    assert!(shop.shutdown.drain(std::time::Duration::from_secs(10)).await);
    let hold = shop.held(json!({"seats": ["A1"]})).await;
    line.cut_next_commit.store(true, Ordering::SeqCst);
    shop.order("key", &hold).await.expect(503);
    assert!(!line.cut_next_commit.load(Ordering::SeqCst), "the commit went through");
    let again = shop.order("key", &hold).await.expect(202);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(shop.audit().await.orders.pending, 1);
}

/// A line to the server that can be cut between a commit and its answer.
struct CutLine {
    address: SocketAddr,
    cut_next_commit: Arc<AtomicBool>,
}

impl CutLine {
    async fn to(server: &PostgresServer) -> Self {
        let (port, armed) = (server.port(), Arc::new(AtomicBool::new(false)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let line = Self { address: listener.local_addr().unwrap(), cut_next_commit: Arc::clone(&armed) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                tokio::spawn(carry(client, server, Arc::clone(&armed)));
            }
        });
        line
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, armed: Arc<AtomicBool>) {
    let (mut asked, mut answered) = ([0; 8192], [0; 8192]);
    let mut is_cut = false;
    loop {
        tokio::select! {
            Ok(length @ 1..) = client.read(&mut asked) => {
                is_cut = asked[..length].windows(7).any(|seven| seven == b"COMMIT\0") && armed.swap(false, Ordering::SeqCst);
                server.write_all(&asked[..length]).await.unwrap();
            }
            Ok(length @ 1..) = server.read(&mut answered) => {
                if is_cut || client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
            else => return,
        }
    }
}
