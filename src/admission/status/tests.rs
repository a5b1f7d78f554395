use super::*;
use crate::{
    admission::view::tests::snapshot,
    queue::{RoomName, Schedule, Score, VisitorId},
    tokens::{Claims, TokenType},
};

const NOW_MS: u64 = 1_700_000_000_000;

fn policy() -> Policy {
    Policy {
        capacity: 10,
        rate: 5.0,
        burst: 1,
        claim_window: Duration::from_mins(1),
        session_ttl: Duration::from_mins(10),
        absent_after: Duration::from_mins(1),
        grace: Duration::from_mins(5),
        settle: Duration::from_secs(10),
        schedule: Schedule::default(),
    }
}

fn view(mode: Mode, called_per_second: f64) -> View {
    let mut snapshot = snapshot();
    snapshot.mode = mode;
    View {
        snapshot,
        sketch: std::sync::Arc::default(),
        asked_at_micros: NOW_MS * 1_000,
        flow: Flow { admitted: called_per_second, called: called_per_second },
        draws: None,
    }
}

fn holder(standing: Standing) -> Turn {
    let room: RoomName = "main".parse().unwrap();
    let claims = Claims {
        typ: TokenType::Queue,
        room,
        sub: VisitorId::from_bits(1),
        score: Score(7),
        iat: 1,
        exp: 2,
        epoch: 1,
        draw: false,
        arrival: None,
        since_ms: None,
        ahead: None,
        called_ms: None,
        admitted_ms: None,
    };
    Turn { standing, queue: Some(claims), is_new: false }
}

fn joined_behind(ahead: u64) -> Turn {
    let mut turn = holder(Standing::Waiting);
    if let Some(claims) = &mut turn.queue {
        claims.ahead = Some(ahead);
    }
    turn
}

fn tell(view: &View, turn: &Turn, is_stale: bool, jitter: f64) -> StatusDocument {
    let policy = policy();
    let situation = Situation { room: "main", message: None, policy: &policy, view, now_ms: NOW_MS, is_stale, jitter };
    document(&situation, turn)
}

#[test]
fn the_json_has_exactly_the_fields_of_the_contract() {
    let mut document = tell(&view(Mode::Open, 2.0), &holder(Standing::NotQueued), false, 0.5);
    document.location = Some("/shop".to_owned());
    let json = serde_json::to_value(&document).unwrap();
    let names: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = vec![
        "room",
        "state",
        "position",
        "ahead",
        "line",
        "eta_seconds",
        "admitted_per_minute",
        "opens_at",
        "next_poll_ms",
        "message",
        "location",
    ];
    let mut names = names;
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(json["state"], "not_queued");
    assert_eq!(json["position"], serde_json::Value::Null);
}

#[test]
fn whoever_is_next_has_position_one_and_nobody_ahead() {
    let document = tell(&view(Mode::Open, 2.0), &holder(Standing::Called { wait_ms: 300 }), false, 0.5);
    assert_eq!((document.state, document.position, document.ahead), (State::Waiting, Some(1), Some(0)));
    assert_eq!(document.eta_seconds.unwrap().low, 0, "nought means ready, not unknown");
    assert_eq!(document.next_poll_ms, 400);
}

#[test]
fn eta_follows_the_pace_seen_and_is_unknown_when_nothing_moves() {
    let flow = |called| Flow { admitted: called, called };
    let Eta { low, high } = eta(4_212, flow(6.87), 10.0, 0).unwrap();
    assert!((500..=613).contains(&low) && (613..=800).contains(&high), "{low} to {high}");
    assert_eq!(eta(10, flow(0.0), 10.0, 0), None, "no movement");
    assert_eq!(eta(10, flow(f64::NAN), 10.0, 0), None);
    assert_eq!(eta(10, flow(5.0), 0.0, 0), None, "rate 0");
    assert_eq!(eta(10, flow(5.0), f64::NAN, 0), None);
    for ahead in [0, 1, 1_000, u64::MAX] {
        for called in [0.01, 1.0, 1e9] {
            let Eta { low, high } = eta(ahead, flow(called), 1.0, 3).unwrap();
            assert!(3 <= low && low <= high, "{ahead} at {called}: {low} to {high}");
        }
    }
}

