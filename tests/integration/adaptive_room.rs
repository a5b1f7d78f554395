//! A room that follows its shop, from outside: a whole gateway before a shop that turns slow, fails, or has enough; and
//! several nodes of which one decides.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::{Method, StatusCode};
use serde_json::Value;
use stanchion::{
    admission::LiveRoom,
    clock::SystemClock,
    config::{Adaptive, RoomConfig},
    shutdown::Shutdown,
    store::{SharedEngine, redis_engine::RedisEngine},
    tokens::{Keyring, SigningKey},
};

use super::support::{
    browser::Browser,
    eventually::eventually,
    house::{self, House, ShopMood},
    redis_server::RedisServer,
};

/// Far above what the shop takes when it is well, far below what it takes when it is not.
const TARGET: Duration = Duration::from_millis(700);
const SLOW: Duration = Duration::from_secs(3);

fn follows(config: &mut RoomConfig) {
    config.policy.rate = 100.0;
    config.adaptive = Some(Adaptive { target_p95: TARGET, max_error_ratio: 0.05, min_rate: 2.0, max_rate: 100.0 });
}

/// Forty requests at once of one visitor who is inside, each answered.
async fn storm(visitor: &Browser) -> Vec<StatusCode> {
    let requests = (0..40).map(|_| {
        let mut tab = visitor.clone();
        async move { tab.call(Method::GET, "/shop").await.status }
    });
    futures_util::future::join_all(requests).await
}

/// Storms until the room's figures are as wanted.
async fn storm_until(house: &House, visitor: &Browser, what: &str, wanted: impl Fn(f64, &Value) -> bool) -> f64 {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        storm(visitor).await;
        let (rate, pace) = (house.figure("rate").await.as_f64().unwrap(), house.figure("pace").await);
        if wanted(rate, &pace) {
            return rate;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}: {rate} {pace}");
    }
}

#[tokio::test]
async fn when_the_shop_turns_slow_the_rate_falls_and_when_it_is_well_again_it_rises() {
    let house = House::open(follows).await;
    let mut ann = house.browser();
    ann.open("/shop").await;
    storm_until(&house, &ann, "the first reports", |rate, pace| rate >= 99.0 && pace["shop"]["answered"] != 0).await;

    house.shop.set_mood(ShopMood { delay: SLOW, ..ShopMood::default() });
    storm_until(&house, &ann, "a lower rate", |rate, pace| rate < 50.0 && pace["reason"] == "slow").await;
    assert_eq!(ann.open("/shop").await.status, StatusCode::OK, "nobody is ejected");

    house.shop.set_mood(ShopMood::default());
    let low = storm_until(&house, &ann, "a shop that is well", |_, pace| pace["reason"] == "raising").await;
    assert!((2.0..50.0).contains(&low), "{low}");
    storm_until(&house, &ann, "the rate to rise", |rate, pace| rate > low * 1.02 && pace["reason"] == "raising").await;
}

#[tokio::test]
async fn errors_of_the_shop_and_a_shop_that_is_gone_lower_the_rate() {
    let failing = House::open(follows).await;
    failing.shop.set_mood(ShopMood { status: StatusCode::INTERNAL_SERVER_ERROR, ..ShopMood::default() });
    let gone = House::open(|config| {
        follows(config);
        config.origins = stanchion::config::Origins::at(http::Uri::from_static("http://127.0.0.1:9"));
    })
    .await;
    for house in [failing, gone] {
        let mut ann = house.browser();
        assert!(ann.open("/shop").await.status.is_server_error());
        assert!(ann.has_session());
        storm_until(&house, &ann, "a lower rate", |rate, pace| rate < 50.0 && pace["reason"] == "errors").await;
    }
}

