//! Who left, was released or revoked, and the reset: nothing of it is forgotten by a store that was away or fell back, nor by a
//! restart with everything lost.

use std::{sync::Arc, time::Duration};

use stanchion::{
    config::RoomConfig,
    queue::{Past, Queue},
    store::{SharedEngine, redis_engine::RedisEngine},
};

use crate::support::{
    browser::Browser,
    house::{self, ADMIN_TOKEN, House, eventually, in_process},
    node::keyring,
    redis_server::RedisServer,
    watched_engine::{Mood, WatchedEngine},
};

fn occupied(house: &House) -> u64 {
    let now = house.room.view().snapshot.clone();
    now.called + now.inside
}

fn at(house: &House, visitor: &Browser) -> Browser {
    Browser { cookies: visitor.cookies.clone(), ..house.browser() }
}

/// Lets them in one after the other; the room holds two.
async fn two_inside_one_waits(house: &House) -> [Browser; 3] {
    let [mut ann, mut ben, mut cat] = [house.browser(), house.browser(), house.browser()];
    for visitor in [&mut ann, &mut ben, &mut cat] {
        visitor.open("/").await;
    }
    assert!(ann.has_session() && ben.has_session() && !cat.has_session());
    [ann, ben, cat]
}

async fn reset(house: &House) {
    let body = "{\"room\":\"main\"}";
    let (status, said) = house.admin(http::Method::POST, "/api/rooms/main/reset", Some(ADMIN_TOKEN), body).await;
    assert!(status.is_success(), "{said}");
}

#[tokio::test]
async fn who_leaves_while_the_store_is_away_frees_the_slot_when_it_is_back() {
    for script in ["leave", "release"] {
        let engine = WatchedEngine::before(in_process(), script);
        let house = House::on(engine.clone(), keyring(), |config| config.policy.capacity = 2).await;
        let [mut ann, _, mut cat] = two_inside_one_waits(&house).await;
        engine.set(Mood::Away);
        if script == "leave" {
            ann.call(http::Method::POST, "/__room/main/leave").await;
        } else {
            ann.open("/done").await;
        }
        engine.until_run(1).await;
        // Whatever failed is not tried again: this is another way.
        cat.until("admitted").await;
        assert_eq!(engine.runs().len(), 1, "{script}");
    }
}

/// A copy of before they left brings them back; they held the slots for which others wait.
#[tokio::test]
async fn who_left_is_not_brought_back_by_a_store_that_falls_back() {
    let mut redis = RedisServer::start();
    let engine = Arc::new(RedisEngine::connect(&redis.url()).await.unwrap());
    let house = House::on(engine, keyring(), |config| {
        config.policy.capacity = 2;
        config.policy.settle = Duration::from_secs(2);
    })
    .await;
    let [mut ann, mut ben, mut cat] = two_inside_one_waits(&house).await;
    let mut dan = house.browser();
    dan.open("/").await;
    assert_eq!(redis.command("SAVE"), "+OK\r\n");
    cat.call(http::Method::POST, "/__room/main/leave").await;
    ann.open("/done").await;
    ben.call(http::Method::POST, "/__room/main/leave").await;
    dan.until("admitted").await;
    let since_ms = house.room.view().snapshot.since_ms;
    redis.restart();
    eventually("another history", async || (house.room.view().snapshot.since_ms != since_ms).then_some(())).await;
    dan.open("/").await;
    eventually("them to be gone, and Dan to be back", async || {
        let now = house.room.view().snapshot.clone();
        (now.line == 0 && now.called + now.inside == 1).then_some(())
    })
    .await;
    let mut eve = house.browser();
    eve.open("/").await;
    eve.until("admitted").await;
    assert_eq!(occupied(&house), 2);
}

/// The embedded engine dies with its process.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_that_lost_everything_knows_who_was_released_and_revoked() {
    let (data, keys) = (tempfile::tempdir().unwrap(), keyring());
    let first = House::after(in_process(), keys.clone(), data.path(), |_| ()).await;
    let mut visitors = Vec::new();
    for _ in 0..3 {
        let mut visitor = first.browser();
        visitor.open("/").await;
        assert!(visitor.has_session());
        visitors.push(visitor);
    }
    let revoked = visitors[0].claims("stanchion_s_main")["sub"].as_str().unwrap().to_owned();
    visitors[1].open("/done").await;
    let (path, body) = ("/api/rooms/main/revoke", format!("{{\"visitor\":\"{revoked}\"}}"));
    let (status, said) = first.admin(http::Method::POST, path, Some(ADMIN_TOKEN), &body).await;
    assert!(status.is_success(), "{said}");
    eventually("two free slots", async || (occupied(&first) == 1).then_some(())).await;
    let kept = || std::fs::read_to_string(data.path().join("ended-main.txt")).unwrap_or_default();
    eventually("both written down", async || (kept().lines().count() == 2).then_some(())).await;
    drop(first);

    let second = House::after(in_process(), keys, data.path(), |config| config.policy.capacity = 1).await;
    assert_eq!(at(&second, &visitors[2]).open("/").await.text(), "the shop");
    eventually("one inside", async || (occupied(&second) == 1).then_some(())).await;
    for gone in &visitors[..2] {
        let answer = at(&second, gone).call(http::Method::GET, "/").await;
        assert_ne!(answer.text(), "the shop", "with the session of before");
    }
    assert_eq!(occupied(&second), 1);
}

/// G5: tokens of before a reset stay void, those of after it stay good.
#[tokio::test(flavor = "multi_thread")]
async fn a_reset_outlives_a_restart_that_lost_everything() {
    let mut redis = RedisServer::start();
    let data = tempfile::tempdir().unwrap();
    let keys = keyring();
    let engine = async |redis: &RedisServer, embedded: bool| -> SharedEngine {
        if embedded { in_process() } else { Arc::new(RedisEngine::connect(&redis.url()).await.unwrap()) }
    };
    let single = |config: &mut RoomConfig| config.policy.capacity = 1;
    for embedded in [true, false] {
        let data = data.path().join(if embedded { "embedded" } else { "redis" });
        let first = House::after(engine(&redis, embedded).await, keys.clone(), &data, single).await;
        let mut old = first.browser();
        old.open("/").await;
        reset(&first).await;
        let mut new = first.browser();
        new.open("/").await;
        assert!(new.has_session());
        drop(first);
        redis.restart();

        let second = House::after(engine(&redis, embedded).await, keys.clone(), &data, single).await;
        assert_eq!(second.room.view().snapshot.epoch, 2, "embedded: {embedded}");
        assert_eq!(at(&second, &new).open("/").await.text(), "the shop");
        eventually("the session", async || (occupied(&second) == 1).then_some(())).await;
        assert_ne!(at(&second, &old).call(http::Method::GET, "/").await.text(), "the shop", "of before the reset");
    }
}

/// The notes of another installation must not end the sale of this one.
#[tokio::test]
async fn notes_written_with_other_keys_change_nothing() {
    let data = tempfile::tempdir().unwrap();
    let elsewhere = House::after(in_process(), keyring(), data.path(), |_| ()).await;
    reset(&elsewhere).await;
    drop(elsewhere);
    let engine = in_process();
    let queue = Queue::new(Arc::clone(&engine), &house::config().name);
    queue.configure(&house::config().policy, Past::Blank).await.unwrap();
    let here = House::after(engine, keyring(), data.path(), |_| ()).await;
    assert_eq!(here.room.view().snapshot.epoch, 1);
}
