//! Who decides how fast a room admits, and what a decision does.

use std::time::Duration;

use stanchion::{
    clock::Clock as _,
    queue::{NodeId, Pace, Past, Policy, Reported},
};

use super::world::{World, is_inside, policy, visitor, visitors};

super::on_both_engines!(
    one_node_decides_and_another_takes_over_when_it_falls_silent,
    everybody_hears_what_everybody_reported_for_ten_seconds,
    a_report_is_never_of_the_future,
    no_crowd_of_nodes_makes_the_reports_grow,
    a_decision_lowers_the_pace_and_ejects_nobody,
    a_decision_never_raises_the_capacity_above_the_configured_one,
    a_decision_without_the_lease_or_about_another_policy_does_nothing,
    setting_up_again_undoes_a_decision_only_when_the_policy_changed,
    a_faster_pace_catches_nothing_up,
    calls_run_ahead_of_entries_by_as_much_as_visitors_stay_away,
);

pub const LEASE: Duration = Duration::from_secs(3);
const ANN: NodeId = NodeId::from_bits(7);
const BEN: NodeId = NodeId::from_bits(10);

async fn report(world: &World, node: NodeId, text: &str) -> Reported {
    world.queue.report(node, text, LEASE).await.unwrap()
}

async fn decide(world: &World, pace: Pace) -> bool {
    let configured_us = report(world, ANN, "").await.configured_us;
    world.queue.decide(ANN, configured_us, pace).await.unwrap()
}

fn pace(rate: f64) -> Pace {
    Pace { capacity: 1_000, rate, call_rate: rate, reason: 1 }
}

async fn one_node_decides_and_another_takes_over_when_it_falls_silent(world: World) {
    let world = world.configured(policy()).await;
    for _ in 0..10 {
        assert!(report(&world, ANN, "a").await.holds_lease);
        assert!(!report(&world, BEN, "b").await.holds_lease);
        world.pass(Duration::from_secs(1)).await;
    }
    let mut seconds = 1;
    while !report(&world, BEN, "b").await.holds_lease {
        world.pass(Duration::from_secs(1)).await;
        seconds += 1;
    }
    assert_eq!(seconds, 3, "the lease");
    assert!(!report(&world, ANN, "a").await.holds_lease, "back, but no longer the one");
    let configured_us = report(&world, ANN, "a").await.configured_us;
    assert!(!world.queue.decide(ANN, configured_us, pace(1.0)).await.unwrap());
    assert!(world.queue.decide(BEN, configured_us, pace(2.0)).await.unwrap());
    assert!((world.snapshot().await.rate - 2.0).abs() < 1e-9);
}

async fn everybody_hears_what_everybody_reported_for_ten_seconds(world: World) {
    let world = world.configured(policy()).await;
    let said = |reported: Reported| -> Vec<(u64, String)> {
        reported.reports.into_iter().map(|report| (report.age_ms, report.text)).collect()
    };
    assert_eq!(said(report(&world, ANN, "v1 a b").await), [(0, "v1 a b".to_owned())]);
    world.pass(Duration::from_millis(4_500)).await;
    let both = [(0, String::new()), (4_500, "v1 a b".to_owned())];
    assert_eq!(said(report(&world, BEN, "").await), both);
    world.pass(Duration::from_millis(5_500)).await;
    assert_eq!(said(report(&world, BEN, "c").await).len(), 2);
    world.pass(Duration::from_millis(1)).await;
    assert_eq!(said(report(&world, BEN, "d").await), [(0, "d".to_owned())]);
}

async fn a_report_is_never_of_the_future(world: World) {
    let world = world.configured(policy()).await;
    assert!(report(&world, ANN, "a").await.holds_lease);
    world.clock.advance(Duration::from_secs(2));
    // Without the lease, so the moment is noted nowhere else.
    assert!(!report(&world, BEN, "b").await.holds_lease);
    world.clock.set(world.clock.unix_micros() - 1_900_000);
    let ages: Vec<u64> = report(&world, ANN, "a").await.reports.into_iter().map(|report| report.age_ms).collect();
    assert_eq!(ages, [0, 0]);
}

async fn no_crowd_of_nodes_makes_the_reports_grow(world: World) {
    let world = world.configured(policy()).await;
    for round in 0..2 {
        for node in 1..=100 {
            let reported = report(&world, NodeId::from_bits(node), "x").await;
            assert!(reported.reports.len() <= 65, "{} in round {round}", reported.reports.len());
        }
    }
}

