//! What is kept, for how long, and how it is given.

use super::{KEEP, answer, ask, get, house, numbering, said, text, whole};
use crate::support::{eventually::eventually, origin::Origin};

#[tokio::test]
async fn what_the_origin_does_not_say_or_says_of_one_visitor_is_asked_for_each_time() {
    for lines in [
        "",
        "Cache-Control: public\r\n",
        "Cache-Control: max-age=600, private\r\n",
        "Cache-Control: max-age=600\r\nCache-Control: no-store\r\n",
        "Cache-Control: no-cache, max-age=600\r\n",
        "Cache-Control: max-age=600\r\nVary: *\r\n",
        "Cache-Control: max-age=600\r\nVary: Stanchion-Visitor\r\n",
        "Cache-Control: max-age=600\r\nSet-Cookie: basket=1\r\n",
        "Cache-Control: max-age=600\r\nStanchion-Pin: 60\r\n",
        "Cache-Control: max-age=600\r\nAge: 600\r\n",
        "Expires: Thu, 01 Jan 1970 00:00:00 GMT\r\n",
    ] {
        let shop = numbering(lines).await;
        let house = house(shop.uri.clone()).await;
        for path in ["/event", "/public/1"] {
            assert_ne!(text(&house, path, "").await, text(&house, path, "").await, "{lines:?}");
        }
        assert_eq!(shop.heard().len(), 4, "{lines:?}");
    }
}

#[tokio::test]
async fn what_it_says_may_be_kept_is_asked_for_once() {
    for lines in [
        "Cache-Control: public, max-age=600\r\n",
        "Cache-Control: max-age=0, s-maxage=600\r\n",
        "Expires: Thu, 01 Jan 2099 00:00:00 GMT\r\n",
    ] {
        let shop = numbering(lines).await;
        let house = house(shop.uri.clone()).await;
        for reload in ["", "Cache-Control: no-cache\r\nPragma: no-cache\r\n", "Cache-Control: max-age=0\r\n"] {
            assert_eq!(text(&house, "/event", reload).await, "answer 1", "{lines:?}");
        }
        assert_eq!(shop.heard().len(), 1, "{lines:?}");
    }
    for (status, times) in [("404 No", 1), ("410 Gone", 1), ("301 There", 1), ("302 Now there", 2), ("500 No", 2)] {
        let shop = Origin::bind().await.always(said(KEEP, "x").replace("200 OK", status));
        let house = house(shop.uri.clone()).await;
        for _ in 0..2 {
            assert_eq!(answer(&house, get("/event", "")).await.0.status().to_string(), status[..3]);
        }
        assert_eq!(shop.heard().len(), times, "{status}");
    }
}

#[tokio::test]
async fn requests_for_one_visitor_or_another_thing_pass_by() {
    let shop = numbering(KEEP).await;
    let house = house(shop.uri.clone()).await;
    assert_eq!(text(&house, "/event", "").await, "answer 1");
    for (lines, number) in [("Authorization: Basic eA==\r\n", 2), ("Range: bytes=0-1\r\n", 3)] {
        assert_eq!(text(&house, "/event", lines).await, format!("answer {number}"), "{lines:?}");
        let name = lines.split(':').next().unwrap().to_ascii_lowercase();
        assert!(shop.heard().last().unwrap().contains(&name), "{lines:?}");
    }
    assert_eq!(text(&house, "/event", "").await, "answer 1", "and nothing of theirs is kept");
}

