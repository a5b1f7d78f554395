//! The same random history on both engines: the same replies, the same room in the end.

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use stanchion::{
    clock::Clock as _,
    queue::{Place, Proof, RankSketch, Score, SketchKeeper, Snapshot},
};

use super::{
    histories::{Step, steps, tight},
    world::{World, visitor},
};

/// Plays the steps; every other poll and arrival carries a token of an older history.
async fn replies(world: &World, steps: &[Step]) -> (Vec<Place>, Vec<u32>, Snapshot, Vec<Arc<RankSketch>>) {
    let (mut keeper, mut sketches) = (SketchKeeper::default(), Vec::new());
    let (queue, mut places, mut counts) = (&world.queue, Vec::new(), Vec::new());
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
    (places, counts, world.snapshot().await, sketches)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(16) })]

    #[test]
    fn both_engines_tell_the_same_story(steps in steps(150)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let here = World::in_process().configured(tight()).await;
            let there = World::on_redis().await.configured(tight()).await;
            assert_eq!(replies(&here, &steps).await, replies(&there, &steps).await);
        });
    }
}