#[test]
fn a_line_that_stands_still_promises_no_time() {
    for (mode, state) in [(Mode::Paused, State::Paused), (Mode::SoldOut, State::SoldOut), (Mode::Closed, State::Closed)]
    {
        let document = tell(&view(mode, 2.0), &holder(Standing::Waiting), false, 0.5);
        let position = (mode == Mode::Paused).then_some(1);
        assert_eq!((document.state, document.position, document.eta_seconds), (state, position, None));
    }
    let stale = tell(&view(Mode::Open, 2.0), &holder(Standing::Called { wait_ms: 0 }), true, 0.5);
    assert_eq!(stale.eta_seconds, None, "nobody is called while the store is away");
    assert_eq!(stale.position, Some(1), "but the place is still told");
}

#[test]
fn polls_are_spread_by_a_fifth_after_every_cap() {
    for (standing, is_stale) in [(Standing::Expired, false), (Standing::NotQueued, false), (Standing::Expired, true)] {
        let poll = |jitter| tell(&view(Mode::Open, 0.0), &holder(standing.clone()), is_stale, jitter).next_poll_ms;
        let middle = poll(0.5);
        assert_eq!((poll(0.0), poll(1.0)), (middle * 4 / 5, middle * 6 / 5), "{standing:?}");
    }
    let longest = tell(&view(Mode::SoldOut, 0.0), &holder(Standing::Expired), true, 1.0).next_poll_ms;
    assert_eq!(longest, 18_000);
}

#[test]
fn a_stale_view_is_polled_more_slowly() {
    let called = holder(Standing::Called { wait_ms: 0 });
    let fresh = tell(&view(Mode::Open, 2.0), &called, false, 0.5).next_poll_ms;
    let stale = tell(&view(Mode::Open, 2.0), &called, true, 0.5).next_poll_ms;
    assert!(stale >= 4_000 && fresh <= 1_000, "{stale} and {fresh}");
}

#[test]
fn before_the_opening_everybody_comes_back_just_after_it() {
    let mut view = view(Mode::Scheduled, 0.0);
    view.snapshot.opens_at_ms = Some(NOW_MS + 4_000);
    for jitter in [0.0, 0.3, 1.0] {
        let document = tell(&view, &holder(Standing::Promised), false, jitter);
        assert_eq!((document.state, document.position), (State::Scheduled, None));
        assert!((4_001..=6_000).contains(&document.next_poll_ms), "{}", document.next_poll_ms);
        assert!(document.opens_at.is_some());
    }
    view.snapshot.opens_at_ms = Some(NOW_MS + 3_600_000);
    assert_eq!(tell(&view, &holder(Standing::Promised), false, 1.0).next_poll_ms, 18_000);
}

#[test]
fn nobody_sleeps_through_a_turn_that_the_rate_allows() {
    // Nothing was called yet, as at an opening.
    let mut view = view(Mode::Open, 0.0);
    view.snapshot.rate = 100.0;
    for (ahead, most_ms) in [(0, 1_200), (600, 2_400), (1_500, 6_000), (100_000, 18_000)] {
        let turn = joined_behind(ahead);
        let next_poll_ms = tell(&view, &turn, false, 1.0).next_poll_ms;
        assert!((1_000..=most_ms).contains(&next_poll_ms), "{ahead} ahead: {next_poll_ms}");
    }
}

#[test]
fn a_newcomer_is_told_a_line_that_counts_them_before_a_snapshot_does() {
    let mut view = view(Mode::Open, 2.0);
    view.snapshot.line = 5;
    let document = tell(&view, &joined_behind(5), false, 0.5);
    assert_eq!((document.position, document.ahead, document.line), (Some(6), Some(5), 6));
}
