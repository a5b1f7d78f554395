//! The same random history on every engine: the same replies, the same room in the end.

use std::time::Duration;

use proptest::{
    prelude::*,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use stanchion::{
    clock::Clock as _,
    queue::{Place, Proof, Score, Snapshot},
    store::SharedEngine,
};

use super::{
    histories::{Step, steps, tight},
    world::{World, visitor},
};
use crate::support::{redis_client::RedisClient, redis_server::RedisServer, seeds::seeds};

/// Plays the steps; every other poll and arrival carries a token of an older history.
async fn replies(world: &World, steps: &[Step]) -> (Vec<Place>, Vec<u32>, Snapshot) {
    let (queue, mut places, mut counts) = (&world.queue, Vec::new(), Vec::new());
    for (turn, step) in steps.iter().enumerate() {
        let now_ms = world.now_ms();
        let age = if turn % 2 == 0 { 60_000 } else { 0 };
        let score = Score(world.clock.unix_micros() - 70_000_000 + turn as u64 % 5);
        let proof = Proof { score, issued_at_ms: now_ms - age };
        match *step {
            Step::Come(who, true) => places.push(world.arrive(visitor(who), None, true).await),
            Step::Come(who, false) => places.push(world.arrive(visitor(who), Some(proof), false).await),
            Step::Poll(who) => places.extend(queue.seen(&[(visitor(who), proof)]).await.unwrap()),
            Step::Claim(who) => places.push(queue.claim(visitor(who), Some(proof)).await.unwrap()),
            Step::Renew(who) => {
                let ttl = Duration::from_secs(9);
                places.push(queue.renew(visitor(who), now_ms - age, now_ms + 5_000, ttl, u64::MAX).await.unwrap());
            }
            Step::Release(who) => counts.push(u32::from(queue.release(visitor(who)).await.unwrap())),
            Step::Leave(who) => counts.push(u32::from(queue.leave(visitor(who)).await.unwrap())),
            Step::Call(most) => {
                let run = queue.call(u32::from(most)).await.unwrap();
                counts.extend([run.called, run.skipped]);
            }
            Step::Sweep => {
                let swept = queue.sweep().await.unwrap();
                counts.extend([swept.no_shows, swept.sessions, swept.absent]);
            }
            Step::Wait(millis) if millis % 20 == 0 => {
                world.clock.set(world.clock.unix_micros() - u64::from(millis) * 1_000);
            }
            Step::Wait(millis) => world.clock.advance(Duration::from_micros(u64::from(millis) * 977)),
            Step::Capacity(capacity) => {
                let policy = stanchion::queue::Policy { capacity, ..tight() };
                queue.configure(&policy, Duration::ZERO).await.unwrap();
            }
        }
    }
    (places, counts, world.snapshot().await)
}

/// Each engine on Redis has a database of its own, emptied before each history.
async fn on_redis(server: &RedisServer) -> Vec<(RedisClient, SharedEngine, u32)> {
    let mut engines = Vec::new();
    for (database, client) in (0..).zip(RedisClient::ALL) {
        let engine = client.connect(&format!("{}/{database}", server.url())).await;
        engines.push((*client, engine, database));
    }
    engines
}

/// `STANCHION_HISTORIES=20000` plays more histories, `STANCHION_SEED=n` begins with a given one.
#[test]
fn every_engine_tells_the_same_story() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = RedisServer::start();
    let engines = runtime.block_on(on_redis(&server));
    for seed in seeds(500) {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1) };
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
        let outcome = runner.run(&steps(60), |steps| {
            let here =
                runtime.block_on(async { replies(&World::in_process().configured(tight()).await, &steps).await });
            for (client, engine, database) in &engines {
                server.command_in(*database, "FLUSHDB");
                let there = runtime
                    .block_on(async { replies(&World::over(engine.clone()).configured(tight()).await, &steps).await });
                prop_assert_eq!(&here, &there, "in process (left) against {:?} (right)", client);
            }
            Ok(())
        });
        assert!(outcome.is_ok(), "STANCHION_SEED={seed}\n{}", outcome.unwrap_err());
    }
}
