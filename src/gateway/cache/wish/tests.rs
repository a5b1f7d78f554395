use http::Request;

use super::*;

fn head(method: &str, target: &str, lines: &[(&str, &str)]) -> request::Parts {
    let request = Request::builder().method(method).uri(target);
    let request = lines.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(()).unwrap().into_parts().0
}

fn wish_of(head: &mut request::Parts, sharing: Sharing) -> Option<Wish> {
    let route = Route {
        room: "main".parse().unwrap(),
        visitor: None,
        session_expires: None,
        drop_authorization: false,
        sharing: Some(sharing),
    };
    Wish::of(head, &route, false)
}

#[test]
fn only_plain_reading_is_shared() {
    for (method, lines) in [
        ("POST", &[][..]),
        ("OPTIONS", &[]),
        ("GET", &[("authorization", "Basic eA==")]),
        ("GET", &[("range", "bytes=0-1")]),
        ("GET", &[("upgrade", "websocket")]),
        ("GET", &[("content-length", "1")]),
        ("GET", &[("transfer-encoding", "chunked")]),
        ("GET", &[("x-http-method-override", "DELETE")]),
    ] {
        let mut head = head(method, "/event", lines);
        assert!(wish_of(&mut head, Sharing::Everyone).is_none(), "{method} {lines:?}");
        assert_eq!(head.headers.len(), lines.len(), "left as it is");
    }
    let reload = [("cache-control", "no-cache, no-store, max-age=0"), ("pragma", "no-cache"), ("content-length", "0")];
    assert!(wish_of(&mut head("GET", "/event", &reload), Sharing::Everyone).is_some());
}

#[test]
fn what_is_asked_for_all_names_nobody() {
    let lines = [
        ("host", "shop.test"),
        ("cookie", "stanchion_s_main=t; basket=1"),
        ("x-original-url", "/admin"),
        ("x-requested-with", "x"),
        ("referer", "/x"),
        ("accept-language", "de"),
        ("if-none-match", "\"1\""),
        ("cache-control", "no-cache"),
    ];
    let asked = |sharing| {
        let mut head = head("HEAD", "/event", &lines);
        let wish = wish_of(&mut head, sharing).unwrap();
        assert_eq!(head.method, Method::GET);
        let mut names: Vec<_> = head.headers.keys().map(|name| name.as_str().to_owned()).collect();
        names.sort_unstable();
        let cookie = head.headers.get("cookie").cloned();
        wish.only_mine(&mut head);
        assert_eq!((head.method, &head.headers["if-none-match"]), (Method::HEAD, &HeaderValue::from_static("\"1\"")));
        (names.join(" "), cookie)
    };
    assert_eq!(asked(Sharing::Everyone), ("accept-language host".to_owned(), None));
    let basket = HeaderValue::from_static("basket=1");
    assert_eq!(asked(Sharing::Admitted), ("accept-language cookie host".to_owned(), Some(basket)));
}

#[test]
fn keys_tell_apart_whatever_the_origin_could_tell_apart() {
    let key = |host: &str, target: &str| {
        let mut head = head("GET", target, &[("host", host)]);
        wish_of(&mut head, Sharing::Everyone).unwrap().key().clone()
    };
    let all = [
        key("a", "/event"),
        key("A", "/event"),
        key("a:80", "/event"),
        key("a", "/event?"),
        key("a", "/event?a=1&b=2"),
        key("a", "/event?b=2&a=1"),
        key("a", "/event/"),
        key("a", "//event"),
        key("a", "/%65vent"),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(all[..at].iter().all(|other| other != one), "{one:?}");
    }
    assert_eq!(key("a", "/event"), all[0]);
}

#[test]
fn codings_are_named_in_one_order_and_variants_go_by_values() {
    let variant = |lines: &[(&str, &str)], field: &str| {
        let mut head = head("GET", "/", lines);
        wish_of(&mut head, Sharing::Everyone).unwrap().variant(&[field.parse().unwrap()])
    };
    let coding =
        |value: &str| String::from_utf8(variant(&[("accept-encoding", value)], "accept-encoding").to_vec()).unwrap();
    assert_eq!(coding("gzip, deflate, br"), coding("BR;q=1.0 ,deflate;q=0.5,gzip, x-new"));
    assert_eq!(coding("gzip;q=0, br"), coding("br"));
    assert_eq!(coding("*"), coding("identity"));
    assert_ne!(coding("gzip"), coding("br"));
    assert_ne!(variant(&[], "accept-encoding"), variant(&[("accept-encoding", "")], "accept-encoding"));
    assert_ne!(variant(&[], "accept-language"), variant(&[("accept-language", "")], "accept-language"));
    let split = variant(&[("accept-language", "a"), ("accept-language", "b")], "accept-language");
    assert_ne!(split, variant(&[("accept-language", "a:b")], "accept-language"));
}

#[test]
fn who_has_it_already_is_told_so() {
    let has = |line: (&str, &str), kept: (&'static str, &str)| {
        let mut head = head("GET", "/", &[line]);
        let kept = HeaderMap::from_iter([(HeaderName::from_static(kept.0), kept.1.parse().unwrap())]);
        wish_of(&mut head, Sharing::Everyone).unwrap().has(&kept)
    };
    let (tag, then) = (("etag", "W/\"a\""), ("last-modified", "Thu, 01 Jan 1970 00:01:00 GMT"));
    for known in ["\"a\"", "W/\"a\"", "\"x,\", \"a\"", "*"] {
        assert!(has(("if-none-match", known), tag), "{known}");
    }
    for known in ["\"b\"", "a", "", "\"\""] {
        assert!(!has(("if-none-match", known), tag), "{known}");
    }
    assert!(has(("if-modified-since", "Thu, 01 Jan 1970 00:01:00 GMT"), then));
    assert!(!has(("if-modified-since", "Thu, 01 Jan 1970 00:00:59 GMT"), then));
    assert!(!has(("if-modified-since", "yesterday"), then));
    assert!(!has(("if-modified-since", "Thu, 01 Jan 1970 00:01:00 GMT"), tag));
}
