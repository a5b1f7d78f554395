use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn limits() -> Limits {
    let adaptive =
        Adaptive { target_p95: Duration::from_millis(800), max_error_ratio: 0.05, min_rate: 2.0, max_rate: 50.0 };
    Limits { capacity: 200, rate: 20.0, adaptive: Some(adaptive) }
}

fn shop(p95_ms: f64) -> Shop {
    Shop { nodes: 1, window_ms: 2_000, answered: 400, p95_ms: Some(p95_ms), failed: 0, in_flight: 10 }
}

fn signals(shop: Shop) -> Signals {
    Signals { shop: Some(shop), entries: Some(20.0), ..Signals::default() }
}

/// Decides once a second with the same signals.
fn after(seconds: u64, limits: &Limits, signals: &Signals) -> Decision {
    let first = decide(limits, signals, None, 0);
    (1..=seconds).fold(first, |previous, second| decide(limits, signals, Some(&previous), second * 1_000))
}

#[test]
fn a_room_that_follows_nothing_keeps_its_rate_whatever_is_measured() {
    let limits = Limits { adaptive: None, ..limits() };
    for signals in [Signals::default(), signals(shop(9_000.0)), signals(Shop { failed: 400, ..shop(5.0) })] {
        let decision = after(5, &limits, &signals);
        assert_eq!((decision.rate, decision.call_rate, decision.capacity), (20.0, 20.0, 200));
        assert_eq!(decision.reason, Reason::Configured);
    }
}

#[test]
fn a_shop_that_is_well_gets_more_a_little_at_a_time() {
    let first = after(0, &limits(), &signals(shop(100.0)));
    assert_eq!((first.rate, first.capacity), (20.0, 200));
    let later = after(10, &limits(), &Signals { entries: Some(22.0), ..signals(shop(100.0)) });
    assert_eq!(later.reason, Reason::Raising);
    assert!(later.rate > 21.0 && later.rate <= 20.0 * 1.05_f64.powi(10), "{later:?}");
}

#[test]
fn a_pace_nobody_uses_is_not_raised_beyond_what_the_operator_set() {
    let idle = Signals { entries: Some(0.5), ..signals(Shop { answered: 0, p95_ms: None, in_flight: 0, ..shop(0.0) }) };
    let decision = after(60, &limits(), &idle);
    assert_eq!((decision.rate, decision.reason), (20.0, Reason::Steady));
}

#[test]
fn a_shop_that_has_not_answered_yet_is_not_sent_more() {
    let silent = signals(Shop { answered: 0, p95_ms: None, in_flight: 30, ..shop(0.0) });
    let decision = after(60, &limits(), &Signals { entries: Some(30.0), ..silent });
    assert_eq!((decision.rate, decision.reason), (20.0, Reason::Steady));
}

#[test]
fn near_its_aim_the_shop_gets_neither_more_nor_less() {
    let decision = after(60, &limits(), &signals(shop(700.0)));
    assert_eq!((decision.rate, decision.reason), (20.0, Reason::Steady));
}

#[test]
fn slow_answers_cut_the_pace_by_what_really_came_in() {
    let slow = Signals { entries: Some(10.0), ..signals(shop(900.0)) };
    let decision = after(0, &limits(), &slow);
    assert_eq!((decision.rate, decision.reason), (8.0, Reason::Slow));
    let again = decide(&limits(), &slow, Some(&decision), 1_000);
    assert!((again.rate - decision.rate).abs() < 1e-9, "a cut is given time to show");
}

#[test]
fn a_few_slow_or_failed_requests_are_an_accident() {
    for accident in [Shop { answered: 5, ..shop(5_000.0) }, Shop { answered: 5, failed: 2, ..shop(50.0) }] {
        let decision = after(20, &limits(), &signals(accident));
        assert!((decision.rate - 20.0).abs() < 1e-9, "{decision:?}");
    }
}

#[test]
fn what_says_nothing_slows_down() {
    let missing = after(10, &limits(), &Signals { shop: None, ..signals(shop(1.0)) });
    assert_eq!(missing.reason, Reason::SignalsMissing);
    assert!(missing.rate < 13.0, "{missing:?}");
    let previous = decide(&limits(), &signals(Shop { nodes: 3, ..shop(1.0) }), None, 0);
    let fewer = decide(&limits(), &signals(Shop { nodes: 2, ..shop(1.0) }), Some(&previous), 1_000);
    assert_eq!(fewer.reason, Reason::SignalsMissing, "a node fell silent");
    assert!((fewer.rate - 19.0).abs() < 1e-9);
}

#[test]
fn calls_make_up_for_those_who_do_not_come() {
    for (no_shows, factor) in
        [(None, 1.0), (Some(0.2), 1.25), (Some(0.9), 2.0), (Some(f64::NAN), 1.0), (Some(-1.0), 1.0)]
    {
        let decision = decide(&limits(), &Signals { no_shows, ..signals(shop(700.0)) }, None, 0);
        assert!((decision.call_rate - decision.rate * factor).abs() < 1e-9, "{no_shows:?}: {decision:?}");
    }
}

#[test]
fn reasons_survive_the_store() {
    for reason in Reason::ALL {
        assert_eq!(Reason::of_code(reason.code()), reason);
    }
    assert_eq!(Reason::of_code(99), Reason::Configured);
}

fn any_signals() -> impl Strategy<Value = Signals> {
    let wait = prop::option::of(prop_oneof![0.0..5_000.0, Just(f64::INFINITY)]);
    let shop = (0_u32..4, 0_u64..20_000, 0_u64..1_000, wait, 0_u64..100).prop_map(
        |(nodes, window_ms, answered, p95_ms, failed)| Shop {
            nodes,
            window_ms,
            answered,
            p95_ms,
            failed,
            in_flight: 3,
        },
    );
    let room_for = prop::option::of(0_u64..400);
    let ratio = prop::option::of(-1.0..2.0);
    let entries = prop::option::of(0.0..100.0);
    (prop::option::of(shop), room_for, ratio, entries).prop_map(|(shop, room_for, no_shows, entries)| Signals {
        shop,
        room_for,
        no_shows,
        entries,
    })
}

proptest! {
    #[test]
    fn no_history_leads_beyond_the_limits(history in prop::collection::vec((any_signals(), 0_u64..20_000), 1..200)) {
        let (limits, mut previous, mut now_ms) = (limits(), None::<Decision>, 1_000_000_u64);
        for (signals, millis) in history {
            // Now and then the clock steps back.
            now_ms = (now_ms + millis).saturating_sub(5_000);
            let decision = decide(&limits, &signals, previous.as_ref(), now_ms);
            prop_assert!((2.0..=50.0).contains(&decision.rate), "{decision:?}");
            prop_assert!(decision.capacity <= 200);
            let factor = decision.call_rate / decision.rate;
            prop_assert!((1.0 - 1e-9..=2.0 + 1e-9).contains(&factor), "{decision:?}");
            if let Some(previous) = previous {
                prop_assert!(decision.rate <= previous.rate * 1.11, "{previous:?} {decision:?}");
                let asked = signals.room_for.map(|room| room.min(200));
                prop_assert!(asked.is_none_or(|asked| u64::from(decision.capacity) == asked));
            }
            previous = Some(decision);
        }
    }
}
