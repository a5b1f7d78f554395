//! A master that Sentinels watch: another takes over, and calls follow it without a restart.

use std::time::{Duration, Instant};

use stanchion::store::{SharedEngine, StoreError};

use super::{
    bulk,
    outages::{heals, run},
};
use crate::support::{
    redis_client::{RedisClient, by_each_client},
    redis_server::{RedisServer, free_port},
};

by_each_client!(
    a_killed_master_is_followed_to_the_replica,
    a_frozen_master_is_followed_to_the_replica,
    a_master_that_hands_over_is_followed,
    a_master_that_no_sentinel_knows_is_refused,
);

struct Watched {
    master: RedisServer,
    replica: RedisServer,
    sentinel: RedisServer,
}

impl Watched {
    fn start() -> Self {
        let master = RedisServer::start();
        let replica = RedisServer::replica_of(&master);
        let sentinel = RedisServer::sentinel_of(&master);
        // It promotes no replica that it has not heard of lately.
        sentinel.wait_for("SENTINEL REPLICAS main", "master-link-status\r\n$2\r\nok");
        Self { master, replica, sentinel }
    }

    /// The first Sentinel named is down.
    fn url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:{},{}/main", free_port(), self.sentinel.address())
    }

    async fn engine(&self, client: RedisClient) -> SharedEngine {
        let engine = client.connect(&self.url()).await;
        run(&engine, "return redis.call('SET', 'kept', 'kept', 'EX', 1000)").await.unwrap();
        self.replica.wait_for("EXISTS kept", ":1");
        engine
    }

    /// Calls work again, and it is the replica that runs them. What the old master is told last is lost.
    async fn is_followed(&self, engine: &SharedEngine) {
        self.replica.wait_for("INFO replication", "role:master");
        writes_reach(&self.replica, engine).await;
        assert_eq!(run(engine, "return redis.call('GET', 'kept')").await.unwrap(), bulk("kept"));
    }
}

async fn writes_reach(server: &RedisServer, engine: &SharedEngine) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !server.command("GET k").contains("back") {
        assert!(Instant::now() < deadline, "still with the old master");
        heals(engine).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn stays_with(server: &RedisServer, engine: &SharedEngine) {
    for _ in 0..50 {
        run(engine, "return redis.call('INCR', 'later')").await.unwrap();
    }
    assert!(server.command("GET later").contains("50"));
}

async fn a_killed_master_is_followed_to_the_replica(client: RedisClient) {
    let mut watched = Watched::start();
    let engine = watched.engine(client).await;
    watched.master.kill();
    let error = run(&engine, "return redis.call('SET', KEYS[1], 'x')").await.expect_err("nobody can have answered");
    assert!(error.is_transient(), "{error}");
    watched.is_followed(&engine).await;
    // Back, and a master by its own word until a Sentinel tells it otherwise, it misleads nobody.
    watched.master.start_again();
    stays_with(&watched.replica, &engine).await;
}

/// Nothing breaks here: calls just go unanswered.
async fn a_frozen_master_is_followed_to_the_replica(client: RedisClient) {
    let watched = Watched::start();
    let engine = watched.engine(client).await;
    watched.master.signal("-STOP");
    watched.is_followed(&engine).await;
    watched.master.signal("-CONT");
    stays_with(&watched.replica, &engine).await;
}

async fn a_master_that_hands_over_is_followed(client: RedisClient) {
    let watched = Watched::start();
    let engine = watched.engine(client).await;
    watched.sentinel.wait_for("SENTINEL FAILOVER main", "+OK");
    watched.is_followed(&engine).await;
}

async fn a_master_that_no_sentinel_knows_is_refused(client: RedisClient) {
    let watched = Watched::start();
    let error =
        client.try_connect(&watched.url().replace("/main", "/other")).await.expect_err("there is no such master");
    assert!(error.to_string().contains("other"), "{error}");
    if matches!(client, RedisClient::Redis) {
        assert!(matches!(error, StoreError::Unusable(_)), "{error}");
    }
    let alone = format!("redis+sentinel://127.0.0.1:{}/main", free_port());
    let asked = Instant::now();
    let error = client.try_connect(&alone).await.expect_err("nobody is there");
    assert!(error.is_transient() && asked.elapsed() < Duration::from_secs(3), "{error}, {:?}", asked.elapsed());
}

/// A master cut off from its Sentinels goes on as if nothing had happened; only they know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_was_replaced_behind_its_back_is_left() {
    let watched = Watched::start();
    let engine = watched.engine(RedisClient::Redis).await;
    // A Sentinel of the same name that has watched another master all along.
    let rival = RedisServer::start();
    watched.sentinel.wait_for("SENTINEL REMOVE main", "+OK");
    watched.sentinel.wait_for(&format!("SENTINEL MONITOR main 127.0.0.1 {} 1", rival.port()), "+OK");
    writes_reach(&rival, &engine).await;
}
