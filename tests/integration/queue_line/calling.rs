//! G3 and G6: who is called, in which order, and who is not.

use std::time::Duration;

use stanchion::queue::{Arrival, Past, Place, Policy};

use super::world::{World, is_called, is_inside, policy, score, visitor, visitors};

super::on_both_engines!(
    the_earliest_are_called_first,
    a_claim_lets_in_once_and_tells_when,
    a_missed_claim_frees_the_slot_for_the_next,
    the_absent_are_passed_over_and_keep_their_place,
    absence_beyond_the_grace_gives_up_the_place,
    thousands_of_absent_ones_at_the_front_do_not_stall_the_line,
    a_claim_the_rate_holds_back_keeps_its_slot,
    a_rate_of_zero_calls_nobody,
);

async fn the_earliest_are_called_first(world: World) {
    let world = world.configured(Policy { capacity: 7, ..policy() }).await;
    for number in 0..10 {
        world.wait_in_line(visitor(number)).await;
    }
    let last = world.look(visitor(6)).await;
    assert_eq!(world.queue.call(3).await.unwrap().called, 3);
    assert_eq!(world.queue.call(50).await.unwrap().called, 4);
    assert_eq!(world.queue.call(50).await.unwrap().called, 0, "the room is full");
    for number in 0..10 {
        assert_eq!(is_called(world.look(visitor(number)).await), number < 7);
    }
    assert_eq!(world.snapshot().await.watermark, score(last));
}

async fn a_claim_lets_in_once_and_tells_when(world: World) {
    let world = world.configured(policy()).await;
    assert_eq!(world.claim(visitor(1)).await, Place::None);
    let waiting = world.wait_in_line(visitor(1)).await;
    assert_eq!(world.claim(visitor(1)).await, Place::Waiting { score: waiting, ahead: None });
    let called_ms = world.now_ms();
    world.queue.call(1).await.unwrap();
    let called = Place::Called { score: waiting, deadline_ms: called_ms + 30_000, wait_ms: 0 };
    assert_eq!(world.look(visitor(1)).await, called);

    // A policy that changes meanwhile changes neither what was promised nor what is told.
    let shorter = Policy { claim_window: Duration::from_secs(5), ..policy() };
    world.queue.configure(&shorter, Past::Blank).await.unwrap();
    world.pass(Duration::from_secs(20)).await;
    let admitted_ms = world.now_ms();
    let expires_ms = admitted_ms + 600_000;
    let inside = |fresh| Place::Inside { score: waiting, expires_ms, called_ms, admitted_ms, fresh };
    assert_eq!(world.claim(visitor(1)).await, inside(true));
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(world.claim(visitor(1)).await, inside(false), "a retry of a claim whose answer was lost");
    assert_eq!(world.snapshot().await.admitted_total, 1);
}

async fn a_missed_claim_frees_the_slot_for_the_next(world: World) {
    let world = world.configured(Policy { capacity: 1, ..policy() }).await;
    let crowd = visitors(1..4);
    for visitor in &crowd {
        world.wait_in_line(*visitor).await;
    }
    assert_eq!(world.call_all().await, 1);
    world.pass_while_present(Duration::from_secs(29), &crowd[1..]).await;
    assert_eq!(world.call_all().await, 0);
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(world.call_all().await, 1, "the next is called as soon as the window closed");
    assert_eq!(world.look(crowd[0]).await, Place::None);
    assert_eq!(world.claim(crowd[0]).await, Place::None);
    assert!(is_inside(world.claim(crowd[1]).await));
    assert_eq!(world.snapshot().await.no_shows_total, 1);
}

async fn the_absent_are_passed_over_and_keep_their_place(world: World) {
    let world = world.configured(policy()).await;
    let crowd = visitors(0..4);
    let mut scores = Vec::new();
    for visitor in &crowd {
        scores.push(world.wait_in_line(*visitor).await);
    }
    world.pass_while_present(Duration::from_secs(100), &crowd[2..]).await;
    let run = world.queue.call(1).await.unwrap();
    assert_eq!((run.called, run.skipped), (1, 2));
    assert!(is_called(world.look(crowd[2]).await));
    assert_eq!(world.look(crowd[0]).await, Place::Waiting { score: scores[0], ahead: None });
    let now = world.snapshot().await;
    assert_eq!(now.line, 3);
    let sketch = world.sketch().await;
    assert_eq!(sketch.ahead_of(scores[1]), Some(1));
    assert_eq!(sketch.ahead_of(scores[3]), Some(2));

    // Back within the grace: next in line, before those who came later.
    assert_eq!(world.claim(crowd[1]).await, Place::Waiting { score: scores[1], ahead: None });
    assert_eq!(world.queue.call(1).await.unwrap().called, 1);
    assert!(is_called(world.look(crowd[1]).await));
    assert!(world.snapshot().await.watermark > scores[1]);
}

