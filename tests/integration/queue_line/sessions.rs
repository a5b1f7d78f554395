//! Sessions: renewed, ended, released, and what that does to the slots.

use std::time::Duration;

use stanchion::queue::{Past, Place, Policy, VisitorId};

use super::world::{World, is_inside, policy, score, visitor};

super::on_both_engines!(
    a_session_ends_unless_renewed,
    renewal_never_shortens_and_never_passes_the_cap,
    a_release_frees_the_slot_once,
    lowering_the_capacity_ejects_nobody,
);

const MINUTE: Duration = Duration::from_mins(1);

async fn renew(world: &World, visitor: VisitorId, ttl: Duration, not_after_ms: u64) -> Place {
    let now_ms = world.now_ms();
    world.queue.renew(visitor, now_ms, now_ms + 60_000, ttl, not_after_ms).await.unwrap()
}

fn ends(place: Place) -> u64 {
    match place {
        Place::Inside { expires_ms, .. } => expires_ms,
        other => panic!("not inside but {other:?}"),
    }
}

async fn a_session_ends_unless_renewed(world: World) {
    let world = world.configured(Policy { capacity: 1, session_ttl: MINUTE, ..policy() }).await;
    assert!(is_inside(world.arrive(visitor(1), None, true).await));
    world.pass(MINUTE / 2).await;
    assert_eq!(ends(renew(&world, visitor(1), MINUTE, u64::MAX).await), world.now_ms() + 60_000);
    world.pass(Duration::from_secs(59)).await;
    score(world.arrive(visitor(2), None, true).await);
    assert_eq!(world.call_all().await, 0);
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(world.call_all().await, 1, "the slot is free the moment the session ended");
    assert_eq!(world.look(visitor(1)).await, Place::None);
    assert_eq!(renew(&world, visitor(1), MINUTE, u64::MAX).await, Place::None, "what ended stays ended");
}

async fn renewal_never_shortens_and_never_passes_the_cap(world: World) {
    let world = world.configured(policy()).await;
    let first = ends(world.arrive(visitor(1), None, true).await);
    assert_eq!(ends(renew(&world, visitor(1), MINUTE, u64::MAX).await), first);
    assert_eq!(ends(renew(&world, visitor(1), MINUTE * 20, first + 5_000).await), first + 5_000);
    assert_eq!(ends(renew(&world, visitor(1), MINUTE * 20, first).await), first + 5_000);
    assert_eq!(renew(&world, visitor(2), MINUTE, u64::MAX).await, Place::None, "nobody renews what they never had");
    let inside = world.look(visitor(1)).await;
    assert!(matches!(inside, Place::Inside { admitted_ms, fresh: false, .. } if admitted_ms == world.now_ms()));
}

async fn a_release_frees_the_slot_once(world: World) {
    let world = world.configured(Policy { capacity: 1, ..policy() }).await;
    world.arrive(visitor(1), None, true).await;
    for number in 2..4 {
        world.wait_in_line(visitor(number)).await;
    }
    assert!(!world.queue.release(visitor(2)).await.unwrap(), "who waits has no session to end");
    let releases = futures_util::future::join_all((0..20).map(|_| world.queue.release(visitor(1)))).await;
    assert_eq!(releases.into_iter().filter(|released| *released.as_ref().unwrap()).count(), 1);
    assert_eq!(world.call_all().await, 1);
    assert_eq!(renew(&world, visitor(1), MINUTE, u64::MAX).await, Place::None);
}

async fn lowering_the_capacity_ejects_nobody(world: World) {
    let world = world.configured(Policy { capacity: 8, ..policy() }).await;
    for number in 0..8 {
        world.arrive(visitor(number), None, true).await;
    }
    world.wait_in_line(visitor(8)).await;
    world.queue.configure(&Policy { capacity: 2, ..policy() }, Past::Blank).await.unwrap();
    for number in 0..7 {
        assert_eq!(world.call_all().await, 0);
        let now = world.snapshot().await;
        assert_eq!((now.capacity, now.inside), (2, 8 - u64::from(number)));
        assert!(world.queue.release(visitor(number)).await.unwrap());
    }
    assert_eq!(world.call_all().await, 1);
    assert!(is_inside(world.look(visitor(7)).await));
}
