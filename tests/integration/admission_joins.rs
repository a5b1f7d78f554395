//! Group commit: joins that arrive together share a run of the script, and each still gets its own answer. Time is
//! paused where a run is held, so that no deadline passes while a slow machine gets everybody to the counter.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::future::join_all;
use stanchion::{
    admission::{LiveRoom, Standing, Turn},
    clock::SystemClock,
    queue::{Queue, Score, VisitorId},
    shutdown::Shutdown,
    store::redis_engine::RedisEngine,
};
use tokio::{
    sync::Barrier,
    task::{JoinHandle, yield_now},
    time::{Instant, timeout},
};

use crate::support::{
    house::{eventually, in_process},
    node::{keyring, node},
    redis_server::RedisServer,
    watched_engine::{Mood, WatchedEngine},
};

/// Arguments per visitor.
const EACH: usize = 4;

async fn watched() -> (Arc<WatchedEngine>, Arc<LiveRoom>) {
    let engine = WatchedEngine::before(in_process(), "join");
    let room = node(engine.clone(), SystemClock, &keyring(), |_| ()).await;
    (engine, room)
}

/// A newcomer who waits in line rather than going straight in.
fn arrive(room: &Arc<LiveRoom>) -> JoinHandle<Turn> {
    let room = Arc::clone(room);
    tokio::spawn(async move { room.come(None, false).await })
}

fn place(turn: &Turn) -> (VisitorId, Score) {
    assert_eq!(turn.standing, Standing::Waiting, "{turn:?}");
    let claims = turn.queue.as_ref().unwrap();
    (claims.sub, claims.score)
}

