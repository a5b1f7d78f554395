use http::Response;

use super::*;

fn head(lines: &[(&str, &str)]) -> response::Parts {
    let lines = lines.iter().fold(Response::builder(), |answer, (name, value)| answer.header(*name, *value));
    lines.body(()).unwrap().into_parts().0
}

/// Seconds that an answer with these lines is fresh; 0 if it is not to be kept.
fn fresh(lines: &[(&str, &str)]) -> u64 {
    life(&head(lines), SystemTime::UNIX_EPOCH).map_or(0, |life| life.fresh.as_secs())
}

#[test]
fn what_is_meant_for_shared_caches_goes_first_and_age_is_taken_off() {
    assert_eq!(fresh(&[("cache-control", "max-age=60")]), 60);
    assert_eq!(fresh(&[("cache-control", "max-age=60, S-MaxAge=5")]), 5);
    assert_eq!(fresh(&[("cache-control", "public, max-age=\"60\""), ("cache-control", "x=\"a, no-store\"")]), 60);
    assert_eq!(fresh(&[("cache-control", "max-age=60, max-age=20")]), 20);
    assert_eq!(fresh(&[("cache-control", "max-age=99999999999999999999")]), MOST_FRESH.as_secs());
    assert_eq!(fresh(&[("cache-control", "max-age=60"), ("age", "15")]), 45);
    assert_eq!(fresh(&[("cache-control", "max-age=60"), ("age", "60")]), 0);
    let dates = [("date", "Thu, 01 Jan 1970 00:01:00 GMT"), ("expires", "Thu, 01 Jan 1970 00:01:30 GMT")];
    assert_eq!(fresh(&dates), 30, "by the origin's clock");
    assert_eq!(fresh(&dates[1..]), 90, "by ours");
    assert_eq!(fresh(&[dates[0], dates[1], ("cache-control", "max-age=7")]), 7);
}

#[test]
fn what_is_personal_unclear_or_not_said_is_not_kept() {
    for lines in [
        &[][..],
        &[("cache-control", "public")],
        &[("cache-control", "max-age=60, no-store")],
        &[("cache-control", "max-age=60, Private")],
        &[("cache-control", "max-age=60, private=\"set-cookie, x\"")],
        &[("cache-control", "max-age=60"), ("cache-control", "no-cache")],
        &[("cache-control", "max-age=60, no-cache=\"x\"")],
        &[("cache-control", "max-age=0")],
        &[("cache-control", "max-age=-1")],
        &[("cache-control", "max-age=")],
        &[("cache-control", "max-age=6O")],
        &[("cache-control", "s-maxage=x, max-age=60")],
        &[("cache-control", "max-age=60, x=\"open")],
        &[("cache-control", "max-age=60"), ("age", "soon")],
        &[("cache-control", "max-age=60"), ("set-cookie", "a=1")],
        &[("cache-control", "max-age=60"), ("stanchion-command", "release")],
        &[("cache-control", "max-age=60"), ("stanchion-pin", "60")],
        &[("expires", "0")],
        &[("expires", "Thu, 01 Jan 1970 00:00:00 GMT")],
    ] {
        assert_eq!(fresh(lines), 0, "{lines:?}");
    }
    for (status, is_kept) in
        [(200, true), (301, true), (308, true), (404, true), (410, true), (206, false), (302, false), (500, false)]
    {
        let mut head = head(&[("cache-control", "max-age=60")]);
        head.status = StatusCode::from_u16(status).unwrap();
        assert_eq!(life(&head, SystemTime::UNIX_EPOCH).is_some(), is_kept, "{status}");
    }
}

#[test]
fn old_answers_serve_as_long_as_the_origin_says_and_not_for_ever() {
    let stale = |value| {
        let life = life(&head(&[("cache-control", value)]), SystemTime::UNIX_EPOCH).unwrap();
        (life.meanwhile.as_secs(), life.on_error.as_secs())
    };
    assert_eq!(stale("max-age=1"), (0, 0));
    assert_eq!(stale("s-maxage=1, stale-while-revalidate=5, stale-if-error=30"), (5, 30));
    assert_eq!(stale("max-age=1, stale-while-revalidate=99999, stale-if-error=99999"), (60, 600));
    assert_eq!(stale("max-age=1, must-revalidate, stale-while-revalidate=5, stale-if-error=30"), (0, 0));
    assert_eq!(stale("max-age=1, stale-if-error=x"), (0, 0));
}

#[test]
fn what_every_visitor_has_of_their_own_cannot_be_varied_by() {
    let fields = |lines: &[(&str, &str)]| {
        varies_by(&head(lines).headers).map(|fields| fields.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(fields(&[]), Some(vec![]));
    let lines = [("vary", "Cookie, accept-encoding"), ("vary", "X-Forwarded-Proto,Cookie,")];
    assert_eq!(fields(&lines), Some(vec!["accept-encoding".to_owned(), "cookie".to_owned()]));
    for line in ["*", "accept, *", "x-forwarded-for", "stanchion-visitor", "Forwarded", "a b"] {
        assert_eq!(fields(&[("vary", line)]), None, "{line}");
    }
}
