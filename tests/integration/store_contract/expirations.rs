//! The server tells when a key runs out, where it may be had to; whoever listens hears of it again after an outage.

use std::time::Duration;

use futures_util::{StreamExt as _, stream::BoxStream};
use stanchion::store::{Engine as _, redis_engine::RedisEngine};
use tokio::time::timeout;

use crate::support::redis_server::RedisServer;

async fn listen(url: &str) -> BoxStream<'static, ()> {
    RedisEngine::connect(url).await.unwrap().expirations("k").unwrap()
}

async fn next(stream: &mut BoxStream<'static, ()>) -> Option<()> {
    timeout(Duration::from_secs(10), stream.next()).await.expect("no news in ten seconds")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_set_to_tell_and_tells_again_after_a_restart() {
    let mut server = RedisServer::start_with(&["--notify-keyspace-events", "Eg"]);
    let mut stream = listen(&server.url()).await;
    for _ in 0..2 {
        // Once when it begins to listen, for what it may have missed.
        assert_eq!(next(&mut stream).await, Some(()));
        assert!(server.command("SET k v PX 20").contains("OK"));
        assert_eq!(next(&mut stream).await, Some(()));
        let set = server.command("CONFIG GET notify-keyspace-events");
        let set = set.rsplit("\r\n").nth(1).unwrap().to_owned();
        assert!("EgKx".chars().all(|flag| set.contains(flag)), "what others set stays: {set}");
        server.restart();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_not_be_set_is_not_waited_for() {
    let server = RedisServer::start();
    assert!(server.command("ACL SETUSER limited on >secret ~* &* +@all -config").contains("OK"));
    let mut stream = listen(&format!("redis://limited:secret@{}", server.address())).await;
    assert_eq!(next(&mut stream).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_key_that_was_asked_for_counts() {
    let server = RedisServer::start();
    let mut stream = listen(&server.url()).await;
    assert_eq!(next(&mut stream).await, Some(()));
    for line in ["SET kk v PX 1", "SET k v", "DEL k", "SET k v PX 100000"] {
        server.command(line);
    }
    server.wait_for("EXISTS kk", ":0");
    assert!(timeout(Duration::from_millis(200), stream.next()).await.is_err(), "nothing ran out");
}