async fn absence_beyond_the_grace_gives_up_the_place(world: World) {
    let world = world.configured(Policy { rate: 0.0, burst: 1, ..policy() }).await;
    let crowd = visitors(0..3);
    world.arrive(visitor(100), None, true).await; // takes the one token
    for visitor in &crowd {
        world.wait_in_line(*visitor).await;
    }
    world.pass_while_present(Duration::from_secs(299), &crowd[1..2]).await;
    assert_eq!(world.snapshot().await.line, 3);
    world.pass_while_present(Duration::from_secs(2), &crowd[1..2]).await;
    assert_eq!(world.snapshot().await.line, 1, "numbers leave out those who are gone");
    assert_eq!(world.claim(crowd[0]).await, Place::None);
    assert!(matches!(world.claim(crowd[1]).await, Place::Waiting { .. }));
    assert!(matches!(world.arrive(crowd[0], None, false).await, Place::Waiting { .. }), "free to join again");
}

async fn thousands_of_absent_ones_at_the_front_do_not_stall_the_line(world: World) {
    let world = world.configured(policy()).await;
    let arrivals: Vec<Arrival> =
        visitors(0..5_000).into_iter().map(|visitor| Arrival { visitor, proof: None, may_enter: false }).collect();
    world.queue.join(&arrivals).await.unwrap();
    world.pass(Duration::from_secs(100)).await;
    let present = visitor(9_000);
    world.wait_in_line(present).await;
    let (mut runs, mut passed_over) = (0, 0);
    while !is_called(world.look(present).await) {
        let run = world.queue.call(1).await.unwrap();
        assert!(run.skipped <= 204, "one run looks at {} of them", run.skipped);
        (runs, passed_over) = (runs + 1, passed_over + run.skipped);
    }
    assert_eq!(passed_over, 5_000, "nobody is looked at twice");
    assert!(runs <= 26, "{runs} runs");
}

async fn a_claim_the_rate_holds_back_keeps_its_slot(world: World) {
    let world = world.configured(Policy { rate: 0.5, burst: 2, ..policy() }).await;
    let crowd = visitors(0..8);
    for visitor in &crowd {
        world.wait_in_line(*visitor).await;
    }
    // One is called every 2 s; all of them wait for the last moment that the first one has.
    for _ in 0..28 {
        world.queue.call(50).await.unwrap();
        world.pass_while_present(Duration::from_secs(1), &crowd).await;
    }
    assert_eq!(world.snapshot().await.called, 8);
    let (mut admitted, mut seconds) = (0, 0);
    while admitted < crowd.len() {
        admitted = 0;
        for visitor in &crowd {
            match world.claim(*visitor).await {
                Place::Inside { .. } => admitted += 1,
                Place::Called { deadline_ms, wait_ms, .. } => {
                    assert!((1..=2_000).contains(&wait_ms), "{wait_ms}");
                    assert!(deadline_ms >= world.now_ms() + wait_ms + 30_000);
                }
                other => panic!("lost the slot: {other:?}"),
            }
        }
        assert!(admitted as u64 <= 2 + seconds / 2);
        world.pass(Duration::from_secs(1)).await;
        seconds += 1;
    }
    assert_eq!(world.snapshot().await.no_shows_total, 0);
}

async fn a_rate_of_zero_calls_nobody(world: World) {
    let world = world.configured(Policy { rate: 0.0, burst: 1, ..policy() }).await;
    for number in 0..2 {
        world.wait_in_line(visitor(number)).await;
    }
    assert_eq!(world.call_all().await, 1, "the burst");
    world.pass_while_present(Duration::from_mins(15), &visitors(0..2)).await;
    assert_eq!(world.call_all().await, 0);
    assert!(world.snapshot().await.rate.abs() < f64::EPSILON);
}
