//! Sessions on the node: what a node that was not there, or not the one, believes of a session that ended.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use stanchion::{
    admission::{LiveRoom, Standing, sessions::Renewal},
    clock::SystemClock,
    queue::{Past, Policy, Proof, Queue, QueueError, VisitorId},
    shutdown::Shutdown,
    store::{SharedEngine, redis_engine::RedisEngine},
    tokens::{Claims, Keyring},
};
use tokio::{sync::Barrier, task::JoinSet};

use crate::support::{
    house::{self, eventually, in_process},
    node::{TokioClock, keyring, node, store},
    redis_server::RedisServer,
    watched_engine::WatchedEngine,
};

async fn open(engine: &SharedEngine, keys: &Keyring) -> Arc<LiveRoom> {
    node(Arc::clone(engine), SystemClock, keys, |_| ()).await
}

/// Lets a newcomer straight in.
async fn admit(room: &Arc<LiveRoom>) -> Claims {
    match room.come(None, true).await.standing {
        Standing::Admitted(session) => *session,
        other => panic!("not let in but {other:?}"),
    }
}

async fn inside(engine: &SharedEngine) -> u64 {
    Queue::new(Arc::clone(engine), &house::config().name).snapshot(0).await.unwrap().inside
}

async fn on_redis() -> (SharedEngine, RedisServer) {
    let redis = RedisServer::start();
    (Arc::new(RedisEngine::connect(&redis.url()).await.unwrap()), redis)
}

#[tokio::test]
async fn a_restarted_node_believes_a_released_session_no_longer_than_one_look() {
    let (redis, _server) = on_redis().await;
    for engine in [in_process(), redis] {
        let keys = keyring();
        let before = open(&engine, &keys).await;
        let (done, gone, stays) = (admit(&before).await, admit(&before).await, admit(&before).await);
        before.release(&done);
        before.leave(gone.sub, Some(&gone)).await;
        eventually("the free slots", async || (inside(&engine).await == 1).then_some(())).await;
        drop(before);

        let after = open(&engine, &keys).await;
        for ended in [&done, &gone] {
            eventually("the check", async || {
                after.touch(ended.clone()).await;
                (!after.is_live(ended)).then_some(())
            })
            .await;
        }
        after.touch(stays.clone()).await;
        assert_eq!(inside(&engine).await, 1, "nothing of it came back");
        assert!(after.is_live(&stays) && after.touch(stays).await.is_some());
    }
}

/// The store tells for the length of a session who was ended. The token of one that was pinned lives longer.
#[tokio::test(start_paused = true)]
async fn a_restarted_node_asks_about_sessions_that_ended_longer_ago_than_the_store_tells() {
    let (clock, keys, shutdown) = (TokioClock::now(), keyring(), Shutdown::new());
    let engine = store(clock);
    let before = node(Arc::clone(&engine), clock, &keys, |_| ()).await;
    before.start(&shutdown);
    let mut pinned = Vec::new();
    for _ in 0..2 {
        match before.renew(&admit(&before).await, Duration::from_mins(50)).await {
            Renewal::Kept(session) => pinned.push(session),
            other => panic!("not pinned: {other:?}"),
        }
    }
    let [done, stays] = &pinned[..] else { unreachable!() };
    before.release(done);
    tokio::time::sleep(Duration::from_secs(615)).await;
    let after = node(Arc::clone(&engine), clock, &keys, |_| ()).await;
    assert!(after.is_live(done), "it cannot know");
    assert!(after.touch(done.clone()).await.is_some(), "no request waits for the store");
    assert!(after.touch(stays.clone()).await.is_some());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!after.is_live(done) && after.is_live(stays));
    assert_eq!(inside(&engine).await, 1, "nothing of it came back");
    shutdown.stop();
}

#[tokio::test]
async fn a_session_is_checked_once_and_one_the_node_saw_begin_never() {
    let engine = WatchedEngine::before(in_process(), "renew");
    let (shared, keys): (SharedEngine, _) = (engine.clone(), keyring());
    let before = open(&shared, &keys).await;
    let old = admit(&before).await;
    let after = open(&shared, &keys).await;
    for _ in 0..20 {
        assert!(after.touch(old.clone()).await.is_some());
    }
    engine.until_run(1).await;
    // Opened at a millisecond of its own, after which the session begins.
    let new = eventually("a later millisecond", async || {
        let session = admit(&after).await;
        if session.admitted_ms.unwrap() > after.view().snapshot.now_ms {
            return Some(session);
        }
        after.leave(session.sub, Some(&session)).await;
        None
    })
    .await;
    let checks = engine.runs().len();
    for _ in 0..20 {
        assert!(after.touch(new.clone()).await.is_some());
        assert!(after.touch(old.clone()).await.is_some());
        tokio::task::yield_now().await;
    }
    assert_eq!(engine.runs().len(), checks);
    assert_eq!(checks, 1);
}

