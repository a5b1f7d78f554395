//! A cluster: rooms spread over its slots, slots move, nodes die and are replaced.

use std::time::{Duration, Instant};

use stanchion::{
    queue::{Arrival, Past, Place, Policy, Queue, QueueError, RoomName, Schedule, VisitorId},
    store::{SharedEngine, StoreError},
};

use super::script;
use crate::support::{
    redis_client::{RedisClient, by_each_client},
    redis_cluster::{RedisCluster, id, ok, owner},
};

by_each_client!(
    rooms_are_spread_over_slots_and_each_works,
    a_room_is_followed_to_another_node,
    a_dead_master_costs_its_own_rooms_only_and_is_replaced,
    a_frozen_master_is_replaced,
    a_master_that_evicts_keys_is_refused,
);

const ROOMS: u32 = 12;

fn policy() -> Policy {
    Policy {
        capacity: 10,
        rate: 1_000.0,
        burst: 1_000,
        claim_window: Duration::from_secs(30),
        session_ttl: Duration::from_mins(10),
        absent_after: Duration::from_secs(90),
        grace: Duration::from_mins(5),
        settle: Duration::from_secs(10),
        schedule: Schedule::default(),
    }
}

fn room(number: u32) -> RoomName {
    format!("room-{number}").parse().unwrap()
}

fn line_key(number: u32) -> String {
    format!("stanchion:{{room-{number}}}:line")
}

fn arrival(number: u32, may_enter: bool) -> Arrival {
    Arrival { visitor: VisitorId::from_bits(u128::from(number) + 1), proof: None, may_enter }
}

/// A room whose slot the master of this number serves.
fn room_on(cluster: &RedisCluster, master: usize) -> u32 {
    (0..1_000).find(|number| owner(cluster.slot(&line_key(*number))) == master).unwrap()
}

async fn open(engine: &SharedEngine, number: u32) -> Queue {
    let queue = Queue::new(engine.clone(), &room(number));
    queue.configure(&policy(), Past::Blank).await.unwrap();
    queue
}

