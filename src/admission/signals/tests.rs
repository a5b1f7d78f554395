use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn setup() -> (Arc<Meter>, Window, Instant) {
    let (meter, now) = (Arc::new(Meter::default()), Instant::now());
    (Arc::clone(&meter), Window::new(meter, now), now)
}

#[test]
fn each_request_ends_in_one_way() {
    let (meter, mut window, now) = setup();
    let running: Vec<Exchange> = (0..4).map(|_| meter.start(now)).collect();
    assert_eq!(window.report(now).in_flight, 4);
    let later = now + Duration::from_millis(100);
    let mut running = running.into_iter();
    running.next().unwrap().answered(http::StatusCode::NOT_FOUND, later);
    running.next().unwrap().answered(http::StatusCode::INTERNAL_SERVER_ERROR, later);
    running.next().unwrap().failed();
    drop(running);
    let report = window.report(later);
    assert_eq!((report.waits.count(), report.failed, report.in_flight), (1, 2, 0));
    let p95 = report.waits.quantile_ms(0.95).unwrap();
    assert!((85.0..115.0).contains(&p95), "{p95}");
}

#[test]
fn what_is_older_than_ten_seconds_is_forgotten() {
    let (meter, mut window, start) = setup();
    meter.start(start).answered(http::StatusCode::OK, start);
    for second in 0..=12 {
        let report = window.report(start + SECOND * second);
        assert_eq!(report.waits.count(), u64::from(second <= 10), "after {second} s");
        assert!(report.window_ms <= 10_000);
    }
}

#[test]
fn a_busy_shop_is_judged_by_its_last_two_seconds() {
    let (meter, mut window, start) = setup();
    for second in 0..20 {
        let (from, wait) = (start + SECOND * second, Duration::from_millis(if second < 15 { 50 } else { 900 }));
        for _ in 0..200 {
            meter.start(from).answered(http::StatusCode::OK, from + wait);
        }
        let report = window.report(from + SECOND);
        let p95 = report.waits.quantile_ms(0.95).unwrap();
        assert_eq!(p95 > 800.0, second >= 15, "{p95} after {second} s");
        assert!(second < 2 || (report.waits.count(), report.window_ms) == (400, 2_000), "{report:?}");
    }
}

/// A shop that hangs while its visitors lose patience must not look like one that nobody asks.
#[test]
fn a_wait_that_a_visitor_gave_up_counts_as_at_least_as_long() {
    let (meter, mut window, now) = setup();
    let before = now.checked_sub(SECOND).unwrap();
    drop(meter.start(before));
    drop(meter.start(now));
    let report = window.report(now + SECOND);
    assert_eq!((report.waits.count(), report.failed, report.in_flight), (1, 0, 0));
    assert!(report.waits.quantile_ms(0.95).unwrap() >= 850.0);
}

#[test]
fn a_shop_that_answers_nobody_is_slow() {
    let (meter, mut window, start) = setup();
    let mut running: VecDeque<Exchange> = VecDeque::new();
    for second in 0..8 {
        let from = start + SECOND * second;
        running.extend((0..10).map(|_| meter.start(from)));
        if second < 3 {
            running.drain(..).for_each(|exchange| exchange.answered(http::StatusCode::OK, from));
        }
        let waited = window.report(from + SECOND).waits.quantile_ms(0.95).unwrap();
        // Whoever came in the fourth second is known to have waited from the next look on.
        let stuck = f64::from(second.saturating_sub(3)) * 1_000.0;
        assert!((stuck * 0.75..=stuck * 1.25 + 1.0).contains(&waited), "{waited} ms after {second} s");
    }
    // Those that were given up are not under way.
    running.clear();
    assert_eq!(window.report(start + SECOND * 9).in_flight, 0);
}

#[test]
fn the_shops_word_holds_for_ten_seconds() {
    let (meter, mut window, start) = setup();
    assert_eq!(window.report(start).room_for, None);
    meter.note_room_for(40, start);
    assert_eq!(window.report(start + SECOND * 3).room_for, Some((40, 3_000)));
    assert_eq!(window.report(start + SECOND * 11).room_for, None);
}
