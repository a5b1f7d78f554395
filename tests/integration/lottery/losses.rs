//! A store that is lost around the draw, on the in-process engine and on Redis.

use std::sync::atomic::{AtomicBool, Ordering};

use stanchion::queue::{VisitorId, lottery::Seed};

use super::*;

/// A store that forgets when the test says so.
struct Store {
    engine: SharedEngine,
    memory: Option<Arc<Memory>>,
    redis: Option<RedisServer>,
}

/// An in-process engine that another takes the place of.
#[derive(Debug)]
struct Memory(Mutex<SharedEngine>);

impl Engine for Memory {
    fn run<'a>(
        &'a self,
        script: &'static Script,
        keys: &'a [String],
        args: Vec<Arg>,
    ) -> BoxFuture<'a, Result<Value, StoreError>> {
        let engine = Arc::clone(&self.0.lock().unwrap());
        Box::pin(async move { engine.run(script, keys, args).await })
    }
}

impl Store {
    fn in_process() -> Self {
        let memory = Arc::new(Memory(Mutex::new(in_process())));
        Self { engine: memory.clone(), memory: Some(memory), redis: None }
    }

    async fn on_redis() -> Self {
        let redis = RedisServer::start();
        Self { engine: redis_engine(&redis).await, memory: None, redis: Some(redis) }
    }

    /// Forgets everything; `houses` have noticed when this returns, and the sale is open again.
    async fn lose(&self, houses: &[&House]) {
        let before: Vec<_> = houses.iter().map(|house| house.room.view().snapshot.since_ms).collect();
        if let Some(memory) = &self.memory {
            *memory.0.lock().unwrap() = in_process();
        }
        if let Some(redis) = &self.redis {
            assert_eq!(redis.command("FLUSHALL"), "+OK\r\n");
        }
        for (house, before) in houses.iter().zip(before) {
            eventually("another history", async || (house.room.view().snapshot.since_ms != before).then_some(())).await;
        }
    }

    /// The houses are configured to open in an hour, and say so to a store that forgot.
    async fn open(&self, houses: &[&House]) {
        eventually("the opening", async || {
            let state = async |house: &&House| draw_json(house).await["state"] == "prequeue";
            let mut is_closed = false;
            for house in houses {
                is_closed |= state(house).await;
            }
            if is_closed {
                open_the_sale(houses[0], &self.engine).await;
            }
            (!is_closed).then_some(())
        })
        .await;
    }
}

fn with_beacon(config: &mut RoomConfig) {
    lottery(config);
    config.beacon = Some("drand quicknet round 7".to_owned());
}

async fn say_the_beacon(house: &House) -> serde_json::Value {
    eventually("the beacon is taken", async || {
        let path = "/api/rooms/main/beacon";
        house.admin(HttpMethod::POST, path, Some(ADMIN_TOKEN), "{\"value\":\"said\"}").await;
        draw_json(house).await["public_value"].is_string().then_some(())
    })
    .await;
    until_drawn(house).await
}

async fn until_sealed(houses: &[&House]) {
    for house in houses {
        eventually("the digest", async || draw_json(house).await["roster_digest"].is_string().then_some(())).await;
    }
}

async fn registered(house: &House, count: usize) -> Vec<Browser> {
    let mut crowd: Vec<Browser> = (0..count).map(|_| house.browser()).collect();
    for visitor in &mut crowd {
        register(visitor).await;
    }
    crowd
}

fn name(visitor: &Browser) -> VisitorId {
    visitor.claims("stanchion_q_main")["sub"].as_str().unwrap().parse().unwrap()
}

/// Everybody has the place that the published draw says.
async fn assert_drawn(house: &House, crowd: &mut [Browser], draw: &serde_json::Value) {
    let seed = Seed::from_hex(draw["seed"].as_str().unwrap()).unwrap();
    let draws = seed.with(draw["public_value"].as_str().unwrap());
    crowd.sort_by_key(|visitor| draws.of(name(visitor)));
    for visitor in crowd.iter_mut() {
        visitor.until("waiting").await;
    }
    eventually("everybody", async || (house.room.view().snapshot.line == crowd.len() as u64).then_some(())).await;
    for (at, visitor) in crowd.iter_mut().enumerate() {
        let status = visitor.until_json("/__room/main/status", |status| status["position"] == at + 1).await;
        assert!(status["message"].is_null(), "{status}");
    }
}

async fn who_came_back_to_the_pre_queue_draws_after_a_second_loss(store: Store) {
    let keys = keyring();
    let one = House::on(store.engine.clone(), keys.clone(), with_beacon).await;
    let two = House::on(store.engine.clone(), keys, with_beacon).await;
    let houses = [&one, &two];
    let mut crowd = registered(&one, 12).await;
    store.lose(&houses).await;
    for (at, visitor) in crowd.iter_mut().enumerate() {
        let house = houses[at % 2];
        let mut there = Browser { cookies: visitor.cookies.clone(), ..house.browser() };
        assert_eq!(there.status().await["state"], "prequeue");
        visitor.cookies = there.cookies;
    }
    eventually("the roster", async || (draw_json(&one).await["roster"] == 12).then_some(())).await;
    store.open(&houses).await;
    until_sealed(&houses).await;

    store.lose(&houses).await;
    store.open(&houses).await;
    for visitor in &mut crowd {
        assert_eq!(visitor.status().await["state"], "prequeue");
    }
    let draw = say_the_beacon(&two).await;
    assert_eq!(draw["roster"], 12, "as it was published");
    assert_drawn(&one, &mut crowd, &draw).await;
}