/// Joins until it works again. No failure may be for good, none may keep us waiting.
async fn heals(queue: &Queue, visitor: u32) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let asked = Instant::now();
        let joined = queue.join(&[arrival(visitor, false)]).await;
        assert!(asked.elapsed() < Duration::from_secs(1), "took {:?}", asked.elapsed());
        match joined {
            Ok(_) => return,
            Err(error) => assert!(error.is_transient() && Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// C03.
async fn rooms_are_spread_over_slots_and_each_works(client: RedisClient) {
    let cluster = RedisCluster::start();
    let engine = client.connect(&cluster.url()).await;
    for number in 0..ROOMS {
        let queue = open(&engine, number).await;
        let arrivals: Vec<_> = (0..30).map(|visitor| arrival(visitor, false)).collect();
        let places = queue.join(&arrivals).await.unwrap();
        assert!(places.iter().all(|place| matches!(place, Place::Waiting { .. })), "{places:?}");
        assert_eq!(queue.call(50).await.unwrap().called, 10);
        let inside = queue.claim(arrivals[0].visitor, None).await.unwrap();
        assert!(matches!(inside, Place::Inside { .. }), "{inside:?}");
        assert!(queue.release(arrivals[0].visitor).await.unwrap());
        assert!(queue.leave(arrivals[29].visitor).await.unwrap());
        queue.sweep().await.unwrap();
        let snapshot = queue.snapshot(0).await.unwrap();
        assert_eq!((snapshot.line, snapshot.called, snapshot.inside), (19, 9, 0));
    }
    for master in &cluster.masters {
        assert!(!master.command("DBSIZE").starts_with(":0"), "a node holds no room");
    }
    // Flushed scripts are loaded again on whichever node.
    for master in &cluster.masters {
        ok(master, "SCRIPT FLUSH");
    }
    for number in 0..ROOMS {
        Queue::new(engine.clone(), &room(number)).snapshot(0).await.unwrap();
    }
}

/// Resharding, step by step: while the room's keys are on the way calls say that it will work again, afterwards it does.
async fn a_room_is_followed_to_another_node(client: RedisClient) {
    let cluster = RedisCluster::start();
    let engine = client.connect(&cluster.url()).await;
    let number = room_on(&cluster, 1);
    let queue = open(&engine, number).await;
    queue.join(&[arrival(1, false)]).await.unwrap();
    let (slot, from, to) = (cluster.slot(&line_key(number)), &cluster.masters[1], &cluster.masters[2]);
    ok(to, &format!("CLUSTER SETSLOT {slot} IMPORTING {}", id(from)));
    ok(from, &format!("CLUSTER SETSLOT {slot} MIGRATING {}", id(to)));
    for name in ["line", "seen", "state"] {
        let error = queue.snapshot(0).await.expect_err("some of the room's keys may be here, some there");
        assert!(error.is_transient(), "{error}");
        let key = format!("stanchion:{{room-{number}}}:{name}");
        ok(from, &format!("MIGRATE 127.0.0.1 {} {key} 0 1000", to.port()));
    }
    for node in [to, from] {
        ok(node, &format!("CLUSTER SETSLOT {slot} NODE {}", id(to)));
    }
    heals(&queue, 2).await;
    assert_eq!(queue.snapshot(0).await.unwrap().line, 2);
    assert!(to.command(&format!("ZCARD {}", line_key(number))).starts_with(":2"));
}

async fn a_dead_master_costs_its_own_rooms_only_and_is_replaced(client: RedisClient) {
    let mut cluster = RedisCluster::start();
    let engine = client.connect(&cluster.url()).await;
    let replaced = open(&engine, room_on(&cluster, 0)).await;
    let dead = open(&engine, room_on(&cluster, 1)).await;
    let other = open(&engine, room_on(&cluster, 2)).await;
    cluster.replicated();
    cluster.masters[0].kill();
    cluster.masters[1].kill();
    let error = dead.snapshot(0).await.expect_err("nobody has this room");
    assert!(error.is_transient(), "{error}");
    for _ in 0..10 {
        match client {
            RedisClient::Redis => drop(other.snapshot(0).await.unwrap()),
            // It drops all its connections when one is lost, and makes none anew while one fails.
            #[cfg(feature = "fred")]
            RedisClient::Fred => {
                let answer = other.snapshot(0).await;
                assert!(answer.as_ref().map_or_else(QueueError::is_transient, |_| true), "{answer:?}");
            }
        }
    }
    // It takes most of the masters to promote a replica.
    cluster.masters[1].start_again();
    cluster.replica.wait_for("INFO replication", "role:master");
    heals(&replaced, 1).await;
    assert_eq!(replaced.snapshot(0).await.unwrap().line, 1);
    // The one without a replica had no copy of its data either: its room has to be configured again.
    let deadline = Instant::now() + Duration::from_secs(20);
    while dead.configure(&policy(), Past::Blank).await.is_err() {
        assert!(Instant::now() < deadline, "never came back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    heals(&dead, 1).await;
    heals(&other, 1).await;
}

async fn a_frozen_master_is_replaced(client: RedisClient) {
    let cluster = RedisCluster::start();
    let engine = client.connect(&cluster.url()).await;
    let (frozen, other) = (open(&engine, room_on(&cluster, 0)).await, open(&engine, room_on(&cluster, 2)).await);
    cluster.replicated();
    cluster.masters[0].signal("-STOP");
    cluster.replica.wait_for("INFO replication", "role:master");
    heals(&frozen, 1).await;
    heals(&other, 1).await;
    cluster.masters[0].signal("-CONT");
    cluster.masters[0].wait_for("INFO replication", "role:slave");
    heals(&frozen, 2).await;
}

/// C05: one of several is enough.
async fn a_master_that_evicts_keys_is_refused(client: RedisClient) {
    let cluster = RedisCluster::start();
    ok(&cluster.masters[1], "CONFIG SET maxmemory-policy allkeys-lru");
    let error = client.try_connect(&cluster.url()).await.expect_err("it would evict places in line");
    assert!(matches!(error, StoreError::Unusable(_)), "{error}");
    assert!(error.to_string().contains(&cluster.masters[1].address()), "{error}");
    ok(&cluster.masters[1], "CONFIG SET maxmemory-policy noeviction");
    let engine = client.connect(&cluster.url()).await;
    engine.run(script("return 1"), &[], vec![]).await.unwrap();
}
