//! G5: the store is away, comes back, or comes back empty.

use std::{collections::BTreeSet, process::Command, sync::Arc};

use http::StatusCode;
use stanchion::store::redis_engine::RedisEngine;

use super::{super::support::browser::Browser, House, RedisServer, eventually, keyring};

fn signal(redis: &RedisServer, name: &str) {
    let status = Command::new("kill").args([name, &redis.pid().to_string()]).status().unwrap();
    assert!(status.success());
}

async fn house_on(redis: &RedisServer) -> House {
    let engine = RedisEngine::connect(&redis.url()).await.unwrap();
    House::on(Arc::new(engine), keyring(), |config| config.policy.capacity = 1).await
}

async fn ready(house: &House) -> bool {
    house.admin(http::Method::GET, "/readyz", None, "").await.0 == StatusCode::OK
}

/// C11, B27.
#[tokio::test]
async fn while_the_store_is_away_sessions_pass_places_are_kept_and_newcomers_are_promised_one() {
    let redis = RedisServer::start();
    let house = house_on(&redis).await;
    let (mut ann, mut ben) = (house.browser(), house.browser());
    ann.open("/").await;
    ben.open("/").await;
    assert_eq!(ben.status().await["position"], 1);
    signal(&redis, "-STOP");
    eventually("the outage to be noticed", async || (!ready(&house).await).then_some(())).await;

    assert_eq!(ann.open("/").await.status, StatusCode::OK, "no session needs the store");
    assert_eq!(ben.open("/").await.status, StatusCode::SERVICE_UNAVAILABLE, "queued, not failed");
    let status = ben.status().await;
    assert_eq!((&status["state"], &status["position"]), (&"waiting".into(), &1.into()));
    let mut cat = house.browser();
    assert_eq!(cat.open("/").await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!((cat.cookies.len(), &cat.status().await["state"]), (1, &"waiting".into()));

    let mut waits = BTreeSet::new();
    for _ in 0..200 {
        waits.insert(ben.status().await["next_poll_ms"].as_u64().unwrap());
    }
    let (least, most) = (*waits.first().unwrap(), *waits.last().unwrap());
    assert!(least >= 4_000, "slower than usual: {least}");
    assert!(most * 10 >= least * 14, "spread by a fifth each way: {least} to {most}");

    signal(&redis, "-CONT");
    eventually("the store to be back", async || ready(&house).await.then_some(())).await;
    let behind = |visitor: &Browser| {
        let mut tab = visitor.clone();
        async move { tab.status().await["ahead"] == 1 }
    };
    let mut tab = cat.clone();
    eventually("Cat to enter the line", async || {
        tab.clone().status().await;
        (house.figure("line").await == 2).then_some(())
    })
    .await;
    tab.status().await;
    assert!(behind(&tab).await, "behind Ben");
    ann.open("/done").await;
    ben.until("admitted").await;
    assert_eq!(tab.status().await["state"], "waiting");
}

#[tokio::test]
async fn a_store_that_lost_everything_gets_places_and_sessions_back_in_their_order() {
    let redis = RedisServer::start();
    let engine = RedisEngine::connect(&redis.url()).await.unwrap();
    let house = House::on(Arc::new(engine), keyring(), |config| {
        config.policy.capacity = 1;
        config.policy.settle = std::time::Duration::from_secs(2);
    })
    .await;
    let (mut ann, mut ben, mut cat) = (house.browser(), house.browser(), house.browser());
    ann.open("/").await;
    ben.open("/").await;
    cat.open("/").await;
    assert_eq!(cat.status().await["ahead"], 1);
    redis.command("FLUSHALL");

    // Cat polls first, and is behind Ben all the same; Ann's next request registers her session.
    cat.status().await;
    eventually("everybody to be back", async || {
        let (mut one, mut two, mut three) = (cat.clone(), ann.clone(), ben.clone());
        one.status().await;
        assert_eq!(two.open("/").await.status, StatusCode::OK);
        three.status().await;
        let back = house.figure("line").await == 2 && house.figure("inside").await == 1;
        (back && house.figure("joined_total").await == 2).then_some(())
    })
    .await;
    // While places come back, nobody is told a position.
    ben.until_json("/__room/main/status", |status| status["position"].is_number()).await;
    assert_eq!((&ben.status().await["position"], &cat.status().await["position"]), (&1.into(), &2.into()));
    ann.open("/done").await;
    ben.until("admitted").await;
    assert_eq!(cat.status().await["state"], "waiting", "capacity holds through the loss (G1)");
}
