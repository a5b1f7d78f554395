//! Origins that fail, each in its own way, each told apart.

use super::{OK, Stage, exchange};
use crate::support::origin::Origin;

#[tokio::test]
async fn a17_closed_port_and_garbage() {
    let gone = Origin::bind().await.uri();
    let stage = Stage::before(gone).await;
    let answer = crate::support::http::get(&format!("http://{}/", stage.addr)).await;
    assert_eq!((answer.status.as_u16(), answer.json()["error"].as_str().unwrap()), (502, "origin_unreachable"));

    for garbage in
        ["SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", ""]
    {
        let (_stage, _origin, mut client, mut inside, _) = exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        inside.send(garbage).await;
        drop(inside);
        let head = client.head().await;
        let length: usize = head.one("content-length").unwrap().parse().unwrap();
        let body = String::from_utf8(client.bytes(length).await).unwrap();
        assert_eq!(head.status(), 502, "{garbage:?}");
        assert!(body.contains("origin_invalid"), "{garbage:?} {body}");
    }
}

#[tokio::test]
async fn a18_a_body_cut_short_never_looks_complete() {
    let (_stage, _origin, mut client, mut inside, _) = exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    inside.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789").await;
    assert_eq!(client.head().await.one("content-length").unwrap(), "100");
    assert_eq!(client.bytes(10).await, b"0123456789");
    drop(inside);
    assert_eq!(client.rest().await.0, b"", "no error page after a head that is out");

    let (_stage, _origin, mut client, mut inside, _) = exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    inside.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
    client.head().await;
    assert_eq!(client.chunk().await, b"abc");
    drop(inside);
    assert_eq!(client.rest().await.0, b"", "no last chunk");
}

#[tokio::test]
async fn a18_an_http_10_client_hears_of_a_cut_by_a_reset() {
    let (_stage, _origin, mut client, mut inside, _) = exchange("GET / HTTP/1.0\r\nHost: a\r\n\r\n").await;
    inside.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
    client.head().await;
    assert_eq!(client.bytes(3).await, b"abc");
    drop(inside);
    let (_, closed_properly) = client.rest().await;
    assert!(!closed_properly);
}

#[tokio::test]
async fn a_request_lost_in_a_closing_connection_is_sent_again_if_that_is_safe() {
    for (method, framing, again) in
        [("GET", "", true), ("DELETE", "", true), ("POST", "", false), ("PUT", "Content-Length: 2\r\n", false)]
    {
        let (_stage, origin, mut client, mut inside, _) = exchange("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        inside.send(OK).await;
        client.head().await;
        client.bytes(2).await;

        let body = if framing.is_empty() { "" } else { "hi" };
        client.send(format!("{method} /2 HTTP/1.1\r\nHost: a\r\n{framing}\r\n{body}")).await;
        assert_eq!(inside.head().await.start, format!("{method} /2 HTTP/1.1"), "the connection is kept and used");
        drop(inside);
        if again {
            let mut inside = origin.accept().await;
            assert_eq!(inside.head().await.start, format!("{method} /2 HTTP/1.1"));
            inside.send(OK).await;
            assert_eq!(client.head().await.status(), 200);
        } else {
            assert_eq!(client.head().await.status(), 502, "{method}");
        }
    }
}

#[tokio::test]
async fn a_request_that_a_fresh_connection_loses_is_not_sent_again() {
    let (_stage, origin, mut client, inside, _) = exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    drop(inside);
    assert_eq!(client.head().await.status(), 502);
    // Nothing else was opened: the next request is the next connection.
    client.send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut inside = origin.accept().await;
    assert_eq!(inside.head().await.start, "GET /next HTTP/1.1");
}