#[tokio::test]
async fn what_is_given_is_whole_tells_its_age_and_nothing_of_whoever_asked() {
    let lines = "Cache-Control: max-age=600\r\nAge: 100\r\nETag: \"v1\"\r\nStanchion-Capacity: 7\r\nStanchion-New: 1\r\n\
                 Content-Type: text/plain\r\nKeep-Alive: timeout=5\r\nX-Hop: 1\r\nConnection: x-hop\r\nX-Request-Id: 7\r\nX-Kept: 1\r\n";
    let shop = numbering(lines).await;
    let house = house(shop.uri.clone()).await;
    for turn in 0..2 {
        let (head, body) = answer(&house, get("/event", "")).await;
        assert_eq!((head.status(), body.as_str()), (200, "answer 1"));
        assert!((100..110).contains(&head.one("age").unwrap().parse::<u64>().unwrap()), "{:?}", head.lines);
        assert_eq!((head.one("x-kept").unwrap(), head.one("etag").unwrap()), ("1".to_owned(), "\"v1\"".to_owned()));
        for name in ["stanchion-capacity", "stanchion-new", "keep-alive", "x-hop", "connection"] {
            assert_eq!(head.one(name), None, "{name} in turn {turn}");
        }
        // Each came without a session, and has one of their own now.
        assert_eq!(head.all("set-cookie").len(), 1, "{:?}", head.lines);
    }
    assert_eq!(shop.heard().len(), 1);
}

#[tokio::test]
async fn whoever_has_it_is_told_so_and_whoever_wants_the_head_gets_that() {
    let lines = "Cache-Control: max-age=600\r\nETag: \"v1\"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n";
    let shop = numbering(lines).await;
    let house = house(shop.uri.clone()).await;
    // The first one asks for all, in the name of all.
    for condition in ["If-None-Match: \"v0\", W/\"v1\"\r\n", "If-Modified-Since: Wed, 21 Oct 2015 07:28:00 GMT\r\n"] {
        let mut client = ask(&house, get("/public", condition)).await;
        let head = client.head().await;
        assert_eq!((head.status(), head.one("etag").unwrap().as_str()), (304, "\"v1\""), "{condition}");
        // No body: what comes next is the next answer.
        client.send(get("/public", "If-None-Match: \"v0\"\r\n")).await;
        assert_eq!(whole(&mut client).await.1, "answer 1");
        client.send(get("/public", condition).replace("GET", "HEAD")).await;
        assert_eq!(client.head().await.status(), 304);
        client.send(get("/public", "").replace("GET", "HEAD")).await;
        let head = client.head().await;
        assert_eq!((head.status(), head.one("content-length").unwrap().as_str()), (200, "8"));
        client.send(get("/public", "")).await;
        assert_eq!(whole(&mut client).await.1, "answer 1");
    }
    assert_eq!(shop.heard().len(), 1);
    assert!(!shop.heard()[0].contains("if-none-match"));
}

#[tokio::test]
async fn a_head_that_comes_first_brings_the_page_for_all() {
    let shop = numbering(KEEP).await;
    let house = house(shop.uri.clone()).await;
    let mut client = ask(&house, get("/public", "").replace("GET", "HEAD")).await;
    assert_eq!(client.head().await.one("content-length").unwrap(), "8");
    client.send(get("/public", "")).await;
    assert_eq!(whole(&mut client).await.1, "answer 1");
    assert_eq!(shop.heard().len(), 1);
}

#[tokio::test]
async fn old_clients_get_it_too() {
    let shop = Origin::bind().await.always(format!(
        "HTTP/1.1 200 OK\r\n{KEEP}Transfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nx-sum: 5\r\n\r\n"
    ));
    let house = house(shop.uri.clone()).await;
    for _ in 0..2 {
        let mut client = ask(&house, "GET /event HTTP/1.0\r\nHost: a\r\nAccept: text/html\r\n\r\n").await;
        let (head, body) = whole(&mut client).await;
        assert_eq!((head.status(), body.as_str(), head.one("trailer")), (200, "abcde", None));
        assert!(client.rest().await.1, "and then it closes");
    }
    assert_eq!(shop.heard().len(), 1);
}

#[tokio::test]
async fn it_is_asked_for_anew_when_it_is_out_of_date() {
    let shop = numbering("Cache-Control: s-maxage=1\r\n").await;
    let house = house(shop.uri.clone()).await;
    assert_eq!(text(&house, "/event", "").await, "answer 1");
    eventually("a newer answer", async || (text(&house, "/event", "").await == "answer 2").then_some(())).await;
}
