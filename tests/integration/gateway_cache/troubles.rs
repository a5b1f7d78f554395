//! Visitors that leave and shops that break.

use super::{KEEP, ask, get, house, said, text, whole};
use crate::support::{eventually::eventually, origin::Origin};

#[tokio::test]
async fn when_the_one_who_asks_leaves_the_next_one_asks() {
    let origin = Origin::bind().await;
    let house = house(origin.uri()).await;
    let first = ask(&house, get("/public", "")).await;
    let mut inside = origin.accept().await;
    inside.head().await;
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(ask(&house, get("/public", "")).await);
    }
    inside.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 9\r\n\r\nhal").await;
    drop(first);
    inside.closed().await;
    let mut inside = origin.accept().await;
    inside.head().await;
    inside.send(said(KEEP, "the page")).await;
    for other in &mut others {
        assert_eq!(whole(other).await.1, "the page");
    }
}

#[tokio::test]
async fn what_broke_off_is_nobodys_and_the_next_one_asks() {
    for broken in [
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 9\r\n\r\nhal",
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhal\r\n",
    ] {
        let origin = Origin::bind().await;
        let house = house(origin.uri()).await;
        let mut first = ask(&house, get("/public", "")).await;
        let mut inside = origin.accept().await;
        inside.head().await;
        let mut second = ask(&house, get("/public", "")).await;
        inside.send(broken).await;
        drop(inside);
        assert_eq!(first.head().await.status(), 502, "nothing of it was sent yet");
        let mut inside = origin.accept().await;
        inside.head().await;
        inside.send(said(KEEP, "the page")).await;
        assert_eq!(whole(&mut second).await.1, "the page");
        assert_eq!(text(&house, "/public", "").await, "the page");
    }
}

/// Nobody could tell whether it is all.
#[tokio::test]
async fn what_ends_with_the_connection_is_not_kept() {
    let origin = Origin::bind().await;
    let house = house(origin.uri()).await;
    for _ in 0..2 {
        let mut client = ask(&house, get("/public", "Connection: close\r\n")).await;
        let mut inside = origin.accept().await;
        inside.head().await;
        inside.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nConnection: close\r\n\r\nall?").await;
        drop(inside);
        client.head().await;
        assert_eq!(client.chunked().await.0, b"all?");
    }
}

#[tokio::test]
async fn what_is_too_large_comes_whole_and_is_asked_for_each_time() {
    let large = "x".repeat(3 << 20);
    let chunked =
        format!("HTTP/1.1 200 OK\r\n{KEEP}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    for (answer, is_chunked) in [(said(KEEP, &large), false), (chunked, true)] {
        let shop = Origin::bind().await.always(answer);
        let house = house(shop.uri.clone()).await;
        for _ in 0..2 {
            let mut client = ask(&house, get("/public", "")).await;
            let body = if is_chunked {
                client.head().await;
                client.chunked().await.0
            } else {
                whole(&mut client).await.1.into_bytes()
            };
            assert_eq!(body.len(), large.len());
        }
        assert_eq!(shop.heard().len(), 2);
    }
}

#[tokio::test]
async fn a_shop_that_is_gone_is_no_trouble_as_long_as_it_allowed_for_that() {
    let lines = "Cache-Control: max-age=1, stale-if-error=600\r\nConnection: close\r\n";
    let shop = super::numbering(lines).await;
    let house = house(shop.uri.clone()).await;
    assert_eq!(text(&house, "/public", "").await, "answer 1");
    eventually("a newer answer", async || (text(&house, "/public", "").await == "answer 2").then_some(())).await;
    drop(shop);
    // Where nothing is kept the shop is seen to be gone.
    eventually("the shop's end", async || {
        (ask(&house, get("/public/other", "")).await.head().await.status() == 502).then_some(())
    })
    .await;
    eventually("an answer older than a second", async || {
        let (head, body) = super::answer(&house, get("/public", "")).await;
        assert_eq!((head.status(), body.as_str()), (200, "answer 2"));
        (head.one("age").unwrap().parse::<u64>().unwrap() > 1).then_some(())
    })
    .await;
}

/// One asks anew and waits for the shop; the others get the old answer at once.
#[tokio::test]
async fn the_old_answer_is_given_while_one_asks_for_the_new() {
    let origin = Origin::bind().await;
    let house = house(origin.uri()).await;
    let lines = "Cache-Control: s-maxage=1, stale-while-revalidate=60\r\nConnection: close\r\n";
    let mut client = ask(&house, get("/public", "")).await;
    let mut inside = origin.accept().await;
    inside.head().await;
    inside.send(said(lines, "old")).await;
    assert_eq!(whole(&mut client).await.1, "old");
    // Until one is sent to the shop, which is held there.
    let (mut inside, mut asks) = loop {
        let mut client = ask(&house, get("/public", "")).await;
        tokio::select! {
            mut inside = origin.accept() => {
                inside.head().await;
                break (inside, client);
            }
            (_, body) = whole(&mut client) => assert_eq!(body, "old"),
        }
    };
    for _ in 0..5 {
        assert_eq!(text(&house, "/public", "").await, "old");
    }
    inside.send(said(KEEP, "new")).await;
    assert_eq!(whole(&mut asks).await.1, "new");
    assert_eq!(text(&house, "/public", "").await, "new");
}
