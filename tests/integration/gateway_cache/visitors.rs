//! Who gets what is kept.

use super::{KEEP, answer, ask, get, house, house_with, numbering, said, text, whole};
use crate::support::{house::House, origin::Origin};

/// With one visitor inside, whose cookie this is; nobody else gets in.
async fn full(origin: http::Uri) -> (House, String) {
    let house = house_with(origin, |config| config.policy.capacity = 1).await;
    let (head, _) = answer(&house, get("/first", "")).await;
    assert_eq!(head.status(), 200);
    let cookie = head.all("set-cookie").into_iter().find(|cookie| cookie.starts_with("stanchion_s_")).unwrap();
    let cookie = format!("Cookie: {}; basket=1\r\n", cookie.split(';').next().unwrap());
    (house, cookie)
}

#[tokio::test]
async fn whoever_waits_gets_what_is_for_everyone_and_nothing_else() {
    let shop = numbering(KEEP).await;
    let (house, inside) = full(shop.uri.clone()).await;
    // Before anybody else asked for it, and after.
    for _ in 0..2 {
        let (head, body) = answer(&house, get("/public/page", "")).await;
        assert_eq!((head.status(), body.as_str()), (200, "answer 2"));
        assert_eq!(head.all("set-cookie"), Vec::<String>::new(), "and is counted nowhere");
    }
    assert_eq!(text(&house, "/event", &inside).await, "answer 3");
    for path in ["/event", "/shop"] {
        assert_eq!(ask(&house, get(path, "")).await.head().await.status(), 503, "{path}");
    }
    assert_eq!(shop.heard().len(), 3);
    assert_eq!(text(&house, "/event", &inside).await, "answer 3");
}

#[tokio::test]
async fn for_everyone_the_shop_is_told_of_nobody_and_for_those_admitted_of_their_cookies() {
    let shop = numbering(KEEP).await;
    let (house, inside) = full(shop.uri.clone()).await;
    assert_eq!(text(&house, "/public", &inside).await, "answer 2");
    assert_eq!(text(&house, "/event", &inside).await, "answer 3");
    let heard = shop.heard();
    for name in ["cookie", "stanchion-visitor", "stanchion-session-expires"] {
        assert!(!heard[1].contains(&format!("\n{name}:")), "{}", heard[1]);
        assert!(heard[2].contains(&format!("\n{name}:")), "{}", heard[2]);
    }
    assert!(heard[2].contains("\ncookie: basket=1\r\n"), "{}", heard[2]);
    assert!(heard[1].contains("\nstanchion-room: main\r\n"), "{}", heard[1]);
}

#[tokio::test]
async fn only_plain_reading_of_a_plain_path_skips_the_gate() {
    let shop = numbering(KEEP).await;
    let (house, _) = full(shop.uri.clone()).await;
    assert_eq!(text(&house, "/public", "").await, "answer 2");
    for path in [
        "/public;x",
        "/public;/../shop",
        "/PUBLIC",
        "//public",
        "/publicly",
        "/%70ublic",
        "/public/%2e",
        "/public/%2e%2e/shop",
        "/public/../shop",
        "/public/%252e%252e/shop",
        "/public%2f..%2fshop",
        "/public/x\\..\\..\\shop",
        "/public%00",
    ] {
        let status = ask(&house, get(path, "")).await.head().await.status();
        assert!(matches!(status, 400 | 503), "{path}: {status}");
    }
    for lines in ["Authorization: Basic eA==\r\n", "Range: bytes=0-1\r\n", "X-HTTP-Method-Override: DELETE\r\n"] {
        assert_eq!(ask(&house, get("/public", lines)).await.head().await.status(), 503, "{lines}");
    }
    for method in ["POST", "DELETE", "OPTIONS"] {
        let request = get("/public", "Content-Length: 0\r\n").replace("GET", method);
        assert_eq!(ask(&house, request).await.head().await.status(), 503, "{method}");
    }
    let with_body = get("/public", "Content-Length: 5\r\n") + "hello";
    assert_eq!(ask(&house, with_body).await.head().await.status(), 503);
    assert_eq!(shop.heard().len(), 2);
}

/// A longer prefix, for those admitted, has the say over all that some origin might read as lying under it.
#[tokio::test]
async fn a_part_of_what_is_for_everyone_can_be_kept_back() {
    let shop = numbering(KEEP).await;
    let house = house_with(shop.uri.clone(), |config| {
        config.policy.capacity = 1;
        config.cache[0].path_prefix = "/public/seats".to_owned();
    })
    .await;
    assert_eq!(text(&house, "/first", "").await, "answer 1");
    for path in
        ["/public/seats", "/public/seats/1", "/public//seats", "/public/./seats", "/public/Seats", "/public/x/../seats"]
    {
        assert_eq!(ask(&house, get(path, "")).await.head().await.status(), 503, "{path}");
    }
    assert_eq!(text(&house, "/public/seating", "").await, "answer 2");
}

/// Their own cookies come with the answer that many share, and are nobody else's.
#[tokio::test]
async fn whoever_comes_in_by_a_kept_page_is_admitted_all_the_same() {
    let origin = Origin::bind().await;
    let house = house(origin.uri()).await;
    let (mut ann, mut ben) = (ask(&house, get("/event", "")).await, ask(&house, get("/event", "")).await);
    let mut inside = origin.accept().await;
    inside.head().await;
    inside.send(said(KEEP, "page")).await;
    let (ann, ben) = (whole(&mut ann).await.0, whole(&mut ben).await.0);
    let session = |head: &crate::support::wire::Head| head.one("set-cookie").unwrap();
    assert!(session(&ann).starts_with("stanchion_s_main="));
    assert_ne!(session(&ann), session(&ben));
    for head in [&ann, &ben] {
        assert_eq!(head.all("cache-control"), ["max-age=600", "private"], "no cache in front gives it to the next");
    }
    let again = format!("Cookie: {}\r\n", session(&ann).split(';').next().unwrap());
    let head = answer(&house, get("/event", &again)).await.0;
    assert_eq!((head.all("cache-control"), head.one("set-cookie")), (vec!["max-age=600".to_owned()], None));
}