#[tokio::test]
async fn what_comes_past_the_room_says_nothing_about_the_shop() {
    let house = House::open(|config| {
        follows(config);
        config.bypass.push(stanchion::config::BypassRule {
            path_prefix: Some("/shop".to_owned()),
            ..stanchion::config::BypassRule::default()
        });
    })
    .await;
    house.shop.set_mood(ShopMood { status: StatusCode::INTERNAL_SERVER_ERROR, ..ShopMood::default() });
    storm(&house.browser()).await;
    eventually("two reports", async || (house.figure("pace").await["reason"] == "steady").then_some(())).await;
    assert_eq!(house.figure("pace").await["shop"]["failed"], 0);
    assert!(house.figure("rate").await.as_f64().unwrap() > 99.0);
}

#[tokio::test]
async fn the_shops_word_on_its_capacity_holds_in_every_room_and_ejects_nobody() {
    let house = House::open(|config| config.policy.capacity = 4).await;
    let mut inside = [house.browser(), house.browser(), house.browser()];
    for visitor in &mut inside {
        assert_eq!(visitor.open("/shop").await.status, StatusCode::OK);
    }
    house.shop.set_mood(ShopMood { can_take: 0, ..ShopMood::default() });
    let full = async || {
        let answer = inside[0].clone().open("/shop").await;
        assert!(answer.headers.get("stanchion-capacity").is_none(), "not for visitors");
        let pace = house.figure("pace").await;
        (house.figure("capacity").await == 3 && pace["reason"] == "origin_asked").then_some(pace)
    };
    let pace = eventually("the capacity in force", full).await;
    assert_eq!(pace["configured_capacity"], 4);
    for visitor in &mut inside {
        assert_eq!(visitor.open("/shop").await.status, StatusCode::OK);
    }
    let mut late = house.browser();
    assert_eq!(late.open("/shop").await.status, StatusCode::SERVICE_UNAVAILABLE);

    house.shop.set_mood(ShopMood::default());
    inside[0].open("/shop").await;
    late.until("admitted").await;
}

/// A node of its own, running until the shutdown.
async fn node(engine: &SharedEngine, keyring: &Keyring, shutdown: &Shutdown) -> Arc<LiveRoom> {
    let mut config = house::config();
    follows(&mut config);
    let room =
        LiveRoom::open(config, Arc::clone(engine), Arc::new(SystemClock), keyring.clone(), true, None).await.unwrap();
    room.start(shutdown);
    room
}

fn decides(room: &LiveRoom) -> bool {
    room.outlook().is_some_and(|outlook| outlook.is_decided_here)
}

async fn one_decides_and_the_other_takes_over(engine: SharedEngine) {
    let (keyring, stops) = (Keyring::new(SigningKey::random(), Vec::new()), [Shutdown::new(), Shutdown::new()]);
    let first = node(&engine, &keyring, &stops[0]).await;
    eventually("the first to decide", async || decides(&first).then_some(())).await;
    let second = node(&engine, &keyring, &stops[1]).await;
    let nodes = |room: &LiveRoom| room.outlook().and_then(|outlook| outlook.shop).map_or(0, |shop| shop.nodes);
    eventually("both to be heard", async || (nodes(&first) == 2 && nodes(&second) == 2).then_some(())).await;
    assert!(decides(&first) && !decides(&second));

    // Only the second sees that the shop fails.
    for _ in 0..50 {
        second.start_exchange().failed();
    }
    let rate = || first.view().snapshot.rate;
    eventually("a lower rate", async || (rate() < 50.0).then_some(())).await;
    let low = rate();

    stops[0].stop();
    eventually("the second to take over", async || decides(&second).then_some(())).await;
    assert!(second.view().snapshot.rate <= low * 1.2, "what the first decided is not forgotten");
    stops[1].stop();
}

#[tokio::test]
async fn one_node_decides_and_another_takes_over_in_process() {
    one_decides_and_the_other_takes_over(house::in_process()).await;
}

#[tokio::test]
async fn one_node_decides_and_another_takes_over_on_redis() {
    let redis = RedisServer::start();
    let engine = RedisEngine::connect(&redis.url()).await.unwrap();
    one_decides_and_the_other_takes_over(Arc::new(engine)).await;
}
