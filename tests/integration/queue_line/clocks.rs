//! A clock that steps, and a room nobody looked after for a while.

use std::time::Duration;

use stanchion::{
    clock::Clock as _,
    queue::{Place, Policy},
};

use super::world::{World, is_called, is_inside, policy, visitor, visitors};

super::on_both_engines!(
    a_clock_that_steps_back_neither_reorders_nor_stops_the_line,
    a_clock_that_steps_forward_expires_nobody_in_the_line,
    an_outage_costs_nobody_the_place_or_the_call,
    a_pause_is_not_caught_up,
);

async fn a_clock_that_steps_back_neither_reorders_nor_stops_the_line(world: World) {
    let world = world.configured(Policy { rate: 10.0, burst: 1, ..policy() }).await;
    let crowd = visitors(0..100);
    let mut last = world.wait_in_line(crowd[0]).await;
    for visitor in &crowd[1..60] {
        last = world.wait_in_line(*visitor).await;
    }
    assert_eq!(world.call_all().await, 1);
    let before_ms = world.snapshot().await.now_ms;
    world.clock.set(world.clock.unix_micros() - 60_000_000);
    // Nothing happens but calls, which have no token yet.
    let mut called = 0;
    for _ in 0..100 {
        world.clock.advance(Duration::from_millis(100));
        called += world.queue.call(50).await.unwrap().called;
    }
    assert!((45..=50).contains(&called), "{called} in 10 s; half speed would be 50, a frozen clock 0");
    for visitor in &crowd[60..] {
        let score = world.wait_in_line(*visitor).await;
        assert!(score > last, "{visitor} got before those who came earlier");
        last = score;
    }
    let now = world.snapshot().await;
    assert!(now.now_ms > before_ms);
    assert_eq!(now.no_shows_total, 0);
    world.pass_while_present(Duration::from_mins(2), &crowd).await;
    assert_eq!(world.snapshot().await.now_ms, world.now_ms(), "right again in the end");
}

async fn a_clock_that_steps_forward_expires_nobody_in_the_line(world: World) {
    let world = world.configured(Policy { capacity: 1, ..policy() }).await;
    for number in 0..3 {
        world.wait_in_line(visitor(number)).await;
    }
    world.call_all().await;
    world.clock.advance(Duration::from_hours(1));
    world.queue.sweep().await.unwrap();
    assert!(is_called(world.look(visitor(0)).await));
    assert_eq!(world.snapshot().await.line, 2);
}

async fn an_outage_costs_nobody_the_place_or_the_call(world: World) {
    let world = world.configured(Policy { capacity: 2, ..policy() }).await;
    for number in 0..5 {
        world.wait_in_line(visitor(number)).await;
    }
    assert_eq!(world.call_all().await, 2);
    world.clock.advance(Duration::from_mins(15));
    // The first node to come back only calls; the claim of one visitor arrives before any sweep.
    world.call_all().await;
    assert!(is_inside(world.claim(visitor(0)).await));
    world.queue.release(visitor(0)).await.unwrap();
    assert_eq!(world.queue.call(50).await.unwrap().skipped, 0, "nobody could be seen, so nobody is absent");
    assert!(is_called(world.look(visitor(2)).await));
    let swept = world.queue.sweep().await.unwrap();
    assert_eq!((swept.no_shows, swept.absent), (0, 0));
    // From here on both windows run as ever.
    world.pass(Duration::from_secs(30)).await;
    assert_eq!(world.claim(visitor(1)).await, Place::None);
    world.pass(Duration::from_secs(271)).await;
    assert_eq!(world.snapshot().await.line, 0);
}

async fn a_pause_is_not_caught_up(world: World) {
    let world = world.configured(Policy { rate: 20.0, burst: 3, ..policy() }).await;
    let crowd = visitors(0..100);
    for visitor in &crowd {
        world.wait_in_line(*visitor).await;
    }
    assert_eq!(world.call_all().await, 3);
    world.clock.advance(Duration::from_mins(1));
    assert_eq!(world.call_all().await, 3);
    world.clock.advance(Duration::from_millis(100));
    assert_eq!(world.call_all().await, 2);
}
