//! C06: Redis at its memory limit. Newcomers are refused for now; whoever is in the line or inside goes on.

use std::time::Duration;

use stanchion::{
    queue::{Arrival, Mode, Past, Place, Policy, Proof, Queue, QueueError, Schedule, Score, VisitorId},
    store::SharedEngine,
};

use crate::support::{
    redis_client::{RedisClient, by_each_client},
    redis_server::RedisServer,
};

by_each_client!(only_joins_are_refused_when_memory_runs_out, a_script_that_is_refused_has_changed_nothing);

fn arrival(number: u128) -> Arrival {
    Arrival { visitor: visitor(number), proof: None, may_enter: false }
}

fn visitor(number: u128) -> VisitorId {
    VisitorId::from_bits(number)
}

fn policy() -> Policy {
    Policy {
        capacity: 3,
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

/// Eight in the line, of whom three are called and the first of those is inside.
async fn full_room(client: RedisClient) -> (RedisServer, Queue, Vec<Proof>) {
    let server = RedisServer::start();
    let engine: SharedEngine = client.connect(&server.url()).await;
    let queue = Queue::new(engine, &"main".parse().unwrap());
    queue.configure(&policy(), Past::Blank).await.unwrap();
    let places = queue.join(&(0..8).map(arrival).collect::<Vec<_>>()).await.unwrap();
    let score = |place: &Place| match place {
        Place::Waiting { score, .. } => *score,
        other => panic!("{other:?}"),
    };
    let proofs = places.iter().map(|place| Proof { score: score(place), issued_at_ms: u64::MAX >> 12 }).collect();
    assert_eq!(queue.call(50).await.unwrap().called, 3);
    queue.claim(visitor(0), None).await.unwrap();
    assert!(server.command("CONFIG SET maxmemory 1mb").starts_with("+OK"));
    (server, queue, proofs)
}

fn is_out_of_memory(error: &QueueError) -> bool {
    error.is_transient() && error.to_string().contains("OOM")
}

async fn only_joins_are_refused_when_memory_runs_out(client: RedisClient) {
    let (server, queue, proofs) = full_room(client).await;
    let error = queue.join(&[arrival(100)]).await.expect_err("a newcomer takes memory");
    assert!(is_out_of_memory(&error), "{error}");
    assert!(matches!(queue.join(&[arrival(7)]).await.unwrap()[0], Place::Waiting { .. }), "a repeat only reads");

    // Without this a line that is full for the grace would lose everybody as absent.
    let seen = |server: &RedisServer| server.command(&format!("ZSCORE stanchion:{{main}}:seen {}", visitor(7)));
    let before = seen(&server);
    while seen(&server) == before {
        queue.seen(&[(visitor(7), proofs[7])]).await.unwrap();
    }
    let renewed = queue.renew(visitor(0), 0, 0, Duration::from_mins(20), u64::MAX >> 12).await.unwrap();
    assert!(matches!(renewed, Place::Inside { .. }), "{renewed:?}");
    assert!(matches!(queue.claim(visitor(1), None).await.unwrap(), Place::Inside { .. }));
    assert!(queue.release(visitor(0)).await.unwrap());
    assert!(queue.leave(visitor(2)).await.unwrap());
    assert!(queue.leave(visitor(6)).await.unwrap());
    assert_eq!(queue.call(50).await.unwrap().called, 2, "their slots go to the next");
    queue.sweep().await.unwrap();
    queue.configure(&Policy { capacity: 4, ..policy() }, Past::Blank).await.unwrap();
    queue.set_mode(Mode::Paused).await.unwrap();
    let room = queue.snapshot(0).await.unwrap();
    assert_eq!((room.mode, room.capacity, room.line, room.called, room.inside), (Mode::Paused, 4, 2, 2, 1));

    assert!(server.command("CONFIG SET maxmemory 0").starts_with("+OK"));
    queue.join(&[arrival(100)]).await.unwrap();
    assert_eq!(queue.snapshot(0).await.unwrap().line, 3);
}

/// A batch that begins with a join that only reads, too.
async fn a_script_that_is_refused_has_changed_nothing(client: RedisClient) {
    let (server, queue, proofs) = full_room(client).await;
    let before = queue.snapshot(0).await.unwrap();
    let lost = Arrival { proof: Some(Proof { score: Score(5), issued_at_ms: 0 }), ..arrival(101) };
    for batch in
        [vec![arrival(100)], vec![arrival(7), arrival(100), arrival(101)], vec![arrival(7), lost, arrival(102)]]
    {
        let error = queue.join(&batch).await.expect_err("newcomers take memory");
        assert!(is_out_of_memory(&error), "{error}");
    }
    let after = queue.snapshot(0).await.unwrap();
    assert_eq!((after.line, after.joined_total, after.called, after.inside), (before.line, before.joined_total, 2, 1));
    for visitor in 100..103 {
        assert_eq!(queue.claim(VisitorId::from_bits(visitor), None).await.unwrap(), Place::None);
    }
    assert!(server.command("CONFIG SET maxmemory 0").starts_with("+OK"));
    queue.seen(&[(visitor(7), proofs[7])]).await.unwrap();
}