/// Lets every task run until all of them wait for something that is not other tasks.
async fn all_wait() {
    for _ in 0..2_000 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_rooms_join_flies_at_once_and_alone() {
    let (engine, room) = watched().await;
    for joins in 1..=5 {
        place(&room.come(None, false).await);
        assert_eq!(engine.runs(), vec![EACH; joins]);
    }
}

#[tokio::test(start_paused = true)]
async fn joins_that_arrive_during_a_flight_share_the_next_ones_in_order() {
    let (engine, room) = watched().await;
    engine.set(Mood::Hold);
    let mut joins = vec![arrive(&room)];
    engine.until_run(1).await;
    joins.extend((1..500).map(|_| arrive(&room)));
    all_wait().await;
    engine.let_go(10);
    let mut turns = Vec::new();
    for join in joins {
        turns.push(join.await.unwrap());
    }
    assert_eq!(engine.runs(), [1, 100, 100, 100, 100, 99].map(|visitors| visitors * EACH));
    // Tasks of one thread start in the order in which they were spawned.
    let scores: Vec<Score> = turns.iter().map(|turn| place(turn).1).collect();
    assert!(scores.is_sorted_by(|earlier, later| earlier < later), "not in the order of arrival");
    for (ahead, turn) in (0..).zip(&turns) {
        assert_eq!(turn.queue.as_ref().unwrap().ahead, Some(ahead), "somebody else's reply");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn five_hundred_at_a_barrier_have_one_place_each_in_few_calls() {
    let redis = RedisServer::start();
    let shared = Arc::new(RedisEngine::connect(&redis.url()).await.unwrap());
    let engine = WatchedEngine::before(shared.clone(), "join");
    let room = node(engine.clone(), SystemClock, &keyring(), |_| ()).await;
    let barrier = Arc::new(Barrier::new(500));
    let crowd = (0..500).map(|_| {
        let (room, barrier) = (Arc::clone(&room), Arc::clone(&barrier));
        tokio::spawn(async move {
            barrier.wait().await;
            room.come(None, false).await
        })
    });
    let crowd: Vec<_> = crowd.collect();
    let turns: Vec<Turn> = join_all(crowd).await.into_iter().map(Result::unwrap).collect();
    let visitors: BTreeSet<_> = turns.iter().map(|turn| place(turn).0).collect();
    let scores: BTreeSet<_> = turns.iter().map(|turn| place(turn).1).collect();
    assert_eq!((visitors.len(), scores.len()), (500, 500));
    let snapshot = Queue::new(shared, room.name()).snapshot(0).await.unwrap();
    assert_eq!((snapshot.line, snapshot.joined_total), (500, 500));
    for turn in &turns {
        let (_, score) = place(turn);
        let before = scores.range(..score).count() as u64;
        assert_eq!(turn.queue.as_ref().unwrap().ahead, Some(before));
    }
    assert_eq!(engine.runs().iter().sum::<usize>(), 500 * EACH);
    assert!(engine.runs().len() < 250, "{:?}", engine.runs());
}

/// G4: two tabs of one visitor in one flight.
#[tokio::test(start_paused = true)]
async fn a_visitor_twice_in_one_flight_has_one_place() {
    let (engine, room) = watched().await;
    engine.set(Mood::Away);
    // A promise is a visitor without a place.
    let promised = room.come(None, false).await;
    assert_eq!(promised.standing, Standing::Promised);
    let room = node(engine.clone(), SystemClock, &keyring(), |_| ()).await;
    engine.set(Mood::Hold);
    let first = arrive(&room);
    engine.until_run(2).await;
    let tabs: Vec<_> = (0..20)
        .map(|_| {
            let (room, claims) = (Arc::clone(&room), promised.queue.clone());
            tokio::spawn(async move { room.come(claims, false).await })
        })
        .collect();
    all_wait().await;
    engine.let_go(10);
    first.await.unwrap();
    let places: BTreeSet<_> = join_all(tabs).await.into_iter().map(|turn| place(&turn.unwrap())).collect();
    assert_eq!(places.len(), 1, "{places:?}");
    assert_eq!(places.first().unwrap().0, promised.queue.unwrap().sub);
}

#[tokio::test(start_paused = true)]
async fn a_flight_that_fails_is_everybodys_and_the_next_one_flies() {
    let (engine, room) = watched().await;
    engine.set(Mood::Hold);
    let mut joins = vec![arrive(&room)];
    engine.until_run(1).await;
    joins.extend((0..150).map(|_| arrive(&room)));
    all_wait().await;
    engine.set(Mood::Away);
    engine.let_go(1);
    let mut standings = Vec::new();
    for join in joins {
        standings.push(join.await.unwrap().standing);
    }
    assert_eq!(standings[0], Standing::Waiting, "its flight was on its way");
    assert!(standings[1..].iter().all(|standing| *standing == Standing::Promised), "a promise until the store is back");
    assert_eq!(engine.runs().len(), 2, "nobody tries again what just failed");

    // The room's tasks notice that the store is back.
    engine.set(Mood::Pass);
    let shutdown = Shutdown::new();
    room.start(&shutdown);
    eventually("a place", async || (room.come(None, false).await.standing == Standing::Waiting).then_some(())).await;
    shutdown.stop();
    assert!(shutdown.drain(Duration::from_secs(10)).await);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_answers_holds_nobody_beyond_the_deadline() {
    let (engine, room) = watched().await;
    engine.set(Mood::Hang);
    let began = Instant::now();
    for turn in join_all((0..150).map(|_| arrive(&room))).await {
        assert_eq!(turn.unwrap().standing, Standing::Promised);
    }
    assert!(began.elapsed() <= Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn whoever_finds_the_list_full_is_promised_a_place_at_once() {
    let (engine, room) = watched().await;
    engine.set(Mood::Hold);
    let first = arrive(&room);
    engine.until_run(1).await;
    let crowd: Vec<_> = (0..10_030).map(|_| arrive(&room)).collect();
    all_wait().await;
    let told: Vec<bool> = crowd.iter().map(JoinHandle::is_finished).collect();
    assert!(told[..10_000].iter().all(|told| !told) && told[10_000..].iter().all(|told| *told));
    engine.let_go(101);
    place(&first.await.unwrap());
    for (number, join) in crowd.into_iter().enumerate() {
        let standing = join.await.unwrap().standing;
        assert_eq!(standing, if number < 10_000 { Standing::Waiting } else { Standing::Promised }, "{number}");
    }
    assert_eq!(engine.runs().len(), 101);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_costs_nothing_and_harms_nobody() {
    let (engine, room) = watched().await;
    engine.set(Mood::Hold);
    // The first one started the flight that carries all the others.
    let first = arrive(&room);
    engine.until_run(1).await;
    let joins: Vec<_> = (0..90).map(|_| arrive(&room)).collect();
    all_wait().await;
    first.abort();
    for join in joins.iter().step_by(3) {
        join.abort();
    }
    all_wait().await;
    engine.let_go(10);
    let mut scores = BTreeSet::new();
    for (number, join) in joins.into_iter().enumerate() {
        match join.await {
            Ok(turn) => assert!(scores.insert(place(&turn).1)),
            Err(error) => assert!(error.is_cancelled() && number % 3 == 0, "{number}: {error}"),
        }
    }
    assert_eq!(scores.len(), 60);
    assert_eq!(engine.runs(), [EACH, 60 * EACH], "whoever went before the flight is not on it");
}

#[tokio::test(start_paused = true)]
async fn a_flight_that_dies_strands_nobody() {
    let (engine, room) = watched().await;
    engine.set(Mood::Panic);
    let joins: Vec<_> = (0..150).map(|_| arrive(&room)).collect();
    for turn in timeout(Duration::from_secs(10), join_all(joins)).await.unwrap() {
        assert_eq!(turn.unwrap().standing, Standing::Promised);
    }
    engine.set(Mood::Pass);
    place(&room.come(None, false).await);
}

#[tokio::test(start_paused = true)]
async fn shutting_down_waits_for_the_joins_under_way() {
    let (engine, room) = watched().await;
    let shutdown = Shutdown::new();
    room.start(&shutdown);
    engine.set(Mood::Hold);
    let first = arrive(&room);
    engine.until_run(1).await;
    let second = arrive(&room);
    all_wait().await;
    shutdown.stop();
    assert!(!shutdown.drain(Duration::from_millis(100)).await, "the flight is under way");
    engine.let_go(2);
    place(&first.await.unwrap());
    place(&second.await.unwrap());
    assert!(shutdown.drain(Duration::from_secs(10)).await);
}
