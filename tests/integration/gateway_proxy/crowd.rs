//! More connections than there are places.

use super::{OK, Stage};
use crate::support::{origin::Origin, wire::Wire};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

async fn served(client: &mut Wire) -> u16 {
    client.send(GET).await;
    let status = client.head().await.status();
    assert_eq!(client.bytes(2).await, b"ok");
    status
}

#[tokio::test]
async fn whoever_says_nothing_makes_room() {
    let origin = Origin::bind().await.always(OK);
    let stage = Stage::with(origin.uri.clone(), |limits, _, _| limits.connections = 8).await;
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(stage.client().await);
    }
    for _ in 0..3 {
        let mut client = stage.client().await;
        assert_eq!(served(&mut client).await, 200);
        silent.push(client);
    }
    silent[0].closed().await;
}

#[tokio::test]
async fn what_is_under_way_makes_room_for_nobody_and_the_next_waits() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |limits, _, _| limits.connections = 1).await;
    let mut running = stage.client().await;
    running.send(GET).await;
    let mut inside = origin.accept().await;
    inside.head().await;
    let mut waiting = stage.client().await;
    waiting.send(GET).await;
    inside.send(OK).await;
    assert_eq!(running.head().await.status(), 200);
    assert_eq!(running.bytes(2).await, b"ok");
    // The first one rests now, and is closed for the second.
    drop(inside);
    let mut inside = origin.accept().await;
    inside.head().await;
    inside.send(OK).await;
    assert_eq!(waiting.head().await.status(), 200);
    running.closed().await;
}

#[tokio::test]
async fn an_address_has_its_share_only_when_it_gets_crowded() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |limits, _, _| {
        limits.connections = 10;
        limits.connections_per_address = 2;
    })
    .await;
    let mut running = Vec::new();
    for _ in 0..9 {
        let mut client = stage.client().await;
        client.send(GET).await;
        let mut inside = origin.accept().await;
        inside.head().await;
        running.push((client, inside));
    }
    let mut one_too_many = stage.client().await;
    one_too_many.closed().await;
    for (client, inside) in &mut running {
        inside.send(OK).await;
        assert_eq!(client.head().await.status(), 200, "whoever was in is served");
    }
}
