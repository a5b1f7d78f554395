//! Connections that rest between requests.

use std::time::Duration;

use super::{OK, Stage};
use crate::support::{origin::Origin, wire::soon};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
/// Longer than it takes for a connection to be put to rest.
const PAUSE: Duration = Duration::from_millis(2_300);

#[tokio::test]
async fn a_rested_connection_goes_on_where_it_was() {
    let origin = Origin::bind().await.always(OK);
    let stage = Stage::before(origin.uri.clone()).await;
    let mut client = stage.client().await;
    for pause in [Duration::ZERO, PAUSE, PAUSE] {
        tokio::time::sleep(pause).await;
        client.send(GET).await;
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(client.bytes(2).await, b"ok");
    }
}

/// Not even when the answer has little to say for long, or the upload has.
#[tokio::test]
async fn a_request_under_way_is_no_rest() {
    let origin = Origin::bind().await;
    let stage =
        Stage::with(origin.uri(), |_, deadlines, _| deadlines.connection_idle = Duration::from_millis(500)).await;
    let mut client = stage.client().await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\nab").await;
    let mut inside = origin.accept().await;
    inside.head().await;
    tokio::time::sleep(PAUSE).await;
    client.send("c".repeat(49_998)).await;
    assert_eq!(inside.bytes(50_000).await, format!("ab{}", "c".repeat(49_998)).into_bytes());
    inside.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab").await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.bytes(2).await, b"ab");
    tokio::time::sleep(PAUSE).await;
    inside.send("cd").await;
    assert_eq!(client.bytes(2).await, b"cd");
    soon("the rest to end", client.closed()).await;
}

#[tokio::test]
async fn half_a_head_is_no_rest_and_is_told_when_its_time_is_over() {
    let origin = Origin::bind().await.always(OK);
    let stage = Stage::with(origin.uri.clone(), |_, deadlines, _| deadlines.head = PAUSE).await;
    let mut client = stage.client().await;
    client.send(GET).await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.bytes(2).await, b"ok");
    tokio::time::sleep(PAUSE / 2).await;
    client.send("GET / HTTP/1.1\r\nHos").await;
    let head = client.head().await;
    assert_eq!((head.status(), head.one("connection").unwrap().as_str()), (408, "close"));
    client.closed().await;
}
