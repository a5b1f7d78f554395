//! The main job, end to end, on the real program: a crowd buys a sale out, and a crash forgets nobody.

use std::path::Path;

use http::Method;
use serde_json::{Value, json};

use crate::support::{
    browser::Browser,
    program::{Demo, stanchion},
    redis_server::RedisServer,
};

const SEATS: u64 = 60;

/// Plays an opening and gives back the rehearsal's own report, which must say that every guarantee held.
fn rehearse(demo: &Demo, dir: &Path, more: &[&str]) -> Value {
    let report = dir.join("report.json");
    let output = stanchion(
        &[
            &["rehearse", &demo.shop, "--admin", &demo.admin, "--users", "300", "--json", report.to_str().unwrap()],
            more,
        ]
        .concat(),
    );
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap()
}

async fn audit(demo: &Demo) -> Value {
    Browser::at(&demo.admin).call(Method::GET, "/events/demo/audit").await.json()
}

fn sale_args() -> [&'static str; 10] {
    ["--seats", "60", "--opens-in", "2s", "--capacity", "30", "--rate", "50", "--hold-for", "5s"]
}

fn assert_sold_out(audit: &Value) {
    assert_eq!(audit["sold"], SEATS, "{audit}");
    assert_eq!(audit["distinct_seats_sold"], SEATS, "{audit}");
    assert_eq!((&audit["free"], &audit["held"]), (&json!(0), &json!(0)), "{audit}");
    assert_eq!(audit["orders"]["pending"], 0, "{audit}");
    assert_eq!(audit["captures"], audit["orders"]["confirmed"], "{audit}");
    for guarantee in ["g7_one_seat_one_buyer", "g8_conservation", "g9_money"] {
        assert_eq!(audit[guarantee], true, "{audit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_buys_every_seat_once_on_the_embedded_engine() {
    let dir = tempfile::tempdir().unwrap();
    let demo = Demo::start(&dir.path().join("data"), &sale_args());
    rehearse(&demo, dir.path(), &[]);
    assert_sold_out(&audit(&demo).await);
    // Told to stop, it stops by itself.
    assert!(demo.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_buys_every_seat_once_on_redis() {
    let redis = RedisServer::start();
    let dir = tempfile::tempdir().unwrap();
    let url = redis.url();
    let demo = Demo::start(&dir.path().join("data"), &[&sale_args()[..], &["--redis", &url]].concat());
    rehearse(&demo, dir.path(), &["--redis", &url]);
    assert_sold_out(&audit(&demo).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_demo_forgets_no_place_no_session_and_no_sale() {
    let data = tempfile::tempdir().unwrap();
    let args = ["--seats", "40", "--opens-in", "0s", "--capacity", "2", "--rate", "50"];
    let demo = Demo::start(data.path(), &args);
    let (shop, admin) = (demo.shop.clone(), demo.admin.clone());

    let mut inside = [Browser::at(&shop), Browser::at(&shop)];
    for visitor in &mut inside {
        assert_eq!(enter(visitor).await, 200);
    }
    let mut waiting: Vec<Browser> = (0..5).map(|_| Browser::at(&shop)).collect();
    for visitor in &mut waiting {
        assert_eq!(visitor.open("/events/demo").await.status, 503);
    }
    let scores: Vec<u64> = waiting.iter().map(score).collect();
    assert!(scores.is_sorted_by(|earlier, later| earlier < later), "{scores:?}");
    let [first, second] = &mut inside;
    let sold = buy(first, "A1").await;
    // Asked behind the gateway's back: through it, the confirmed answer would end the buyer's session.
    Browser::at(&demo.box_office).until_json(&sold, |order| order["status"] == "confirmed").await;
    let pending = buy(second, "A2").await;
    // The order's answer above is durable; whether it was paid yet is for the restart to find out.
    demo.kill();

    let strip = |url: &str| url.strip_prefix("http://").unwrap().to_owned();
    let demo = Demo::start_on(&strip(&shop), &strip(&admin), data.path(), &args);
    for visitor in &mut inside {
        assert!(visitor.has_session());
        let event = visitor.call(Method::GET, "/events/demo").await;
        assert_eq!(event.status, 200, "a session survives the crash: {event:?}");
    }
    let mut box_office = Browser::at(&demo.box_office);
    let confirmed = box_office.until_json(&pending, |order| order["status"] == "confirmed").await;
    assert_eq!(confirmed["seats"], json!(["A2"]));

    // The last in line comes back first, and still is the last.
    for visitor in waiting.iter_mut().rev() {
        let status = visitor.status().await;
        assert_eq!(status["state"], "waiting", "{status}");
    }
    assert_eq!(waiting.iter().map(score).collect::<Vec<_>>(), scores);
    for (index, visitor) in waiting.iter_mut().enumerate() {
        visitor.until_json("/__room/main/status", |status| status["position"] == index + 1).await;
    }

    let seats = box_office.call(Method::GET, "/events/demo").await.json();
    for seat in &seats["seats"]["map"].as_array().unwrap()[..2] {
        assert_eq!(seat["state"], "sold", "{seat}");
    }
    let audit = audit(&demo).await;
    assert_eq!((&audit["sold"], &audit["g9_money"]), (&json!(2), &json!(true)), "{audit}");
}

fn score(visitor: &Browser) -> u64 {
    visitor.claims("stanchion_q_main")["score"].as_u64().unwrap()
}

/// Goes to the shop until let in.
async fn enter(visitor: &mut Browser) -> u16 {
    visitor.open("/events/demo").await;
    if !visitor.has_session() {
        visitor.until("admitted").await;
    }
    visitor.open("/events/demo").await.status.as_u16()
}

/// Holds and orders one seat; the path of the order.
async fn buy(visitor: &mut Browser, seat: &str) -> String {
    let hold = visitor.post("/events/demo/holds", &[], &json!({ "seats": [seat] })).await;
    assert_eq!(hold.status, 201, "{hold:?}");
    let body = json!({ "hold": hold.json()["hold"] });
    let order = visitor.post("/orders", &[("idempotency-key", seat)], &body).await;
    assert_eq!(order.status, 202, "{order:?}");
    format!("/orders/{}", order.json()["order"].as_str().unwrap())
}

/// A slowloris on the private listeners would otherwise lock the operator out.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_says_nothing_is_closed() {
    use tokio::io::AsyncReadExt as _;
    let data = tempfile::tempdir().unwrap();
    let demo = Demo::start(data.path(), &[]);
    let silent = [&demo.shop, &demo.admin, &demo.box_office].map(|url| async move {
        let mut stream = tokio::net::TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap();
        let mut byte = [0; 1];
        let closed = tokio::time::timeout(std::time::Duration::from_secs(30), stream.read(&mut byte)).await;
        assert_eq!(closed.expect("still open after 30 s").unwrap(), 0);
    });
    futures_util::future::join_all(silent).await;
}
