//! What never reaches the origin.

use super::{OK, Stage};
use crate::support::origin::Origin;

async fn status_of(request: impl AsRef<[u8]>) -> (u16, String, usize) {
    let origin = Origin::bind().await.always(OK);
    let stage = Stage::before(origin.uri.clone()).await;
    let mut client = stage.client().await;
    client.send_while_open(request).await;
    let head = client.head().await;
    (head.status(), head.all("connection").concat(), origin.heard().len())
}

#[tokio::test]
async fn a01_lengths_that_disagree_or_are_no_numbers() {
    for lengths in [["5", "0"], ["+5", "+5"], ["0x5", "5"], ["5, 6", "5"], ["-1", "-1"], ["", "5"]] {
        let lines = lengths.map(|length| format!("Content-Length: {length}\r\n")).concat();
        let request = format!("POST /shop/ HTTP/1.1\r\nHost: shop.test\r\n{lines}\r\nhello");
        assert_eq!(status_of(request).await, (400, "close".to_owned(), 0), "{lengths:?}");
    }
}

/// RFC 9112 §6.1 would let a proxy drop the length; whoever sends both has something in mind.
#[tokio::test]
async fn a_chunked_body_that_also_claims_a_length() {
    for lines in ["Content-Length: 4\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 4"]
    {
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET /smuggled");
        assert_eq!(status_of(request).await, (400, "close".to_owned(), 0), "{lines:?}");
    }
}

/// The table of everything that is refused for its bytes is beside the code; here are some of each kind, from outside.
#[tokio::test]
async fn a05_bytes_that_are_read_in_two_ways() {
    for request in [
        &b"GET / HTTP/1.1\nHost: a\n\n"[..],
        b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n X: b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n 5\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n",
    ] {
        let shown = String::from_utf8_lossy(request);
        assert_eq!(status_of(request).await, (400, "close".to_owned(), 0), "{shown:?}");
    }
}

#[tokio::test]
async fn what_was_refused_unread_is_told_why() {
    let origin = Origin::bind().await.always(OK);
    let stage = Stage::before(origin.uri.clone()).await;
    for (request, status, word) in [
        ("GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n".to_owned(), 400, "a control character"),
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9_000)), 414, "target_too_long"),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(60_000)), 431, "head_too_large"),
    ] {
        let mut client = stage.client().await;
        client.send_while_open(request).await;
        let head = client.head().await;
        assert_eq!((head.status(), head.one("content-type").unwrap().as_str()), (status, "application/problem+json"));
        let (body, ended_well) = client.rest().await;
        let body = String::from_utf8(body).unwrap();
        assert!(body.contains(word) && body.contains(&head.one("x-request-id").unwrap()), "{body}");
        assert_eq!(head.one("content-length").unwrap(), body.len().to_string());
        assert!(ended_well, "the answer arrives whole");
    }
}

#[tokio::test]
async fn what_comes_before_a_refused_request_is_answered() {
    let (stage, origin, mut client, mut inside, _) = super::exchange("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.send("GET /2 HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n").await;
    inside.send(OK).await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.bytes(2).await, b"ok");
    assert_eq!(client.head().await.status(), 400);
    drop((stage, origin));
}

