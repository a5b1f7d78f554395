//! What a room does before, between and after the sale.

use std::time::Duration;

use stanchion::queue::{Mode, Past, Place, Policy, Schedule};

use super::world::{START_US, World, is_inside, policy, score, visitor, visitors};

super::on_both_engines!(
    a_room_that_was_never_configured_says_so,
    it_opens_by_the_stores_clock,
    a_paused_room_takes_places_and_calls_nobody,
    a_room_that_takes_nobody_says_why,
    a_change_of_rate_gives_no_tokens_for_the_past,
);

async fn a_room_that_was_never_configured_says_so(world: World) {
    let error = world.queue.call(1).await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("room main is not configured"), "{error}");
    assert!(world.queue.snapshot(0).await.unwrap_err().is_transient());
    assert!(world.queue.set_mode(Mode::Paused).await.unwrap_err().is_transient());
    assert!(world.queue.release(visitor(1)).await.unwrap_err().is_transient());
}

async fn it_opens_by_the_stores_clock(world: World) {
    let opens_at_ms = START_US / 1_000 + 10_000;
    let world = world
        .configured(Policy { schedule: Schedule { opens_at_ms: Some(opens_at_ms), ..Schedule::default() }, ..policy() })
        .await;
    world.pass(Duration::from_millis(9_999)).await;
    assert_eq!(world.arrive(visitor(1), None, true).await, Place::NotOpen(Mode::Scheduled));
    let now = world.snapshot().await;
    assert_eq!((now.mode, now.opens_at_ms, now.line), (Mode::Scheduled, Some(opens_at_ms), 0));
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(world.snapshot().await.mode, Mode::Open);
    assert!(is_inside(world.arrive(visitor(1), None, true).await));
    world.queue.set_mode(Mode::SoldOut).await.unwrap();
    world.queue.set_mode(Mode::Scheduled).await.unwrap();
    assert_eq!(world.snapshot().await.mode, Mode::Open, "the hour has come");
}

async fn a_paused_room_takes_places_and_calls_nobody(world: World) {
    let world = world.configured(policy()).await;
    world.wait_in_line(visitor(1)).await;
    world.call_all().await;
    world.queue.set_mode(Mode::Paused).await.unwrap();
    score(world.arrive(visitor(2), None, true).await);
    assert_eq!(world.call_all().await, 0);
    assert!(is_inside(world.claim(visitor(1)).await), "a call is a reservation");
    world.queue.set_mode(Mode::Open).await.unwrap();
    assert_eq!(world.call_all().await, 1);
}

async fn a_room_that_takes_nobody_says_why(world: World) {
    let world = world.configured(policy()).await;
    for number in 1..3 {
        world.wait_in_line(visitor(number)).await;
    }
    world.queue.call(1).await.unwrap();
    for mode in [Mode::SoldOut, Mode::Closed] {
        world.queue.set_mode(mode).await.unwrap();
        assert_eq!(world.arrive(visitor(9), None, true).await, Place::NotOpen(mode));
        score(world.look(visitor(2)).await);
        assert_eq!(world.call_all().await, 0);
        assert_eq!(world.snapshot().await.mode, mode);
    }
    assert!(is_inside(world.claim(visitor(1)).await), "a call is a reservation");
}

async fn a_change_of_rate_gives_no_tokens_for_the_past(world: World) {
    let slow = Policy { rate: 1.0, burst: 10, ..policy() };
    let world = world.configured(slow.clone()).await;
    let crowd = visitors(0..40);
    for visitor in &crowd {
        world.wait_in_line(*visitor).await;
    }
    assert_eq!(world.call_all().await, 10);
    world.pass_while_present(Duration::from_secs(2), &crowd).await;
    world.queue.configure(&Policy { rate: 100.0, ..slow }, Past::Blank).await.unwrap();
    assert_eq!(world.call_all().await, 2, "two seconds went by at one a second");
    world.clock.advance(Duration::from_millis(50));
    assert_eq!(world.call_all().await, 5);
}
