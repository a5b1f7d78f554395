//! The lottery from outside: the pre-queue, the draw, and the proof that it was fair.

mod losses;
mod nodes;
mod operator;
mod proof;
mod restarts;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_util::future::BoxFuture;
use http::{Method as HttpMethod, StatusCode};
use stanchion::{
    config::RoomConfig,
    queue::{Method, Past, Policy, Queue, Schedule},
    store::{Arg, Engine, Script, SharedEngine, StoreError, Value, redis_engine::RedisEngine},
    tokens::{Keyring, SigningKey},
};

use super::support::{
    browser::Browser,
    house::{ADMIN_TOKEN, House, eventually, in_process},
    http::request,
    redis_server::RedisServer,
};

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn keyring() -> Keyring {
    Keyring::new(SigningKey::random(), Vec::new())
}

/// A lottery whose pre-queue is open and which opens when the test says so. Nobody is let in.
fn lottery(config: &mut RoomConfig) {
    config.policy.capacity = 0;
    config.policy.schedule = Schedule {
        prequeue_at_ms: Some(now_ms() - 1_000),
        opens_at_ms: Some(now_ms() + 3_600_000),
        closes_at_ms: None,
        method: Method::Lottery,
    };
}

/// Writes another policy, as a node with another configuration would.
async fn configure(house: &House, engine: &SharedEngine, change: impl FnOnce(&mut Policy)) {
    let mut policy = house.room.config().policy.clone();
    change(&mut policy);
    let queue = Queue::new(Arc::clone(engine), house.room.name());
    queue.configure(&policy, Past::Unknown).await.unwrap();
}

async fn open_the_sale(house: &House, engine: &SharedEngine) {
    configure(house, engine, |policy| policy.schedule.opens_at_ms = Some(now_ms())).await;
}

/// Joins by navigating, and is in the pre-queue.
async fn register(visitor: &mut Browser) {
    assert_eq!(visitor.open("/shop").await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(visitor.claims("stanchion_q_main")["draw"], true);
}

async fn draw_json(house: &House) -> serde_json::Value {
    let answer = house.browser().call(HttpMethod::GET, "/__room/main/draw.json").await;
    assert_eq!((answer.status, answer.header("cache-control")), (StatusCode::OK, "public, max-age=1"));
    answer.json()
}

/// Waits until everybody drew, as `house` sees it.
async fn until_drawn(house: &House) -> serde_json::Value {
    eventually("the draw", async || Some(draw_json(house).await).filter(|draw| draw["seed"].is_string())).await
}

/// An engine that counts what is run.
#[derive(Debug)]
struct Counting {
    engine: SharedEngine,
    runs: Mutex<BTreeMap<&'static str, u32>>,
}

impl Counting {
    fn new(engine: SharedEngine) -> Arc<Self> {
        Arc::new(Self { engine, runs: Mutex::default() })
    }

    fn of(&self, script: &str) -> u32 {
        self.runs.lock().unwrap().get(script).copied().unwrap_or(0)
    }
}

impl Engine for Counting {
    fn run<'a>(
        &'a self,
        script: &'static Script,
        keys: &'a [String],
        args: Vec<Arg>,
    ) -> BoxFuture<'a, Result<Value, StoreError>> {
        *self.runs.lock().unwrap().entry(script.file()).or_default() += 1;
        self.engine.run(script, keys, args)
    }
}

/// Spearman's rank correlation of two orders of the same.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn rank_correlation(ranks: &[f64]) -> f64 {
    let n = ranks.len() as f64;
    let squares: f64 = ranks.iter().enumerate().map(|(at, rank)| (rank - at as f64).powi(2)).sum();
    1.0 - 6.0 * squares / (n * (n * n - 1.0))
}

