//! Bodies flow as they come, and stop when either side does.

use super::{OK, Stage, exchange};
use crate::support::{origin::Origin, wire::soon};

#[tokio::test]
async fn the_origin_sees_the_first_piece_before_the_last_was_sent() {
    let (_stage, _origin, mut client, mut inside, _) =
        exchange("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await;
    assert_eq!(inside.chunk().await, b"first");
    client.send("4\r\nlast\r\n0\r\n\r\n").await;
    assert_eq!(inside.chunked().await.0, b"last");
}

#[tokio::test]
async fn a22_the_client_sees_the_head_and_each_piece_at_once() {
    let (_stage, _origin, mut client, mut inside, _) = exchange("GET /sse HTTP/1.1\r\nHost: a\r\n\r\n").await;
    inside.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    assert_eq!(client.head().await.status(), 200);
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        inside.send(format!("{:x}\r\n{event}\r\n", event.len())).await;
        assert_eq!(client.chunk().await, event.as_bytes());
    }
    drop(client);
    soon("the origin's stream to be aborted", inside.closed()).await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_request_at_the_origin() {
    let (_stage, _origin, client, mut inside, _) = exchange("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    drop(client);
    soon("the origin's connection to close", inside.closed()).await;
}

#[tokio::test]
async fn a_client_that_leaves_in_mid_upload_never_completes_the_request() {
    let (_stage, _origin, client, mut inside, _) =
        exchange("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await;
    drop(client);
    let (body, _) = inside.rest().await;
    assert!(!body.ends_with(b"0\r\n\r\n"), "{body:?}");
}

#[tokio::test]
async fn large_bodies_arrive_whole_in_both_directions() {
    let body: Vec<u8> = (0..3_000_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    let (_stage, _origin, mut client, mut inside, _) = exchange(head).await;
    let (up, down) = (body.clone(), body.clone());
    let length = body.len();
    let origin = tokio::spawn(async move {
        assert!(inside.bytes(length).await == up);
        inside.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")).await;
        inside.send(down).await;
        inside
    });
    client.send(&body).await;
    assert_eq!(client.head().await.status(), 200);
    assert!(client.bytes(length).await == body);
    origin.await.unwrap();
}

#[tokio::test]
async fn a16_a_body_that_grows_too_large_gets_a_clean_413() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |limits, _, _| limits.request_body = 100_000).await;
    let mut client = stage.client().await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    let mut inside = origin.accept().await;
    let uploaded = tokio::spawn(async move { inside.rest().await.0.len() });
    let chunk = format!("2710\r\n{}\r\n", "x".repeat(10_000));
    for _ in 0..100 {
        client.send(&chunk).await;
    }
    let head = client.head().await;
    assert_eq!((head.status(), head.one("connection").unwrap().as_str()), (413, "close"));
    assert!(!client.rest().await.0.is_empty());
    // A close in the face of what is still on its way would be a reset, which on many systems destroys the answer.
    client.send(&chunk).await;
    assert!(uploaded.await.unwrap() < 120_000);
}

#[tokio::test]
async fn a15_an_early_refusal_by_the_origin_reaches_the_client() {
    let (_stage, _origin, mut client, mut inside, _) =
        exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n").await;
    inside.send("HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno").await;
    assert_eq!(client.head().await.status(), 413);
    assert_eq!(client.bytes(2).await, b"no");
}

#[tokio::test]
async fn a_permit_is_held_to_the_end_of_the_body() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |_, deadlines, origins| {
        origins.reads_in_flight = 1;
        deadlines.permit = std::time::Duration::from_millis(100);
    })
    .await;
    let mut first = stage.client().await;
    first.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut inside = origin.accept().await;
    inside.head().await;
    inside.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha").await;
    first.head().await;
    assert_eq!(first.bytes(2).await, b"ha");

    let mut second = stage.client().await;
    second.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let head = second.head().await;
    assert_eq!((head.status(), head.one("retry-after").unwrap().as_str()), (503, "5"));

    inside.send("lf").await;
    assert_eq!(first.bytes(2).await, b"lf");
    let mut third = stage.client().await;
    third.send("GET /3 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(inside.head().await.start, "GET /3 HTTP/1.1");
    inside.send(OK).await;
    assert_eq!(third.head().await.status(), 200);
}
