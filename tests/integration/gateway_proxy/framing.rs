//! Where a message begins and ends.

use super::{OK, Stage, exchange};
use crate::support::origin::Origin;

#[tokio::test]
async fn a01_equal_lengths_collapse_into_one() {
    let (_stage, _origin, _client, mut inside, head) =
        exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello").await;
    assert_eq!(head.one("content-length").unwrap(), "5");
    assert_eq!(inside.bytes(5).await, b"hello");
}

#[tokio::test]
async fn an_answer_with_two_framings_leaves_with_one() {
    let (_stage, _origin, mut client, mut inside, _) = exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    inside
        .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
        .await;
    assert_eq!(client.head().await.one("content-length"), None);
    assert_eq!(client.chunked().await.0, b"hello");

    for lines in ["Content-Length: 2, 2", "Content-Length: 2\r\nContent-Length: 2"] {
        let (_stage, _origin, mut client, mut inside, _) = exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        inside.send(format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\nok")).await;
        assert_eq!(client.head().await.one("content-length").unwrap(), "2");
        assert_eq!(client.bytes(2).await, b"ok");
    }
}

#[tokio::test]
async fn a14_an_upload_that_waits_to_be_asked_is_asked() {
    let (_stage, _origin, mut client, mut inside, _) =
        exchange("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").await;
    assert_eq!(client.head().await.status(), 100);
    client.send("hello").await;
    assert_eq!(inside.bytes(5).await, b"hello");
    inside.send(OK).await;
    assert_eq!(client.head().await.status(), 200);
}

#[tokio::test]
async fn a19_answers_without_a_body_have_none() {
    for (request, answer) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 123\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 123\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ] {
        let (_stage, _origin, mut client, mut inside, _) =
            exchange(format!("{request} /1 HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        inside.send(answer).await;
        let head = client.head().await;
        assert_eq!(head.one("transfer-encoding"), None, "{answer}");
        if head.status() == 204 {
            assert_eq!(head.one("content-length"), None, "{answer}");
        }
        // Had the first answer a body, the second would not begin here. The origin's connection is used again, too.
        client.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(inside.head().await.start, "GET /2 HTTP/1.1");
        inside.send(OK).await;
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(client.bytes(2).await, b"ok");
    }
}

#[tokio::test]
async fn a20_http_10_on_either_side() {
    let (_stage, _origin, mut client, mut inside, head) = exchange("GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!(head.start, "GET / HTTP/1.1");
    assert_eq!(head.one("x-forwarded-host"), None);
    inside.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n").await;
    let head = client.head().await;
    assert_eq!((head.start.as_str(), head.one("transfer-encoding")), ("HTTP/1.0 200 OK", None));
    assert_eq!(client.rest().await, (b"abc".to_vec(), true));

    let (_stage, _origin, mut client, mut inside, _) = exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    inside.send("HTTP/1.0 200 OK\r\n\r\nuntil the end").await;
    drop(inside);
    assert_eq!(client.head().await.start, "HTTP/1.1 200 OK");
    assert_eq!(client.chunked().await.0, b"until the end");
}

#[tokio::test]
async fn a21_a_get_may_have_a_body() {
    let (_stage, _origin, _client, mut inside, head) =
        exchange("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{\"a\":1}\r\n0\r\n\r\n").await;
    assert_eq!(head.one("transfer-encoding").unwrap(), "chunked");
    assert_eq!(inside.chunked().await.0, b"{\"a\":1}");
}

#[tokio::test]
async fn trailers_pass_both_ways_but_not_what_the_gateway_alone_may_say() {
    let (_stage, _origin, mut client, mut inside, head) = exchange(
        "POST / HTTP/1.1\r\nHost: a\r\nTE: gzip, trailers\r\nTrailer: X-Sum, X-Forwarded-For\r\n\
         Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n",
    )
    .await;
    assert_eq!(head.one("te").unwrap(), "trailers");
    assert_eq!(inside.chunked().await, (b"a".to_vec(), vec!["x-sum: 1".to_owned()]));
    inside
        .send("HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\nX-Sum: 2\r\n\r\n")
        .await;
    assert_eq!(client.head().await.one("trailer").unwrap(), "X-Sum");
    assert_eq!(client.chunked().await, (b"b".to_vec(), vec!["x-sum: 2".to_owned()]));
}

#[tokio::test]
async fn a29_interim_answers_are_not_the_answer() {
    let (_stage, _origin, mut client, mut inside, _) = exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    inside.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n").await;
    inside.send(OK).await;
    let mut head = client.head().await;
    while head.status() < 200 {
        head = client.head().await;
    }
    assert_eq!((head.status(), head.one("link")), (200, None));
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let origin = Origin::bind().await.always(OK);
    let stage = Stage::before(origin.uri.clone()).await;
    let mut client = stage.client().await;
    client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    for _ in 0..2 {
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(client.bytes(2).await, b"ok");
    }
    let paths: Vec<String> = origin.heard().iter().map(|head| head[..6].to_owned()).collect();
    assert_eq!(paths, ["get /1", "get /2"]);
    assert_eq!(origin.connections(), 1);
}
