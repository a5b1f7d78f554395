//! Upgraded connections, and what is not one.

use std::time::Duration;

use super::{OK, Stage, exchange};
use crate::support::{
    origin::Origin,
    wire::{Wire, soon},
};

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                      Sec-WebSocket-Accept: x\r\n\r\n";
const ASK: &str = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, UPGRADE\r\nUpgrade: WebSocket\r\n\
                   Sec-WebSocket-Key: x\r\n\r\n";

async fn switched(stage: &Stage, origin: &Origin) -> (Wire, Wire) {
    let mut client = stage.client().await;
    client.send(ASK).await;
    let mut inside = origin.accept().await;
    inside.head().await;
    inside.send(SWITCH).await;
    assert_eq!(client.head().await.status(), 101);
    (client, inside)
}

#[tokio::test]
async fn a24_a_websocket_is_relayed_both_ways() {
    let (_stage, _origin, mut client, mut inside, head) = exchange(ASK).await;
    assert_eq!(head.one("connection").unwrap(), "upgrade");
    assert_eq!(head.one("upgrade").unwrap(), "WebSocket");
    inside.send(SWITCH).await;
    let head = client.head().await;
    assert_eq!((head.status(), head.one("upgrade").unwrap().as_str()), (101, "websocket"));
    assert_eq!(head.one("sec-websocket-accept").unwrap(), "x");
    client.send("ping").await;
    assert_eq!(inside.bytes(4).await, b"ping");
    inside.send("pong").await;
    assert_eq!(client.bytes(4).await, b"pong");
    drop(inside);
    assert_eq!(client.rest().await.0, b"");
}

#[tokio::test]
async fn a24_a_name_that_only_begins_like_upgrade_stays_http() {
    let (_stage, _origin, mut client, mut inside, head) =
        exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade-insecure-requests\r\nUpgrade: websocket\r\n\r\n")
            .await;
    assert_eq!((head.one("upgrade"), head.one("connection")), (None, None));
    inside.send(SWITCH).await;
    assert_eq!(client.head().await.status(), 502, "nobody asked to switch");
}

#[tokio::test]
async fn an_origin_may_decline() {
    let (_stage, _origin, mut client, mut inside, _) = exchange(ASK).await;
    inside.send(OK).await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.bytes(2).await, b"ok");
}

#[tokio::test]
async fn tunnels_are_counted_apart_and_end_when_silent() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |limits, deadlines, origins| {
        limits.tunnels = 1;
        origins.reads_in_flight = 1;
        deadlines.tunnel_idle = Duration::from_millis(300);
    })
    .await;
    let (mut client, mut inside) = switched(&stage, &origin).await;
    let mut other = stage.client().await;
    other.send(ASK).await;
    assert_eq!(other.head().await.status(), 503, "one tunnel is all there is");
    let mut plain = stage.client().await;
    plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut kept = origin.accept().await;
    kept.head().await;
    kept.send(OK).await;
    assert_eq!(plain.head().await.status(), 200, "a tunnel holds no permit of the requests");

    soon("the silent tunnel to close", client.closed()).await;
    soon("the silent tunnel to close", inside.closed()).await;
    let mut again = stage.client().await;
    again.send(ASK).await;
    assert_eq!(kept.head().await.one("upgrade").unwrap(), "WebSocket", "the tunnel's place is free again");
}

#[tokio::test]
async fn a_drain_ends_tunnels() {
    let origin = Origin::bind().await;
    let stage = Stage::before(origin.uri()).await;
    let (mut client, mut inside) = switched(&stage, &origin).await;
    stage.shutdown.stop();
    soon("the tunnel to close", client.closed()).await;
    soon("the tunnel to close", inside.closed()).await;
    soon("the gateway to end", stage.served).await.unwrap();
}

#[tokio::test]
async fn a_drain_tells_the_page_between_two_messages() {
    let origin = Origin::bind().await;
    let stage = Stage::before(origin.uri()).await;
    let (mut idle, mut inside) = switched(&stage, &origin).await;
    inside.send(b"\x81\x02hi").await;
    assert_eq!(idle.bytes(4).await, b"\x81\x02hi");
    let (mut amid, mut other) = switched(&stage, &origin).await;
    other.send(b"\x81\x05hi").await;
    assert_eq!(amid.bytes(4).await, b"\x81\x05hi");
    stage.shutdown.stop();
    assert_eq!(idle.rest().await.0, b"\x88\x02\x03\xe9", "1001, going away");
    assert_eq!(amid.rest().await.0, b"", "nothing that would be read as the rest of a message");
    soon("the gateway to end", stage.served).await.unwrap();
}

/// Not what the standard wants of a client, and no reason to lose a byte.
#[tokio::test]
async fn what_is_said_before_the_switch_arrives_after_it() {
    let (_stage, _origin, mut client, mut inside, _) = exchange(ASK).await;
    client.send(b"\x81\x80\0\r\nnot HTTP\r\n\r\n").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    inside.send(SWITCH).await;
    assert_eq!(client.head().await.status(), 101);
    client.send("more").await;
    assert_eq!(inside.bytes(21).await, b"\x81\x80\0\r\nnot HTTP\r\n\r\nmore");
}
