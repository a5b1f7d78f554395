//! The same random history on every engine: the same replies, the same room in the end.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    time::Duration,
};

use proptest::{
    prelude::*,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use stanchion::{
    clock::Clock as _,
    queue::{NodeId, Past, Place, Policy, Proof, QueueError, RankSketch, Reported, Score, SketchKeeper, Snapshot},
    store::SharedEngine,
};

use super::{
    draws::next_step_of_a_node,
    histories::{Step, decide, steps, tight, tight_lottery},
    pacing::LEASE,
    world::{World, visitor},
};
use crate::support::{eventually::eventually, redis_client::RedisClient, redis_server::RedisServer, seeds::seeds};

/// Plays the steps; every other poll and arrival carries a token of an older history.
/// Everything all engines must agree on.
type Story = (Vec<Place>, Vec<u32>, Vec<Reported>, Vec<String>, Snapshot, Vec<Arc<RankSketch>>);

async fn replies(world: &World, steps: &[Step], policy: &Policy) -> Story {
    let (mut keeper, mut sketches) = (SketchKeeper::default(), Vec::new());
    let (queue, mut places, mut counts) = (&world.queue, Vec::new(), Vec::new());
    let (mut reports, mut draws) = (Vec::new(), Vec::new());
    for (turn, step) in steps.iter().enumerate() {
        if turn % 4 == 0 {
            world.measure(&mut keeper, 2).await;
            sketches.push(keeper.sketch());
        }
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
            Step::Revoke(who) => counts.push(u32::from(queue.revoke(visitor(who)).await.unwrap())),
            Step::End(who, ago_ms) => {
                let at_us = world.clock.unix_micros() - u64::from(ago_ms) * 1_000;
                counts.push(u32::try_from(queue.end(&[(visitor(who), at_us)]).await.unwrap()).unwrap());
            }
            Step::Draw(most) => draws.push(next_step_of_a_node(world, most).await),
            Step::Reset => draws.push(queue.reset(world.snapshot().await.epoch).await.unwrap().to_string()),
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
                let policy = Policy { capacity, ..policy.clone() };
                queue.configure(&policy, Past::Blank).await.unwrap();
            }
            Step::Decide(node, rate, capacity) => {
                counts.push(u32::from(decide(world, node, rate, capacity).await));
                reports.push(queue.report(NodeId::from_bits(1), "text", LEASE).await.unwrap());
            }
        }
    }
    (places, counts, reports, draws, world.snapshot().await, sketches)
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
        let outcome = runner.run(&(steps(60), any::<bool>()), |(steps, lottery)| {
            let policy = if lottery { tight_lottery() } else { tight() };
            let here = World::in_process();
            let here =
                runtime.block_on(async { replies(&here.configured(policy.clone()).await, &steps, &policy).await });
            for (client, engine, database) in &engines {
                let there = || {
                    server.command_in(*database, "FLUSHDB");
                    let there = World::over(engine.clone());
                    runtime.block_on(async { replies(&there.configured(policy.clone()).await, &steps, &policy).await })
                };
                // Answers of a connection come in order: after this one, nothing of before is still to be done.
                let all_done = || {
                    let queue = World::over(engine.clone()).queue;
                    let answer = async || match queue.snapshot(0).await {
                        answer @ (Ok(_) | Err(QueueError::NotConfigured(_))) => Some(answer),
                        Err(_) => None,
                    };
                    drop(runtime.block_on(eventually("an answer", answer)));
                };
                prop_assert_eq!(&here, &in_time(there, all_done), "in process (left) against {:?} (right)", client);
            }
            Ok(())
        });
        assert!(outcome.is_ok(), "STANCHION_SEED={seed}\n{}", outcome.unwrap_err());
    }
}

/// Plays again what failed because a loaded machine missed a deadline.
fn in_time(play: impl Fn() -> Story, all_done: impl Fn()) -> Story {
    for _ in 0..10 {
        match catch_unwind(AssertUnwindSafe(&play)) {
            Ok(story) => return story,
            Err(panic) if !panic.downcast_ref::<String>().is_some_and(|said| said.contains("Unavailable(")) => {
                resume_unwind(panic)
            }
            Err(_) => all_done(),
        }
    }
    play()
}
