//! A26: stopping without breaking what runs, and without waiting for what does not.

use std::time::Duration;

use tokio::net::TcpStream;

use super::Stage;
use crate::support::{origin::Origin, wire::soon};

#[tokio::test]
async fn what_runs_is_finished_and_what_idles_is_closed_at_once() {
    let origin = Origin::bind().await;
    let stage = Stage::before(origin.uri()).await;
    let mut fresh = stage.client().await;
    let mut running = stage.client().await;
    running.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut inside = origin.accept().await;
    inside.head().await;
    let mut idle = stage.client().await;
    idle.send("GET /__room/hello HTTP/1.1\r\nHost: a\r\n\r\n").await;
    idle.head().await;
    assert_eq!(idle.bytes(5).await, b"hello");

    stage.shutdown.stop();
    soon("idle connections to close", async {
        idle.closed().await;
        fresh.closed().await;
    })
    .await;
    soon("new connections to be refused", async {
        while TcpStream::connect(stage.addr).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(!stage.served.is_finished(), "one request still runs");

    inside.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone").await;
    let head = running.head().await;
    assert_eq!((head.status(), head.one("connection").unwrap().as_str()), (200, "close"));
    assert_eq!(running.rest().await, (b"done".to_vec(), true));
    drop((running, idle, fresh));
    soon("the gateway to end", stage.served).await.unwrap();
}

#[tokio::test]
async fn what_does_not_end_is_cut_off_at_the_deadline() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |_, deadlines, _| deadlines.drain = Duration::from_millis(200)).await;
    let mut running = stage.client().await;
    running.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut inside = origin.accept().await;
    inside.head().await;
    stage.shutdown.stop();
    soon("the gateway to end", stage.served).await.unwrap();
    soon("the client to be cut off", running.closed()).await;
    soon("the origin's request to end", inside.closed()).await;
}

/// Clients that ask without a pause, on connections they keep and on new ones: each request they could send is answered.
#[tokio::test]
async fn stopping_under_load_loses_no_answer() {
    let origin = Origin::bind().await.always(super::OK);
    let stage = Stage::before(origin.uri.clone()).await;
    let addr = stage.addr;
    let kept = (0..20).map(|_| {
        tokio::spawn(async move {
            let mut client = crate::support::wire::Wire::connect(addr).await;
            let mut answers = 0;
            loop {
                client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
                let head = client.head().await;
                assert_eq!(client.bytes(2).await, b"ok");
                answers += 1;
                if head.one("connection").as_deref() == Some("close") {
                    return answers;
                }
            }
        })
    });
    let kept: Vec<_> = kept.collect();
    let fresh = tokio::spawn(async move {
        let mut answers = 0;
        // Until nobody opens.
        while let Ok(stream) = TcpStream::connect(addr).await {
            let mut client = crate::support::wire::Wire::new(stream);
            client.send_while_open("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
            let (answer, _) = client.rest().await;
            // Nothing at all: it came while the door closed, and was never let in.
            if !answer.is_empty() {
                assert!(answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(b"ok"), "{answer:?}");
                answers += 1;
            }
        }
        answers
    });
    soon("some load", async {
        while origin.heard().len() < 200 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    stage.shutdown.stop();
    let mut answers = 0;
    for client in kept {
        answers += soon("a client to be told", client).await.unwrap();
    }
    answers += soon("the door to close", fresh).await.unwrap();
    assert_eq!(origin.heard().len(), answers);
    soon("the gateway to end", stage.served).await.unwrap();
}