/// B21: who comes first gains nothing, and a place once drawn stays.
#[tokio::test]
async fn b21_who_comes_early_gains_nothing_and_late_ones_are_behind() {
    let counting = Counting::new(in_process());
    let engine: SharedEngine = counting.clone();
    let house = House::on(Arc::clone(&engine), keyring(), lottery).await;
    let mut early: Vec<Browser> = (0..200).map(|_| house.browser()).collect();
    for visitor in &mut early {
        register(visitor).await;
    }
    let status = early[0].status().await;
    assert_eq!((&status["state"], &status["position"]), (&"prequeue".into(), &serde_json::Value::Null));
    eventually("the count", async || (early[0].clone().status().await["line"] == 200).then_some(())).await;
    open_the_sale(&house, &engine).await;
    until_drawn(&house).await;
    let mut late: Vec<Browser> = (0..50).map(|_| house.browser()).collect();
    for visitor in &mut late {
        visitor.open("/shop").await;
    }

    let asked = (counting.of("claim-8.lua"), counting.of("join-8.lua"));
    let mut ranks = Vec::new();
    for visitor in &mut early {
        let status = visitor.until("waiting").await;
        ranks.push(status["position"].as_f64().unwrap() - 1.0);
        let claims = visitor.claims("stanchion_q_main");
        assert!(claims.get("draw").is_none() && claims["score"].as_u64().unwrap() < 1 << 50, "{claims}");
    }
    let mut sorted = ranks.clone();
    sorted.sort_by(f64::total_cmp);
    assert_eq!(sorted, (0..200).map(f64::from).collect::<Vec<_>>(), "each place once");
    let correlation = rank_correlation(&ranks);
    assert!(correlation.abs() < 4.0 / 199_f64.sqrt(), "{correlation}");
    for (at, visitor) in late.iter_mut().enumerate() {
        assert_eq!(
            visitor.until_json("/__room/main/status", |it| !it["position"].is_null()).await["position"],
            201 + at
        );
    }
    for (visitor, rank) in early.iter_mut().zip(&ranks) {
        assert_eq!(visitor.status().await["position"].as_f64(), Some(rank + 1.0), "stays");
    }
    assert_eq!((counting.of("claim-8.lua"), counting.of("join-8.lua")), asked, "no poll asks the store");
}

