//! The same random history on both engines: the same replies, the same room in the end.

use std::time::Duration;

use proptest::prelude::*;
use stanchion::{
    clock::Clock as _,
    queue::{NodeId, Past, Place, Policy, Proof, Reported, Score, Snapshot},
};

use super::{
    draws::next_step_of_a_node,
    histories::{Step, decide, steps, tight, tight_lottery},
    pacing::LEASE,
    world::{World, visitor},
};

/// Plays the steps; every other poll and arrival carries a token of an older history.
/// Everything both engines must agree on.
type Story = (Vec<Place>, Vec<u32>, Vec<Reported>, Vec<String>, Snapshot);

async fn replies(world: &World, steps: &[Step], policy: &Policy) -> Story {
    let (queue, mut places, mut counts) = (&world.queue, Vec::new(), Vec::new());
    let (mut reports, mut draws) = (Vec::new(), Vec::new());
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
            Step::Revoke(who) => counts.push(u32::from(queue.revoke(visitor(who)).await.unwrap())),
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
    (places, counts, reports, draws, world.snapshot().await)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(16) })]

    #[test]
    fn both_engines_tell_the_same_story(steps in steps(150), lottery in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let policy = if lottery { tight_lottery() } else { tight() };
            let here = World::in_process().configured(policy.clone()).await;
            let there = World::on_redis().await.configured(policy.clone()).await;
            assert_eq!(replies(&here, &steps, &policy).await, replies(&there, &steps, &policy).await);
        });
    }
}