/// A body that is not what it says cannot be answered for: the origin sees that it was cut.
#[tokio::test]
async fn a_chunk_that_is_none_never_completes_a_request() {
    let (_stage, _origin, mut client, mut inside, _) =
        super::exchange("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
    assert_eq!(inside.chunk().await, b"hello");
    client.send_while_open("0x0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let (rest, _) = inside.rest().await;
    assert!(!String::from_utf8_lossy(&rest).contains("0\r\n"), "{rest:?}");
    client.closed().await;
}

#[tokio::test]
async fn a03_host_must_be_there_once_and_valid() {
    for lines in ["Host: a\r\nHost: b\r\n", "Host: a\r\nHost: a\r\n", "", "Host: a b\r\n", "Host: u@a\r\n", "Host:\r\n"]
    {
        let request = format!("GET /shop/ HTTP/1.1\r\n{lines}\r\n");
        assert_eq!(status_of(request).await, (400, "close".to_owned(), 0), "{lines:?}");
    }
    assert_eq!(status_of("GET /shop/ HTTP/1.0\r\n\r\n").await.0, 200);
}

#[tokio::test]
async fn a04_never_a_forward_proxy() {
    let (status, _, heard) = status_of("GET http://evil.test/shop/ HTTP/1.1\r\nHost: shop.test\r\n\r\n").await;
    assert_eq!((status, heard), (421, 0));
    let (status, _, heard) = status_of("CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n").await;
    assert_eq!((status, heard), (501, 0));
    let (status, _, heard) = status_of("TRACE / HTTP/1.1\r\nHost: shop.test\r\n\r\n").await;
    assert_eq!((status, heard), (501, 0));
    let (status, ..) = status_of("GET http://shop.test/shop/ HTTP/1.1\r\nHost: shop.test\r\n\r\n").await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a28_a_large_head_is_ours_to_refuse() {
    for size in [17_000, 20_000, 60_000] {
        let cookie = "c=".to_owned() + &"x".repeat(size);
        let request = format!("GET /shop/ HTTP/1.1\r\nHost: shop.test\r\nCookie: {cookie}\r\n\r\n");
        let (status, _, heard) = status_of(request).await;
        assert_eq!((status, heard), (431, 0), "{size}");
    }
    let many = "X-Many: 1\r\n".repeat(200);
    assert_eq!(status_of(format!("GET / HTTP/1.1\r\nHost: shop.test\r\n{many}\r\n")).await.0, 431);
    let fits = "x".repeat(12_000);
    assert_eq!(status_of(format!("GET / HTTP/1.1\r\nHost: shop.test\r\nCookie: c={fits}\r\n\r\n")).await.0, 200);
}

#[tokio::test]
async fn a_refusal_is_a_page_for_people_and_a_document_for_programs() {
    let origin = Origin::bind().await.always(OK);
    let stage = Stage::before(origin.uri.clone()).await;
    for (accept, kind) in [("text/html,*/*", "text/html; charset=utf-8"), ("*/*", "application/problem+json")] {
        let mut client = stage.client().await;
        client.send(format!("GET http://evil.test/ HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n")).await;
        let head = client.head().await;
        assert_eq!(head.one("content-type").unwrap(), kind);
        assert_eq!(head.one("cache-control").unwrap(), "no-store");
        let length: usize = head.one("content-length").unwrap().parse().unwrap();
        let body = String::from_utf8(client.bytes(length).await).unwrap();
        assert!(body.contains(&head.one("x-request-id").unwrap()), "{body}");
    }
}

#[tokio::test]
async fn too_large_a_body_is_refused_before_it_is_sent() {
    let origin = Origin::bind().await.always(OK);
    let stage = Stage::with(origin.uri.clone(), |limits, _, _| limits.request_body = 10).await;
    let mut client = stage.client().await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n").await;
    let head = client.head().await;
    assert_eq!((head.status(), head.one("connection").unwrap().as_str()), (413, "close"));
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn the_rooms_own_endpoints_never_reach_the_origin() {
    let origin = Origin::bind().await.always(OK);
    let stage = Stage::before(origin.uri.clone()).await;
    let answer = crate::support::http::get(&format!("http://{}/__room/hello", stage.addr)).await;
    assert_eq!((answer.status.as_u16(), answer.text()), (200, "hello"));
    let answer = crate::support::http::get(&format!("http://{}/__room/other", stage.addr)).await;
    assert_eq!(answer.status, 404);
    let answer = crate::support::http::get(&format!("http://{}/__roomy", stage.addr)).await;
    assert_eq!((answer.status.as_u16(), answer.text(), origin.heard().len()), (200, "ok", 1));
}

#[tokio::test]
async fn a_malformed_chunk_is_answered_once_and_with_the_reason() {
    for chunks in
        ["5\r\nhello\n0\r\n\r\n", "5\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n"]
    {
        let origin = Origin::bind().await;
        let stage = Stage::before(origin.uri()).await;
        let mut client = stage.client().await;
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}")).await;
        let said = String::from_utf8(client.rest().await.0).unwrap();
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{chunks:?} {said}");
        assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("the body is malformed"), "{chunks:?} {said}");
    }
}
