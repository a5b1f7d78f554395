//! Redis forgets scripts, stalls, drops connections, fills up. Callers get an answer in time and are told the truth.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use stanchion::store::{Engine as _, StoreError, Value, redis_engine::RedisEngine};

use super::{bulk, script};
use crate::support::redis_server::RedisServer;

async fn start() -> (RedisServer, RedisEngine) {
    let server = RedisServer::start();
    let engine = RedisEngine::connect(&server.url()).await.unwrap();
    (server, engine)
}

async fn run(engine: &RedisEngine, lua: &'static str) -> Result<Value, StoreError> {
    engine.run(script(lua), &["k".to_owned()], vec![]).await
}

async fn heals(engine: &RedisEngine) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match run(engine, "return redis.call('SET', KEYS[1], 'back')").await {
            Ok(_) => return,
            Err(error) => assert!(Instant::now() < deadline, "still failing: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn signal(server: &RedisServer, name: &str) {
    assert!(Command::new("kill").args([name, &server.pid().to_string()]).status().unwrap().success());
}

#[tokio::test]
async fn a_flushed_script_is_loaded_again() {
    let (server, engine) = start().await;
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

#[tokio::test]
async fn a_stalled_server_costs_half_a_second_and_no_more() {
    let (server, engine) = start().await;
    run(&engine, "return 1").await.unwrap();
    signal(&server, "-STOP");
    let asked = Instant::now();
    let calls = (0..50).map(|_| run(&engine, "return 1"));
    for result in futures_util::future::join_all(calls).await {
        let error = result.expect_err("nobody can have answered");
        assert!(error.is_transient(), "{error}");
    }
    assert!(asked.elapsed() < Duration::from_secs(1), "took {:?}", asked.elapsed());
    signal(&server, "-CONT");
    heals(&engine).await;
}

#[tokio::test]
async fn a_dropped_connection_heals_by_itself() {
    let (server, engine) = start().await;
    run(&engine, "return redis.call('SET', KEYS[1], 'before')").await.unwrap();
    for _ in 0..3 {
        server.command("CLIENT KILL TYPE normal SKIPME yes");
        heals(&engine).await;
    }
    assert_eq!(run(&engine, "return redis.call('GET', KEYS[1])").await.unwrap(), bulk("back"));
}

#[tokio::test]
async fn a_server_that_was_away_is_found_again() {
    let (server, engine) = start().await;
    let port = server.url().rsplit_once(':').unwrap().1.to_owned();
    drop(server);
    for _ in 0..20 {
        let asked = Instant::now();
        let error = run(&engine, "return 1").await.expect_err("nobody can have answered");
        assert!(error.is_transient() && asked.elapsed() < Duration::from_secs(1), "{error}, {:?}", asked.elapsed());
    }
    let mut child = Command::new("redis-server")
        .args(["--port", &port, "--bind", "127.0.0.1", "--save", ""])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    heals(&engine).await;
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn a_server_that_cannot_write_now_is_unavailable_rather_than_wrong() {
    let (server, engine) = start().await;
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
