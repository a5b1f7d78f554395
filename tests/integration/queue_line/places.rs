//! G4: one visitor, one place, whatever the repeats; and the way straight in.

use std::time::Duration;

use stanchion::queue::{Arrival, Place, Policy, Score};

use super::world::{World, is_called, is_inside, policy, score, visitor, visitors};

super::on_both_engines!(
    joins_are_ordered_and_never_tie,
    a_repeated_join_keeps_the_place,
    parallel_joins_of_one_visitor_get_one_place,
    a_batch_of_any_size_is_answered_in_order,
    an_idle_room_lets_straight_in_until_it_is_full,
    nobody_passes_a_present_visitor_who_waits,
    the_absent_do_not_close_the_way_straight_in,
    leaving_gives_up_whatever_one_has,
);

async fn joins_are_ordered_and_never_tie(world: World) {
    let world = world.configured(policy()).await;
    let arrivals: Vec<Arrival> =
        visitors(0..200).into_iter().map(|visitor| Arrival { visitor, proof: None, may_enter: false }).collect();
    let mut scores: Vec<Score> = Vec::new();
    for half in arrivals.chunks(100) {
        scores.extend(world.queue.join(half).await.unwrap().into_iter().map(score));
    }
    assert!(scores.is_sorted_by(|earlier, later| earlier < later), "{scores:?}");
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(world.wait_in_line(visitor(500)).await, Score(super::world::START_US + 1_000_000));
}

async fn a_repeated_join_keeps_the_place(world: World) {
    let world = world.configured(policy()).await;
    let (first, second) = (world.wait_in_line(visitor(1)).await, world.wait_in_line(visitor(2)).await);
    for _ in 0..20 {
        world.clock.advance(Duration::from_millis(100));
        assert_eq!(world.wait_in_line(visitor(1)).await, first);
        assert_eq!(score(world.arrive(visitor(2), None, true).await), second);
    }
    let twice = [Arrival { visitor: visitor(3), proof: None, may_enter: false }; 2];
    let scores: Vec<Score> = world.queue.join(&twice).await.unwrap().into_iter().map(score).collect();
    assert_eq!(scores[0], scores[1]);
    assert_eq!(world.snapshot().await.line, 3);

    assert_eq!(world.queue.call(1).await.unwrap().called, 1);
    assert!(is_called(world.arrive(visitor(1), None, true).await));
    assert!(is_inside(world.claim(visitor(1)).await));
    assert!(matches!(world.arrive(visitor(1), None, true).await, Place::Inside { fresh: false, .. }));
    let now = world.snapshot().await;
    assert_eq!((now.line, now.called, now.inside, now.joined_total), (2, 0, 1, 3));
}

async fn parallel_joins_of_one_visitor_get_one_place(world: World) {
    let world = world.configured(policy()).await;
    let tabs = (0..40).map(|_| world.arrive(visitor(1), None, false));
    let scores: Vec<Score> = futures_util::future::join_all(tabs).await.into_iter().map(score).collect();
    assert!(scores.windows(2).all(|pair| pair[0] == pair[1]), "{scores:?}");
    assert_eq!(world.snapshot().await.line, 1);

    world.queue.leave(visitor(1)).await.unwrap();
    let tabs = (0..40).map(|_| world.arrive(visitor(1), None, true));
    let places = futures_util::future::join_all(tabs).await;
    let fresh = places.iter().filter(|place| matches!(place, Place::Inside { fresh: true, .. })).count();
    assert_eq!((fresh, world.snapshot().await.inside), (1, 1));
}

async fn a_batch_of_any_size_is_answered_in_order(world: World) {
    let world = world.configured(policy()).await;
    let arrivals: Vec<Arrival> =
        visitors(0..1_201).into_iter().map(|visitor| Arrival { visitor, proof: None, may_enter: false }).collect();
    let places = world.queue.join(&arrivals).await.unwrap();
    for (number, place) in (0..).zip(&places) {
        assert!(matches!(place, Place::Waiting { ahead: Some(ahead), .. } if *ahead == number), "{number}: {place:?}");
    }
    let scores: Vec<Score> = places.into_iter().map(score).collect();
    assert_eq!(scores.len(), 1_201);
    assert!(scores.is_sorted_by(|earlier, later| earlier < later));
    assert_eq!(world.queue.join(&[]).await.unwrap(), []);
}

async fn an_idle_room_lets_straight_in_until_it_is_full(world: World) {
    let world = world.configured(Policy { capacity: 2, ..policy() }).await;
    let now_ms = world.now_ms();
    let place = world.arrive(visitor(1), None, true).await;
    let expires_ms = now_ms + 600_000;
    // Their order is that of their arrival, whether they waited or not.
    let Place::Inside { score: arrived, .. } = place else { panic!("{place:?}") };
    assert_eq!(arrived.0 / 1_000, now_ms);
    let inside = Place::Inside { score: arrived, expires_ms, called_ms: now_ms, admitted_ms: now_ms, fresh: true };
    assert_eq!(place, inside);
    assert!(is_inside(world.arrive(visitor(2), None, true).await));
    assert!(score(world.arrive(visitor(3), None, true).await) > arrived);
    let now = world.snapshot().await;
    assert_eq!((now.line, now.inside, now.admitted_total), (1, 2, 2));
}

async fn nobody_passes_a_present_visitor_who_waits(world: World) {
    let world = world.configured(policy()).await;
    world.wait_in_line(visitor(1)).await;
    score(world.arrive(visitor(2), None, true).await);
    assert_eq!(world.call_all().await, 2);
    assert!(is_inside(world.arrive(visitor(3), None, true).await));
}

async fn the_absent_do_not_close_the_way_straight_in(world: World) {
    let world = world.configured(policy()).await;
    world.wait_in_line(visitor(1)).await;
    world.pass(Duration::from_secs(100)).await;
    assert_eq!(world.call_all().await, 0);
    assert!(is_inside(world.arrive(visitor(2), None, true).await));
}

async fn leaving_gives_up_whatever_one_has(world: World) {
    let world = world.configured(policy()).await;
    for number in 1..=3 {
        world.wait_in_line(visitor(number)).await;
    }
    world.queue.call(2).await.unwrap();
    world.claim(visitor(1)).await;
    for number in 1..=3 {
        assert!(world.queue.leave(visitor(number)).await.unwrap());
        assert!(!world.queue.leave(visitor(number)).await.unwrap());
        assert_eq!(world.look(visitor(number)).await, Place::None);
    }
    let now = world.snapshot().await;
    assert_eq!((now.line, now.called, now.inside, now.no_shows_total), (0, 0, 0, 0));
}
