//! Nothing waits for ever.

use std::time::Duration;

use super::{OK, Stage};
use crate::support::{origin::Origin, wire::soon};

const SHORT: Duration = Duration::from_millis(150);

#[tokio::test]
async fn a25_silent_and_dribbling_clients_are_closed_and_others_served() {
    let origin = Origin::bind().await.always(OK);
    let stage = Stage::with(origin.uri.clone(), |_, deadlines, _| {
        deadlines.first_request = SHORT;
        deadlines.head = SHORT;
        deadlines.linger = SHORT;
    })
    .await;
    let mut silent = stage.client().await;
    let mut dribbling = stage.client().await;
    dribbling.send("GET / HT").await;
    let mut preface = stage.client().await;
    preface.send("PRI * HTTP/2.0\r\n\r\n").await;
    let mut http2 = stage.client().await;
    http2.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    let mut served = stage.client().await;
    served.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(served.head().await.status(), 200);
    for client in [&mut silent, &mut dribbling, &mut preface, &mut http2] {
        client.closed().await;
    }
    served.closed().await;
}

#[tokio::test]
async fn a17_an_origin_that_does_not_answer() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |_, deadlines, _| deadlines.response_head = SHORT).await;
    for framing in ["", "Content-Length: 2\r\n\r\nhi"] {
        let mut client = stage.client().await;
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n")).await;
        let mut inside = origin.accept().await;
        assert_eq!(client.head().await.status(), 504);
        soon("the request to be given up", inside.closed()).await;
    }
}

#[tokio::test]
async fn an_origin_that_takes_no_more_of_an_upload() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |_, deadlines, _| deadlines.response_head = SHORT).await;
    let mut client = stage.client().await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 16000000\r\n\r\n").await;
    let inside = origin.accept().await;
    let upload = vec![b'x'; 16_000_000];
    client.send_while_open(&upload[..8_000_000]).await;
    assert_eq!(client.head().await.status(), 504);
    drop(inside);
}

#[tokio::test]
async fn a_slow_upload_is_not_the_origins_fault() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |_, deadlines, _| {
        deadlines.response_head = SHORT;
        deadlines.body_idle = 4 * SHORT;
    })
    .await;
    let mut client = stage.client().await;
    // Larger than what is read ahead.
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\nhe").await;
    let mut inside = origin.accept().await;
    inside.head().await;
    assert_eq!(inside.bytes(2).await, b"he");
    let began = std::time::Instant::now();
    let head = client.head().await;
    assert_eq!((head.status(), head.one("connection").unwrap().as_str()), (408, "close"));
    assert!(began.elapsed() > 3 * SHORT, "{:?}", began.elapsed());
    soon("the request to be given up", inside.closed()).await;
}

/// Each piece comes in time, and yet it would take for ever.
#[tokio::test]
async fn an_upload_that_trickles() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |limits, deadlines, _| {
        limits.body_rate = 1_000;
        deadlines.body_grace = 2 * SHORT;
    })
    .await;
    let mut client = stage.client().await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n").await;
    let mut inside = origin.accept().await;
    inside.head().await;
    let trickle = async {
        loop {
            client.send_while_open("x").await;
            tokio::time::sleep(SHORT / 3).await;
        }
    };
    let given_up = async { inside.closed().await };
    tokio::select! {
        () = trickle => {}
        _ = soon("the request to be given up", given_up) => {}
    }
    assert_eq!(client.head().await.status(), 408);
}

#[tokio::test]
async fn an_origin_that_stops_in_mid_body() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |_, deadlines, _| deadlines.body_idle = SHORT).await;
    let mut client = stage.client().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut inside = origin.accept().await;
    inside.head().await;
    inside.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789").await;
    client.head().await;
    assert_eq!(client.rest().await.0, b"0123456789");
    soon("the request to be given up", inside.closed()).await;
}

#[tokio::test]
async fn a_client_that_takes_nothing() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |_, deadlines, _| deadlines.client_write = SHORT).await;
    let mut client = stage.client().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut inside = origin.accept().await;
    inside.head().await;
    inside.send("HTTP/1.1 200 OK\r\nContent-Length: 64000000\r\n\r\n").await;
    let sent = tokio::spawn(async move {
        inside.send_while_open(vec![b'x'; 64_000_000]).await;
        inside.closed().await
    });
    soon("the request to be given up", sent).await.unwrap();
    drop(client);
}
