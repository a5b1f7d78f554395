//! G5: what else Redis can do to visitors, and none of it shows: forget scripts, refuse writes, load, hang up.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use stanchion::store::redis_engine::RedisEngine;

use super::{super::support::browser::Browser, House, RedisServer, eventually, keyring};

/// One place in the shop: Ann has it, Ben waits for it.
struct Scene {
    redis: RedisServer,
    house: House,
    ann: Browser,
    ben: Browser,
}

impl Scene {
    async fn on(redis: RedisServer) -> Self {
        let engine = RedisEngine::connect(&redis.url()).await.unwrap();
        let house = House::on(Arc::new(engine), keyring(), |config| {
            config.policy.capacity = 1;
            config.policy.settle = Duration::from_secs(1);
        })
        .await;
        let (mut ann, mut ben) = (house.browser(), house.browser());
        assert_eq!(ann.open("/").await.status, StatusCode::OK);
        ben.open("/").await;
        assert_eq!(ben.status().await["position"], 1);
        Self { redis, house, ann, ben }
    }

    async fn ready(&self) -> bool {
        self.house.admin(http::Method::GET, "/readyz", None, "").await.0 == StatusCode::OK
    }

    async fn becomes_ready(&self, wanted: bool) {
        eventually("readiness to change", async || (self.ready().await == wanted).then_some(())).await;
    }

    /// Ann passes, Ben keeps his place, and who comes new is queued with a token of their own.
    async fn nobody_notices(&mut self) -> Browser {
        assert_eq!(self.ann.open("/").await.status, StatusCode::OK);
        assert_eq!(self.ben.open("/").await.status, StatusCode::SERVICE_UNAVAILABLE, "queued, not failed");
        let status = self.ben.status().await;
        assert_eq!((&status["state"], &status["position"]), (&"waiting".into(), &1.into()));
        let mut cat = self.house.browser();
        let answer = cat.open("/").await;
        assert_eq!((answer.status, cat.cookies.len()), (StatusCode::SERVICE_UNAVAILABLE, 1), "queued, not failed");
        assert!(answer.headers.contains_key("retry-after"));
        cat
    }

    /// Ann leaves, Ben gets her place, Cat comes after him.
    async fn goes_on(&mut self, mut cat: Browser) {
        let mut tab = cat.clone();
        eventually("Cat to stand behind Ben", async || {
            let status = tab.clone().status().await;
            (status["state"] == "waiting" && status["ahead"] == 1).then_some(())
        })
        .await;
        tab.status().await;
        self.ann.open("/done").await;
        self.ben.until("admitted").await;
        assert_eq!(cat.status().await["state"], "waiting", "capacity holds");
    }
}

/// C01: readiness is told by a script's success, so it can be believed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushed_scripts_are_not_noticed() {
    let mut scene = Scene::on(RedisServer::start()).await;
    let mut visitors = Vec::new();
    for _ in 0..20 {
        scene.redis.command("SCRIPT FLUSH");
        visitors.push(scene.nobody_notices().await);
        assert!(scene.ready().await);
    }
    let cat = visitors.swap_remove(0);
    scene.goes_on(cat).await;
}

/// C04.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demoted_master_refuses_writes_and_nobody_notices() {
    let mut scene = Scene::on(RedisServer::start()).await;
    scene.redis.command("REPLICAOF 127.0.0.1 1");
    scene.becomes_ready(false).await;
    let cat = scene.nobody_notices().await;
    scene.redis.command("REPLICAOF NO ONE");
    scene.becomes_ready(true).await;
    scene.goes_on(cat).await;
}

/// C06.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_memory_limit_slots_still_change_hands() {
    let mut scene = Scene::on(RedisServer::start()).await;
    scene.redis.command("CONFIG SET maxmemory 1mb");
    let mut cat = scene.nobody_notices().await;
    // It serves whoever is here.
    scene.becomes_ready(true).await;
    scene.ann.open("/done").await;
    scene.ben.until("admitted").await;
    assert_eq!(scene.house.figure("line").await, 0, "Cat could not be written down");
    assert_eq!(cat.status().await["state"], "waiting");
    scene.redis.command("CONFIG SET maxmemory 0");
    eventually("Cat to enter the line", async || {
        cat.clone().status().await;
        (scene.house.figure("line").await == 1).then_some(())
    })
    .await;
    scene.ben.open("/done").await;
    cat.until("admitted").await;
}

/// C07: a store that is still reading its file is no store without sessions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_loads_is_away_rather_than_empty() {
    let slow = ["--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"];
    let populate = ["--enable-debug-command", "yes"];
    let mut scene = Scene::on(RedisServer::start_with(&[&slow[..], &populate[..]].concat())).await;
    assert!(scene.redis.command("DEBUG POPULATE 2000 filler 100").starts_with("+OK"));
    assert!(scene.redis.command("SAVE").starts_with("+OK"));
    scene.redis.kill();
    scene.redis.start_again();
    scene.becomes_ready(false).await;
    assert!(scene.redis.command("PING").starts_with("-LOADING"), "it loaded too fast to be seen");
    let cat = scene.nobody_notices().await;
    scene.becomes_ready(true).await;
    assert_eq!(scene.ann.open("/").await.status, StatusCode::OK);
    // No position is told while others may still register again; nobody is sent back to the end of the line.
    let ben = scene.ben.until_json("/__room/main/status", |status| !status["position"].is_null()).await;
    assert_eq!((&ben["state"], &ben["position"]), (&"waiting".into(), &1.into()));
    scene.goes_on(cat).await;
}

/// C08; a Redis that stalls is told elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_connections_are_not_noticed() {
    let mut scene = Scene::on(RedisServer::start()).await;
    let mut visitors = Vec::new();
    for _ in 0..10 {
        scene.redis.command("CLIENT KILL TYPE normal SKIPME yes");
        visitors.push(scene.nobody_notices().await);
    }
    scene.becomes_ready(true).await;
    let cat = visitors.swap_remove(0);
    scene.goes_on(cat).await;
}