#[tokio::test]
async fn who_came_back_to_the_pre_queue_draws_after_a_second_loss_in_process() {
    who_came_back_to_the_pre_queue_draws_after_a_second_loss(Store::in_process()).await;
}

#[tokio::test]
async fn who_came_back_to_the_pre_queue_draws_after_a_second_loss_on_redis() {
    who_came_back_to_the_pre_queue_draws_after_a_second_loss(Store::on_redis().await).await;
}

/// An app without cookies is told by its polls.
#[tokio::test]
async fn an_app_is_given_the_token_that_says_it_was_put_back() {
    let store = Store::in_process();
    let house = House::on(store.engine.clone(), keyring(), with_beacon).await;
    let ask = async |method: HttpMethod, path: &str, token: Option<&str>| {
        let mut headers = vec![("accept", "application/json")];
        headers.extend(token.map(|token| ("stanchion-queue-token", token)));
        request(method, &format!("{}/__room/main/{path}", house.url), &headers, String::new()).await.json()
    };
    let joined = ask(HttpMethod::POST, "join", None).await;
    let first = joined["queue_token"].as_str().unwrap();
    assert!(ask(HttpMethod::GET, "status", Some(first)).await["queue_token"].is_null(), "nothing is new");
    store.lose(&[&house]).await;
    let polled = ask(HttpMethod::GET, "status", Some(first)).await;
    let second = polled["queue_token"].as_str().unwrap();
    assert!(polled["state"] == "prequeue" && first != second, "{polled}");
    assert!(ask(HttpMethod::GET, "status", Some(second)).await["queue_token"].is_null(), "once");
}

/// Whichever gateway the operator asks.
#[tokio::test]
async fn every_gateway_has_the_roster_after_a_loss() {
    let store = Store::on_redis().await;
    let (keys, data) = (keyring(), [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()]);
    let one = House::after(store.engine.clone(), keys.clone(), data[0].path(), with_beacon).await;
    let two = House::after(store.engine.clone(), keys, data[1].path(), with_beacon).await;
    let houses = [&one, &two];
    registered(&one, 5).await;
    store.open(&houses).await;
    until_sealed(&houses).await;
    for dir in &data {
        let is_there = || std::fs::exists(dir.path().join("roster-main-1.txt")).unwrap();
        eventually("the roster", async || is_there().then_some(())).await;
    }
    store.lose(&houses).await;
    for house in houses {
        let (status, text) = house.admin(HttpMethod::GET, "/api/rooms/main/roster", Some(ADMIN_TOKEN), "").await;
        assert_eq!((status, text.lines().count()), (StatusCode::OK, 5), "{text}");
        assert_eq!(draw_json(house).await["roster"], 5);
    }
}

/// An engine whose looks at the room show what the last one before showed, when the test says so.
#[derive(Debug)]
struct Behind {
    engine: SharedEngine,
    stays: AtomicBool,
    last: Mutex<Option<Value>>,
}

impl Engine for Behind {
    fn run<'a>(
        &'a self,
        script: &'static Script,
        keys: &'a [String],
        args: Vec<Arg>,
    ) -> BoxFuture<'a, Result<Value, StoreError>> {
        Box::pin(async move {
            if script.file() != "snapshot-8.lua" {
                return self.engine.run(script, keys, args).await;
            }
            if self.stays.load(Ordering::SeqCst)
                && let Some(last) = self.last.lock().unwrap().clone()
            {
                return Ok(last);
            }
            let value = self.engine.run(script, keys, args).await?;
            *self.last.lock().unwrap() = Some(value.clone());
            Ok(value)
        })
    }
}

async fn who_polls_where_the_draw_is_not_known_yet_has_their_draw(store: Store) {
    let keys = keyring();
    let behind =
        Arc::new(Behind { engine: store.engine.clone(), stays: AtomicBool::new(false), last: Mutex::default() });
    let one = House::on(store.engine.clone(), keys.clone(), with_beacon).await;
    let two = House::on(behind.clone(), keys, with_beacon).await;
    let houses = [&one, &two];
    let mut crowd = registered(&two, 12).await;
    store.open(&houses).await;
    until_sealed(&houses).await;
    store.lose(&houses).await;
    store.open(&houses).await;
    until_sealed(&houses).await;
    behind.stays.store(true, Ordering::SeqCst);
    let draw = say_the_beacon(&one).await;
    for visitor in &mut crowd {
        assert_eq!(visitor.status().await["state"], "prequeue", "the draw is not known here");
    }
    // They are told to the store.
    several_looks(&one).await;
    behind.stays.store(false, Ordering::SeqCst);
    assert_drawn(&one, &mut crowd, &draw).await;
}

#[tokio::test]
async fn who_polls_where_the_draw_is_not_known_yet_has_their_draw_in_process() {
    who_polls_where_the_draw_is_not_known_yet_has_their_draw(Store::in_process()).await;
}

#[tokio::test]
async fn who_polls_where_the_draw_is_not_known_yet_has_their_draw_on_redis() {
    who_polls_where_the_draw_is_not_known_yet_has_their_draw(Store::on_redis().await).await;
}
