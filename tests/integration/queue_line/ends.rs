//! What ended while the store was away, or in a history that it lost, ends again.

use std::time::Duration;

use stanchion::{
    clock::Clock as _,
    queue::{Past, Place, Policy, Proof, QueueError, VisitorId},
};

use super::world::{World, is_called, is_inside, policy, score, visitor};

super::on_both_engines!(
    every_kind_of_place_ends_and_its_slot_is_free,
    what_somebody_came_back_for_later_stays,
    a_token_from_before_an_end_that_was_lost_brings_nothing_back,
    a_session_of_after_an_end_that_was_lost_comes_back,
    nothing_ends_by_the_word_of_another_epoch,
);

const WAITS: u32 = 1;
const CALLED: u32 = 2;
const INSIDE: u32 = 3;
const MINUTE: Duration = Duration::from_mins(1);

async fn end(world: &World, who: u32, at_us: u64) -> u64 {
    world.queue.end(&[(visitor(who), at_us)]).await.unwrap()
}

/// One who is called, one inside, one who waits.
async fn three(world: World) -> World {
    let world = world.configured(Policy { capacity: 2, ..policy() }).await;
    assert!(is_inside(world.arrive(visitor(INSIDE), None, true).await));
    world.wait_in_line(visitor(CALLED)).await;
    assert_eq!(world.call_all().await, 1);
    world.wait_in_line(visitor(WAITS)).await;
    world
}

async fn every_kind_of_place_ends_and_its_slot_is_free(world: World) {
    let world = three(world).await;
    let before = world.clock.unix_micros() - 1_000_000;
    world.clock.advance(Duration::from_secs(1));
    let ended: Vec<_> = [WAITS, CALLED, INSIDE, 9].map(|who| (visitor(who), world.clock.unix_micros())).into();
    let too_early: Vec<_> = ended.iter().map(|&(who, _)| (who, before)).collect();
    assert_eq!(world.queue.end(&too_early).await.unwrap(), 0, "an end of before they came");
    let now = world.snapshot().await;
    assert_eq!((now.line, now.called, now.inside), (1, 1, 1));
    assert_eq!(world.queue.end(&ended).await.unwrap(), 3, "nine was never here");
    assert_eq!(world.queue.end(&ended).await.unwrap(), 0, "once");
    let now = world.snapshot().await;
    assert_eq!((now.line, now.called, now.inside), (0, 0, 0));
    for next in 4..6 {
        assert!(is_inside(world.arrive(visitor(next), None, true).await));
    }
}

async fn what_somebody_came_back_for_later_stays(world: World) {
    let world = world.configured(Policy { capacity: 2, ..policy() }).await;
    world.wait_in_line(visitor(1)).await;
    world.clock.advance(MINUTE);
    let left_us = world.clock.unix_micros();
    world.queue.leave(visitor(1)).await.unwrap();
    world.clock.advance(Duration::from_millis(1));
    let again = world.wait_in_line(visitor(1)).await;
    assert_eq!(end(&world, 1, left_us).await, 0);
    assert_eq!(score(world.look(visitor(1)).await), again);
    assert_eq!(world.call_all().await, 1);
    assert_eq!(end(&world, 1, left_us).await, 0);
    assert!(is_called(world.look(visitor(1)).await));
    assert!(is_inside(world.claim(visitor(1)).await));
    assert_eq!(end(&world, 1, left_us).await, 0);
    assert!(is_inside(world.look(visitor(1)).await));
}

async fn lose(world: &mut World) {
    world.lose_everything();
    world.clock.advance(Duration::from_secs(2));
    world.queue.configure(&policy(), Past::Unknown).await.unwrap();
}

async fn a_token_from_before_an_end_that_was_lost_brings_nothing_back(world: World) {
    let mut world = world.configured(policy()).await;
    let (leaves, stays): (VisitorId, VisitorId) = (visitor(1), visitor(2));
    let proofs = [leaves, stays].map(|who| (who, world.now_ms()));
    let mut tokens = Vec::new();
    for (who, issued_at_ms) in proofs {
        tokens.push((who, Proof { score: world.wait_in_line(who).await, issued_at_ms }));
    }
    world.clock.advance(Duration::from_secs(1));
    let left_us = world.clock.unix_micros();
    world.queue.leave(leaves).await.unwrap();
    lose(&mut world).await;
    assert_eq!(end(&world, 1, left_us).await, 0, "the store knows nobody");
    let places = world.queue.seen(&tokens).await.unwrap();
    assert_eq!(places, [Place::None, Place::Waiting { score: tokens[1].1.score, ahead: None }]);
    // A node that starts later hears of it.
    assert!(world.snapshot().await.ended.contains(&(leaves, left_us)));
}

async fn a_session_of_after_an_end_that_was_lost_comes_back(world: World) {
    let mut world = world.configured(policy()).await;
    world.arrive(visitor(1), None, true).await;
    world.clock.advance(MINUTE);
    let released_us = world.clock.unix_micros();
    assert!(world.queue.release(visitor(1)).await.unwrap());
    world.clock.advance(Duration::from_secs(1));
    let Place::Inside { admitted_ms, expires_ms, .. } = world.arrive(visitor(1), None, true).await else {
        panic!("not let in again")
    };
    lose(&mut world).await;
    assert_eq!(end(&world, 1, released_us).await, 0);
    let renewed = world.queue.renew(visitor(1), admitted_ms, expires_ms, Duration::ZERO, u64::MAX).await.unwrap();
    assert!(is_inside(renewed), "{renewed:?}");
}

async fn nothing_ends_by_the_word_of_another_epoch(world: World) {
    let world = three(world).await;
    let (later, now_us) = (world.queue.clone(), world.clock.unix_micros());
    later.go_by(7);
    assert!(matches!(later.end(&[(visitor(INSIDE), now_us)]).await, Err(QueueError::OtherEpoch(_))));
    later.go_by(0);
    assert_eq!(world.snapshot().await.inside, 1);
}
