//! Redis forgets scripts, stalls, drops connections, fills up. Callers get an answer in time and are told the truth.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use stanchion::store::{SharedEngine, StoreError, Value};

use super::{bulk, script};
use crate::support::{
    redis_client::{RedisClient, by_each_client},
    redis_server::RedisServer,
};

by_each_client!(
    a_flushed_script_is_loaded_again,
    a_stalled_server_costs_half_a_second_and_no_more,
    a_dropped_connection_heals_by_itself,
    a_server_that_was_away_is_found_again,
    a_server_that_cannot_write_now_is_unavailable_rather_than_wrong,
    a_demoted_master_is_followed_until_it_is_one_again,
    a_server_that_loads_its_data_is_unavailable_and_then_has_all_of_it,
);

async fn start(client: RedisClient) -> (RedisServer, SharedEngine) {
    let server = RedisServer::start();
    let engine = client.connect(&server.url()).await;
    (server, engine)
}

pub async fn run(engine: &SharedEngine, lua: &'static str) -> Result<Value, StoreError> {
    engine.run(script(lua), &["k".to_owned()], vec![]).await
}

/// Calls until one succeeds. None may fail for good, or take much longer than the deadline.
pub async fn heals(engine: &SharedEngine) {
    let write = script("return redis.call('SET', KEYS[1], 'back')");
    let keys = ["k".to_owned()];
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let asked = Instant::now();
        match engine.run(write, &keys, vec![]).await {
            Ok(_) => return,
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                assert!(Instant::now() < deadline, "still failing: {error}");
            }
        }
        assert!(asked.elapsed() < Duration::from_secs(1), "took {:?}", asked.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// C01.
async fn a_flushed_script_is_loaded_again(client: RedisClient) {
    let (server, engine) = start(client).await;
    let counter = script("return redis.call('INCR', KEYS[1])");
    let keys = ["k".to_owned()];
    for expected in 1..=3 {
        assert_eq!(engine.run(counter, &keys, vec![]).await.unwrap(), Value::Int(expected));
        assert!(server.command("SCRIPT FLUSH").starts_with("+OK"));
    }
    // It was loaded, not only evaluated: without a flush in between the server knows it.
    engine.run(counter, &keys, vec![]).await.unwrap();
    assert!(server.command(&format!("SCRIPT EXISTS {}", counter.sha1())).contains(":1"));
}

/// C08: for longer than a connection may stay silent, so it is replaced under way.
async fn a_stalled_server_costs_half_a_second_and_no_more(client: RedisClient) {
    let (server, engine) = start(client).await;
    run(&engine, "return 1").await.unwrap();
    server.signal("-STOP");
    let stopped = Instant::now();
    while stopped.elapsed() < Duration::from_secs(3) {
        let asked = Instant::now();
        for result in join_all((0..50).map(|_| run(&engine, "return 1"))).await {
            let error = result.expect_err("nobody can have answered");
            assert!(error.is_transient(), "{error}");
        }
        assert!(asked.elapsed() < Duration::from_secs(1), "took {:?}", asked.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.signal("-CONT");
    heals(&engine).await;
    // Nothing piled up: one connection (and this one) is left, and calls are quick.
    join_all((0..500).map(|_| run(&engine, "return 1"))).await.into_iter().for_each(|result| drop(result.unwrap()));
    server.wait_for("INFO clients", "connected_clients:2\r");
}

/// C08.
async fn a_dropped_connection_heals_by_itself(client: RedisClient) {
    let (server, engine) = start(client).await;
    run(&engine, "return redis.call('SET', KEYS[1], 'before')").await.unwrap();
    for _ in 0..3 {
        server.command("CLIENT KILL TYPE normal SKIPME yes");
        heals(&engine).await;
    }
    assert_eq!(run(&engine, "return redis.call('GET', KEYS[1])").await.unwrap(), bulk("back"));
}

async fn a_server_that_was_away_is_found_again(client: RedisClient) {
    let (mut server, engine) = start(client).await;
    server.kill();
    for _ in 0..20 {
        let asked = Instant::now();
        let error = run(&engine, "return 1").await.expect_err("nobody can have answered");
        assert!(error.is_transient() && asked.elapsed() < Duration::from_secs(1), "{error}, {:?}", asked.elapsed());
    }
    server.start_again();
    heals(&engine).await;
}

async fn a_server_that_cannot_write_now_is_unavailable_rather_than_wrong(client: RedisClient) {
    let (server, engine) = start(client).await;
    let write = "return redis.call('SET', KEYS[1], 'x')";
    for (begin, end, code) in [
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "OOM"),
        ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY"),
        ("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "NOREPLICAS"),
    ] {
        assert!(server.command(begin).starts_with("+OK"), "{begin}");
        let error = run(&engine, write).await.expect_err(begin);
        assert!(error.is_transient() && error.to_string().contains(code), "{begin}: {error}");
        assert!(server.command(end).starts_with("+OK"), "{end}");
        heals(&engine).await;
    }
}

/// C04: the address may lead to another server by now, so each refusal leads to another attempt, at a bounded rate.
async fn a_demoted_master_is_followed_until_it_is_one_again(client: RedisClient) {
    let (server, engine) = start(client).await;
    heals(&engine).await;
    let connections = |server: &RedisServer| -> u32 {
        let stats = server.command("INFO stats");
        stats.lines().find_map(|line| line.strip_prefix("total_connections_received:")).unwrap().parse().unwrap()
    };
    let before = connections(&server);
    server.command("REPLICAOF 127.0.0.1 1");
    let demoted = Instant::now();
    while demoted.elapsed() < Duration::from_secs(2) {
        let error = run(&engine, "return redis.call('SET', KEYS[1], 'x')").await.expect_err("it is a replica");
        assert!(error.is_transient(), "{error}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let attempts = connections(&server) - before - 2;
    assert!((1..40).contains(&attempts), "{attempts} attempts in two seconds");
    server.command("REPLICAOF NO ONE");
    heals(&engine).await;
}

/// C07: slowed down to a millisecond a key.
async fn a_server_that_loads_its_data_is_unavailable_and_then_has_all_of_it(client: RedisClient) {
    const KEYS: u32 = 1_000;
    let slow = ["--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"];
    let mut server = RedisServer::start_with(&slow);
    let engine = client.connect(&server.url()).await;
    for number in 0..KEYS {
        let key = [format!("{number}")];
        engine.run(script("return redis.call('SET', KEYS[1], string.rep('x', 100))"), &key, vec![]).await.unwrap();
    }
    assert!(server.command("SAVE").starts_with("+OK"));
    server.kill();
    server.start_again();
    let count = script("return redis.call('EXISTS', KEYS[1], KEYS[2])");
    let keys = ["0".to_owned(), (KEYS - 1).to_string()];
    let (mut refused, deadline) = (0, Instant::now() + Duration::from_secs(20));
    let found = loop {
        match engine.run(count, &keys, vec![]).await {
            Ok(found) => break found,
            Err(error) => {
                assert!(error.is_transient() && Instant::now() < deadline, "{error}");
                refused += 1;
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(found, Value::Int(2), "half a store was taken for the whole");
    assert!(refused > 0, "it loaded too fast to be seen");
}