#[tokio::test]
async fn what_another_node_ended_is_refused_here_and_a_later_session_is_not() {
    let (engine, keys) = (in_process(), keyring());
    let (here, there) = (open(&engine, &keys).await, open(&engine, &keys).await);
    let first = admit(&there).await;
    let ended_ms = first.admitted_ms.unwrap() + 5;
    let news = (first.sub, ended_ms * 1_000);
    for _ in 0..3 {
        here.sessions_ended(&[news]);
        assert!(!here.is_live(&first));
    }
    assert!(there.is_live(&first));
    let second = Claims { admitted_ms: Some(ended_ms + 1), ..first.clone() };
    assert!(here.is_live(&second), "the same visitor, let in again");

    // It can be released here like any other, and the store hears of it.
    here.release(&second);
    assert!(!here.is_live(&second) && !here.is_live(&first));
    eventually("the free slot", async || (inside(&engine).await == 0).then_some(())).await;
    here.sessions_ended(&[news]);
    assert!(!here.is_live(&second), "old news change nothing");
}

/// Every way in which a slot is freed, at once and from several nodes: each slot is freed by exactly one of them.
async fn race(nodes: Vec<Queue>, ttl: Duration) {
    const VISITORS: u128 = 40;
    let visitors: Vec<VisitorId> = (1..=VISITORS).map(VisitorId::from_bits).collect();
    let arrival = |visitor: &VisitorId| stanchion::queue::Arrival { visitor: *visitor, proof: None, may_enter: true };
    let arrivals: Vec<_> = visitors.iter().map(arrival).collect();
    nodes[0].join(&arrivals).await.unwrap();
    let begun = nodes[0].snapshot(0).await.unwrap();
    assert_eq!(u128::from(begun.inside), VISITORS);
    eventually("the moment just before they end", async || {
        let now_ms = nodes[0].snapshot(0).await.unwrap().now_ms;
        (now_ms + 30 >= begun.now_ms + u64::try_from(ttl.as_millis()).unwrap()).then_some(())
    })
    .await;

    let mut ways: Vec<BoxFuture<'static, u32>> = Vec::new();
    for node in &nodes {
        for &visitor in &visitors {
            let (release, leave) = (node.clone(), node.clone());
            ways.push(Box::pin(async move { u32::from(release.release(visitor).await.unwrap()) }));
            ways.push(Box::pin(async move { u32::from(leave.leave(visitor).await.unwrap()) }));
        }
        for _ in 0..20 {
            let sweep = node.clone();
            ways.push(Box::pin(async move { sweep.sweep().await.unwrap().sessions }));
        }
    }
    let barrier = Arc::new(Barrier::new(ways.len()));
    let mut racing = JoinSet::new();
    for way in ways {
        let barrier = Arc::clone(&barrier);
        racing.spawn(async move {
            barrier.wait().await;
            way.await
        });
    }
    let freed: u32 = racing.join_all().await.into_iter().sum();
    assert_eq!(u128::from(freed), VISITORS);
    let now = nodes[0].snapshot(0).await.unwrap();
    assert_eq!((now.inside, now.called, now.line), (0, 0, 0));

    // As many slots are free as ever, and not one more.
    let crowd: Vec<_> = (1_001..1_100).map(|bits| arrival(&VisitorId::from_bits(bits))).collect();
    nodes[0].join(&crowd).await.unwrap();
    assert_eq!(u128::from(nodes[0].snapshot(0).await.unwrap().inside), VISITORS);
}

fn full_house(session_ttl: Duration) -> Policy {
    Policy { capacity: 40, session_ttl, ..house::config().policy }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_slot_is_freed_once_whatever_races() {
    // Sessions that end in the middle of it, and sessions that do not.
    for ttl in [Duration::from_millis(300), Duration::from_millis(1_500)] {
        let engine = in_process();
        let node = Queue::new(engine, &house::config().name);
        node.configure(&full_house(ttl), Past::Blank).await.unwrap();
        race(vec![node.clone(), node.clone(), node], ttl).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_slot_is_freed_once_whatever_races_on_redis() {
    let server = RedisServer::start();
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let engine = RedisEngine::connect(&server.url()).await.unwrap();
        nodes.push(Queue::new(Arc::new(engine), &house::config().name));
    }
    let ttl = Duration::from_millis(500);
    nodes[0].configure(&full_house(ttl), Past::Blank).await.unwrap();
    race(nodes, ttl).await;
}

/// G4, G5: a node that has not heard of a reset brings nobody back, and loses no newcomer to the old epoch.
#[tokio::test]
async fn a_node_that_has_not_heard_of_a_reset_neither_brings_back_nor_loses_anybody() {
    let (engine, keys) = (in_process(), keyring());
    let (here, there) = (open(&engine, &keys).await, open(&engine, &keys).await);
    let session = admit(&there).await;
    let waiting = there.come(None, false).await.queue.unwrap();
    let old = Queue::new(Arc::clone(&engine), &house::config().name);
    old.go_by(waiting.epoch);
    assert_eq!(here.reset().await.unwrap(), 2);

    assert_eq!(there.renew(&session, Duration::from_mins(5)).await, Renewal::Ended);
    let proof = Proof { score: waiting.score, issued_at_ms: waiting.iat * 1_000 };
    assert!(matches!(old.seen(&[(waiting.sub, proof)]).await, Err(QueueError::OtherEpoch(_))));
    assert!(matches!(old.claim(waiting.sub, Some(proof)).await, Err(QueueError::OtherEpoch(_))));
    assert_eq!(inside(&engine).await, 0);

    let newcomer = there.come(None, false).await.queue.unwrap();
    assert_eq!(newcomer.epoch, 2, "the token is good where the place is");
    let now = old.snapshot(0).await.unwrap();
    assert_eq!((now.epoch, now.line, now.joined_total), (2, 1, 1));
}