#[tokio::test]
async fn the_states_follow_the_schedule() {
    let engine = in_process();
    let house = House::on(Arc::clone(&engine), keyring(), |config| {
        lottery(config);
        config.policy.schedule.prequeue_at_ms = Some(now_ms() + 1_800_000);
    })
    .await;
    let mut ann = house.browser();
    ann.open("/shop").await;
    let status = ann.status().await;
    assert_eq!(status["state"], "scheduled");
    assert!(status["opens_at"].is_string());
    assert!(ann.open("/__room/main").await.text().contains("not opened yet"));
    let draw = draw_json(&house).await;
    assert!(draw["commitment"].is_string() && draw["roster"] == 0, "before anybody comes: {draw}");

    configure(&house, &engine, |policy| policy.schedule.prequeue_at_ms = Some(now_ms() - 1)).await;
    let status = ann.until("prequeue").await;
    assert_eq!((&status["position"], &status["ahead"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    let page = ann.open("/__room/main").await;
    assert!(page.text().contains("/__room/main/receipt"), "the way to the receipt");
    assert!(page.text().contains("It opens on <strong>"), "and when it opens");
    let pause = "{\"mode\":\"paused\"}";
    house.admin(HttpMethod::POST, "/api/rooms/main/mode", Some(ADMIN_TOKEN), pause).await;
    assert_eq!(ann.status().await["state"], "prequeue", "a pause begins with the opening");
    open_the_sale(&house, &engine).await;
    let status = ann.until("paused").await;
    assert_eq!(status["position"], 1);
    house.set_mode("open").await;
    configure(&house, &engine, |policy| {
        policy.schedule.opens_at_ms = Some(now_ms());
        policy.capacity = 1;
    })
    .await;
    assert_eq!(ann.until("admitted").await["location"], "/shop");
    assert_eq!(ann.cookies.keys().collect::<Vec<_>>(), ["stanchion_s_main"]);
}

#[tokio::test]
async fn an_app_keeps_its_first_token_through_the_draw() {
    let engine = in_process();
    let house = House::on(Arc::clone(&engine), keyring(), lottery).await;
    let ask = async |method: HttpMethod, path: &str, token: Option<&str>| {
        let mut headers = vec![("accept", "application/json")];
        headers.extend(token.map(|token| ("stanchion-queue-token", token)));
        request(method, &format!("{}/__room/main/{path}", house.url), &headers, String::new()).await.json()
    };
    let joined = ask(HttpMethod::POST, "join", None).await;
    assert_eq!(joined["state"], "prequeue");
    let token = joined["queue_token"].as_str().unwrap();
    let again = ask(HttpMethod::POST, "join", Some(token)).await;
    assert_eq!((&again["state"], house.figure("joined_total").await.as_u64() <= Some(1)), (&"prequeue".into(), true));
    let receipt = ask(HttpMethod::GET, "receipt", Some(token)).await;
    assert_eq!(receipt["room"], "main");
    open_the_sale(&house, &engine).await;
    until_drawn(&house).await;
    let status = eventually("a place", async || {
        Some(ask(HttpMethod::GET, "status", Some(token)).await).filter(|status| status["state"] == "waiting")
    })
    .await;
    assert_eq!(status["position"], 1);
    // Joining again gives the token that knows what was drawn; both go on working, for one place.
    let drawn = ask(HttpMethod::POST, "join", Some(token)).await;
    for token in [token, drawn["queue_token"].as_str().unwrap()] {
        assert_eq!(ask(HttpMethod::GET, "status", Some(token)).await["position"], 1);
    }
    assert_eq!(house.figure("line").await, 1);
    assert_eq!(ask(HttpMethod::GET, "receipt", Some(drawn["queue_token"].as_str().unwrap())).await, receipt);
}

#[tokio::test]
async fn whoever_leaves_the_pre_queue_draws_nothing() {
    let engine = in_process();
    let house = House::on(Arc::clone(&engine), keyring(), lottery).await;
    let (mut ann, mut ben) = (house.browser(), house.browser());
    register(&mut ann).await;
    register(&mut ben).await;
    let kept = ann.clone();
    assert_eq!(ann.call(HttpMethod::POST, "/__room/main/leave").await.status, StatusCode::NO_CONTENT);
    open_the_sale(&house, &engine).await;
    let draw = until_drawn(&house).await;
    assert_eq!(draw["roster"], 1);
    assert_eq!(ben.until("waiting").await["position"], 1);
    // A copy of the cookie is no place.
    let mut copy = kept;
    copy.until("expired").await;
    assert_eq!(house.figure("line").await, 1);
}

/// Whoever gave up their chance, or lost it, is told so on every node before the draw already, and has no proof of one.
#[tokio::test]
async fn who_left_the_pre_queue_or_was_sent_away_is_told_so_and_may_come_again() {
    let (engine, keys) = (in_process(), keyring());
    let houses = [
        House::on(Arc::clone(&engine), keys.clone(), lottery).await,
        House::on(Arc::clone(&engine), keys, lottery).await,
    ];
    let (mut ann, mut ben) = (houses[0].browser(), houses[0].browser());
    register(&mut ann).await;
    register(&mut ben).await;
    let copy = ann.clone();
    assert_eq!(ann.call(HttpMethod::POST, "/__room/main/leave").await.status, StatusCode::NO_CONTENT);
    let whom = serde_json::json!({ "visitor": ben.claims("stanchion_q_main")["sub"] }).to_string();
    let (status, said) = houses[0].admin(HttpMethod::POST, "/api/rooms/main/revoke", Some(ADMIN_TOKEN), &whom).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    for visitor in [&copy, &ben] {
        for house in &houses {
            let mut there = Browser { cookies: visitor.cookies.clone(), ..house.browser() };
            assert!(there.until("expired").await["position"].is_null());
            let receipt = there.call(HttpMethod::GET, "/__room/main/receipt").await;
            assert_eq!((receipt.status, receipt.text().contains("left it")), (StatusCode::NOT_FOUND, true));
            assert!(there.open("/__room/main").await.text().contains("data-state=\"expired\""), "the page says so too");
        }
    }
    // Neither is shut out: they take part anew, under the same name, on every node.
    for visitor in [copy, ben] {
        let mut again = visitor;
        assert_eq!(again.call(HttpMethod::POST, "/__room/main/join").await.json()["state"], "prequeue");
        for house in &houses {
            let mut there = Browser { cookies: again.cookies.clone(), ..house.browser() };
            assert_eq!(there.status().await["state"], "prequeue");
            let receipt = there.call(HttpMethod::GET, "/__room/main/receipt").await;
            assert_eq!(
                (receipt.status, &receipt.json()["arrival"]),
                (StatusCode::OK, &again.claims("stanchion_q_main")["score"])
            );
        }
    }
    open_the_sale(&houses[0], &engine).await;
    assert_eq!(until_drawn(&houses[1]).await["roster"], 2);
}

/// Not a moment later, when the node looks at the room again.
#[tokio::test]
async fn a_commitment_is_public_and_receipts_are_given_from_the_first_moment_on() {
    let house = House::open(lottery).await;
    assert!(house.room.published_draw().unwrap().commitment.is_some());
    let mut ann = house.browser();
    register(&mut ann).await;
    assert_eq!(ann.call(HttpMethod::GET, "/__room/main/receipt").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_room_without_a_lottery_has_nothing_to_publish() {
    let house = House::open(|_| ()).await;
    let mut ann = house.browser();
    for path in ["/__room/main/draw.json", "/__room/main/receipt", "/__room/other/draw.json"] {
        let answer = ann.call(HttpMethod::GET, path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert_eq!(answer.header("content-type"), "application/problem+json");
    }
    let lottery = House::open(lottery).await;
    let answer = lottery.browser().call(HttpMethod::GET, "/__room/main/receipt").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND, "who did not come has no receipt");
}

async fn redis_engine(redis: &RedisServer) -> SharedEngine {
    Arc::new(RedisEngine::connect(&redis.url()).await.unwrap())
}

/// Time enough for a node to take every step that it would.
async fn several_looks(house: &House) {
    let until_ms = house.room.view().snapshot.now_ms + 1_500;
    eventually("some looks", async || (house.room.view().snapshot.now_ms > until_ms).then_some(())).await;
}
