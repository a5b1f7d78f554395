//! Positions, as the snapshot's sketch answers them.

use std::time::Duration;

use stanchion::queue::{Arrival, Policy, Schedule, Score, SketchKeeper};

use super::world::{START_US, World, never_believed, policy, score, visitor, visitors};

super::on_both_engines!(
    a_snapshot_tells_the_room,
    positions_are_exact_in_front_and_close_behind,
    a_position_never_rises_while_the_line_is_served,
);

async fn a_snapshot_tells_the_room(world: World) {
    let policy = Policy {
        capacity: 3,
        rate: 12.5,
        schedule: Schedule { opens_at_ms: Some(START_US / 1_000 - 1), ..Schedule::default() },
        ..policy()
    };
    let world = world.configured(policy).await;
    for number in 0..6 {
        world.wait_in_line(visitor(number)).await;
    }
    world.call_all().await;
    world.claim(visitor(0)).await;
    let now = world.snapshot().await;
    assert_eq!((now.now_ms, now.since_ms, now.settle_until_ms), (world.now_ms(), world.now_ms(), world.now_ms()));
    assert_eq!((now.epoch, now.opens_at_ms, now.capacity), (1, Some(START_US / 1_000 - 1), 3));
    assert!((now.rate - 12.5).abs() < f64::EPSILON);
    assert_eq!((now.line, now.called, now.inside), (3, 2, 1));
    assert_eq!((now.joined_total, now.called_total, now.admitted_total, now.no_shows_total), (6, 3, 1, 0));
}

/// A crowd whose arrivals are anything but even: three waves and a trickle.
async fn crowd(world: &World, count: u32) -> Vec<Score> {
    let mut scores = Vec::new();
    for (turn, wave) in visitors(0..count).chunks(50).enumerate() {
        let arrivals: Vec<Arrival> =
            wave.iter().map(|visitor| Arrival { visitor: *visitor, proof: None, may_enter: false }).collect();
        scores.extend(world.queue.join(&arrivals).await.unwrap().into_iter().map(score));
        world.clock.advance(Duration::from_micros([60, 900, 70, 40_000][turn % 4]));
    }
    scores
}

async fn positions_are_exact_in_front_and_close_behind(world: World) {
    let world = world.configured(Policy { rate: 1_000_000.0, burst: 1_000_000, ..policy() }).await;
    let scores = crowd(&world, 6_000).await;
    // Some of the front are absent when their turn comes, and keep counting as long as they may come back.
    world.pass_while_present(Duration::from_secs(100), &visitors(40..6_000)).await;
    assert_eq!(world.queue.call(10).await.unwrap().called, 10);
    // Half of those are back before they are called again.
    world
        .queue
        .seen(&visitors(0..20).into_iter().map(|visitor| (visitor, never_believed())).collect::<Vec<_>>())
        .await
        .unwrap();
    assert_eq!(world.snapshot().await.line, 5_990);
    let sketch = world.sketch().await;
    assert!(sketch.points() <= 4_500, "{}", sketch.points());
    for (arrived, score) in scores.iter().enumerate().filter(|(arrived, _)| !(40..50).contains(arrived)) {
        let rank = if arrived < 40 { arrived } else { arrived - 10 } as u64;
        let ahead = sketch.ahead_of(*score).unwrap();
        assert!((rank..=rank + rank / 1_000).contains(&ahead), "rank {rank} is told as {ahead}");
    }
}

async fn a_position_never_rises_while_the_line_is_served(world: World) {
    let world = world.configured(Policy { capacity: 10_000, rate: 1e6, burst: 1_000_000, ..policy() }).await;
    let scores = crowd(&world, 4_000).await;
    let mut shown = vec![u64::MAX; scores.len()];
    let mut keeper = SketchKeeper::default();
    for served in (0..1_400).step_by(35) {
        let is_content = world.measure(&mut keeper, 8).await;
        let sketch = keeper.sketch();
        for (arrived, score) in scores.iter().enumerate().skip(served) {
            let (ahead, exact) = (sketch.ahead_of(*score).unwrap(), (arrived - served) as u64);
            assert!(ahead <= shown[arrived] && ahead >= exact, "{arrived}: {ahead}");
            assert!(!is_content || ahead - exact <= exact / 1_000, "{arrived}: {ahead} for {exact}");
            shown[arrived] = ahead;
        }
        assert_eq!(world.queue.call(35).await.unwrap().called, 35);
    }
}
