//! On a real Redis by its own clock: the engine that production uses.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use stanchion::{
    queue::{Arrival, Past, Place, Policy, Proof, Queue},
    store::redis_engine::RedisEngine,
};

use super::world::{is_called, is_inside, policy, room, visitor};
use crate::support::{eventually::eventually, redis_server::RedisServer};

async fn room_on(redis: &RedisServer, policy: &Policy) -> Queue {
    let engine = RedisEngine::connect(&redis.url()).await.unwrap();
    let queue = Queue::new(Arc::new(engine), &room());
    queue.configure(policy, Past::Blank).await.unwrap();
    queue
}

fn newcomer(number: u32) -> Arrival {
    Arrival { visitor: visitor(number), proof: None, may_enter: false }
}

#[tokio::test]
async fn a_visitor_goes_from_the_line_to_the_shop() {
    let redis = RedisServer::start();
    let queue = room_on(&redis, &Policy { session_ttl: Duration::from_millis(200), ..policy() }).await;
    let before_us = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    let place = queue.join(&[newcomer(1)]).await.unwrap()[0];
    assert!(matches!(place, Place::Waiting { score, .. } if u128::from(score.0) >= before_us), "{place:?}");
    assert_eq!(queue.call(50).await.unwrap().called, 1);
    assert!(is_called(queue.join(&[newcomer(1)]).await.unwrap()[0]));
    assert!(is_inside(queue.claim(visitor(1), None).await.unwrap()));
    let deadline = Instant::now() + Duration::from_secs(10);
    while queue.sweep().await.unwrap().sessions == 0 {
        assert!(Instant::now() < deadline, "the session never ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(queue.snapshot(0).await.unwrap().inside, 0);
}

#[tokio::test]
async fn the_repeat_of_a_join_only_reads() {
    let redis = RedisServer::start();
    let queue = room_on(&redis, &policy()).await;
    let crowd: Vec<Arrival> = (0..20).map(newcomer).collect();
    queue.join(&crowd).await.unwrap();
    let writes = || {
        let stats = redis.command("INFO commandstats");
        let of_writes = |line: &&str| ["cmdstat_zadd", "cmdstat_hset"].iter().any(|name| line.starts_with(name));
        let calls: Vec<String> =
            stats.lines().filter(of_writes).map(|line| line.split(',').next().unwrap().to_owned()).collect();
        calls
    };
    let before = writes();
    assert_eq!(before.len(), 2, "{before:?}");
    for _ in 0..10 {
        queue.join(&crowd).await.unwrap();
    }
    assert_eq!(writes(), before);
}

#[tokio::test]
async fn nobody_is_admitted_twice_by_nodes_that_race() {
    let redis = RedisServer::start();
    let capacity = 10;
    let policy = Policy { capacity, ..policy() };
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(room_on(&redis, &policy).await);
    }
    let crowd: Vec<Arrival> = (0..100).map(newcomer).collect();
    nodes[0].join(&crowd).await.unwrap();
    let runs = nodes.iter().cycle().take(30).map(|node| node.call(7));
    let called: u32 = futures_util::future::join_all(runs).await.into_iter().map(|run| run.unwrap().called).sum();
    assert_eq!(called, capacity);
    let claims = (0..100).flat_map(|number| nodes.iter().map(move |node| node.claim(visitor(number), None)));
    let places = futures_util::future::join_all(claims).await;
    let fresh = places.into_iter().filter(|place| matches!(place, Ok(Place::Inside { fresh: true, .. }))).count();
    assert_eq!(fresh, 10);
}

/// G5: whoever asks first after the store fell back to an older copy is believed, before any node has looked after it.
#[tokio::test]
async fn the_first_to_ask_a_store_that_fell_back_is_believed() {
    for session_first in [true, false] {
        let mut redis = RedisServer::start();
        let queue = room_on(&redis, &policy()).await;
        assert_eq!(redis.command("SAVE"), "+OK\r\n");
        let arrivals = [Arrival { may_enter: true, ..newcomer(1) }, newcomer(2)];
        let places = queue.join(&arrivals).await.unwrap();
        let [Place::Inside { expires_ms, admitted_ms, .. }, Place::Waiting { score, .. }] = places[..] else {
            panic!("{places:?}");
        };
        redis.restart();
        eventually("the engine to be connected again", async || queue.snapshot(0).await.ok()).await;
        let proof = Proof { score, issued_at_ms: score.0 / 1_000 };
        let renew = async || queue.renew(visitor(1), admitted_ms, expires_ms, Duration::from_mins(1), u64::MAX).await;
        let seen = async || queue.seen(&[(visitor(2), proof)]).await.unwrap()[0];
        let (session, place) = if session_first {
            (renew().await.unwrap(), seen().await)
        } else {
            let place = seen().await;
            (renew().await.unwrap(), place)
        };
        assert!(is_inside(session), "{session:?}");
        assert!(matches!(place, Place::Waiting { score: now, .. } if now == score), "{place:?}");
    }
}