async fn a_decision_lowers_the_pace_and_ejects_nobody(world: World) {
    let world = world.configured(Policy { capacity: 20, burst: 1, ..policy() }).await;
    for number in 0..30 {
        world.arrive(visitor(number), None, true).await;
        world.pass(Duration::from_millis(10)).await;
    }
    assert_eq!(world.snapshot().await.inside, 20);
    assert!(decide(&world, Pace { capacity: 15, ..pace(1.0) }).await);
    let now = world.snapshot().await;
    assert_eq!((now.inside, now.capacity), (20, 15));
    for number in 0..5 {
        world.queue.release(visitor(number)).await.unwrap();
        assert_eq!(world.call_all().await, 0, "nobody is called until it is below");
    }
    world.queue.release(visitor(5)).await.unwrap();
    world.pass(Duration::from_secs(2)).await;
    assert_eq!(world.call_all().await, 1);
    world.queue.release(visitor(6)).await.unwrap();
    assert_eq!(world.call_all().await, 0, "at the new rate");
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(world.call_all().await, 1);
}

async fn a_decision_never_raises_the_capacity_above_the_configured_one(world: World) {
    let world = world.configured(Policy { capacity: 20, ..policy() }).await;
    assert!(decide(&world, Pace { capacity: 500, rate: 5.0, call_rate: 500.0, reason: 3 }).await);
    let reported = report(&world, BEN, "").await;
    assert_eq!((reported.capacity, reported.pace.capacity, reported.pace.reason), (20, 20, 3));
    assert!((reported.pace.call_rate - 10.0).abs() < 1e-9, "twice the rate of entries at most: {reported:?}");
}

async fn a_decision_without_the_lease_or_about_another_policy_does_nothing(world: World) {
    let world = world.configured(policy()).await;
    let old = report(&world, ANN, "").await.configured_us;
    assert!(!world.queue.decide(BEN, old, pace(1.0)).await.unwrap());
    world.pass(LEASE).await;
    assert!(!world.queue.decide(ANN, old, pace(1.0)).await.unwrap(), "the lease ran out");
    report(&world, ANN, "").await;
    world.queue.configure(&Policy { rate: 30.0, ..policy() }, Past::Blank).await.unwrap();
    assert!(!world.queue.decide(ANN, old, pace(1.0)).await.unwrap(), "it was about the old policy");
    assert!((world.snapshot().await.rate - 30.0).abs() < 1e-9);
}

async fn setting_up_again_undoes_a_decision_only_when_the_policy_changed(world: World) {
    let world = world.configured(policy()).await;
    assert!(decide(&world, Pace { capacity: 9, ..pace(2.0) }).await);
    // A gateway that starts in mid-sale.
    world.queue.configure(&policy(), Past::Blank).await.unwrap();
    let now = world.snapshot().await;
    assert!(now.capacity == 9 && (now.rate - 2.0).abs() < 1e-9, "{now:?}");
    world.queue.configure(&Policy { capacity: 50, ..policy() }, Past::Blank).await.unwrap();
    let now = world.snapshot().await;
    assert!(now.capacity == 50 && (now.rate - 2.0).abs() < 1e-9, "{now:?}");
    world.queue.configure(&Policy { capacity: 50, rate: 60.0, ..policy() }, Past::Blank).await.unwrap();
    assert!((world.snapshot().await.rate - 60.0).abs() < 1e-9);
}

async fn a_faster_pace_catches_nothing_up(world: World) {
    let world = world.configured(Policy { rate: 1.0, burst: 50, ..policy() }).await;
    for visitor in visitors(0..200) {
        world.wait_in_line(visitor).await;
    }
    assert_eq!(world.call_all().await, 50);
    world.pass(Duration::from_secs(5)).await;
    assert!(decide(&world, pace(40.0)).await);
    assert_eq!(world.call_all().await, 5, "those five seconds were slow");
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(world.call_all().await, 40);
}

async fn calls_run_ahead_of_entries_by_as_much_as_visitors_stay_away(world: World) {
    let world = world.configured(Policy { rate: 2.0, burst: 1, ..policy() }).await;
    assert!(decide(&world, Pace { call_rate: 4.0, ..pace(2.0) }).await);
    let crowd = visitors(0..100);
    for visitor in &crowd {
        world.wait_in_line(*visitor).await;
    }
    let (mut called, mut entered) = (0, 0);
    for _ in 0..40 {
        world.clock.advance(Duration::from_millis(250));
        called += world.call_all().await;
        for visitor in &crowd[..called as usize] {
            entered += u32::from(is_inside(world.claim(*visitor).await));
        }
    }
    assert!((40..=41).contains(&called), "{called} in 10 s");
    let inside = world.snapshot().await.admitted_total;
    assert!((20..=21).contains(&inside), "{inside} entries in 10 s, seen {entered} times");
}
