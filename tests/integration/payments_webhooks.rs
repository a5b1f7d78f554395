//! What the box office makes of webhooks as bytes on a wire: whose they are, how fresh, how large, for which order.

use std::time::Duration;

use serde_json::json;
use stanchion::config::Secret;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::support::box_office::{Place, SECRET, Shop, event, sign, sign_with};

const NEWER: &str = "the secret that comes next";

/// Rotation: the new secret is added, the provider changes over, the old one is taken away.
#[tokio::test]
async fn secrets_are_rotated_without_losing_a_webhook() {
    let both = |config: &mut stanchion::box_office::BoxOfficeConfig| {
        config.provider.webhook_secrets = vec![Secret::from(NEWER), Secret::from(SECRET)];
    };
    let shop = Shop::open(&Place::embedded(), both).await;
    let now = shop.clock.unix_seconds();
    for (seat, secret) in [("A1", SECRET), ("A2", NEWER)] {
        let (order, charge) = shop.ordered(json!({ "seats": [seat] })).await;
        let body = event(&format!("evt_{seat}"), "charge.captured", &order, &charge).to_string();
        shop.signed(&format!("t={now},v1={}", sign_with(secret, now, &body)), &body).await.expect(204);
        shop.becomes(&order, "confirmed").await;
    }

    let shop =
        Shop::open(&Place::embedded(), |config| config.provider.webhook_secrets = vec![Secret::from(NEWER)]).await;
    let (order, charge) = shop.ordered(json!({"seats": ["A1"]})).await;
    let body = event("evt_1", "charge.captured", &order, &charge).to_string();
    shop.signed(&format!("t={now},v1={}", sign(now, &body)), &body).await.expect(401);
    // A provider in the middle of its own rotation signs with both.
    let (old, new) = (sign(now, &body), sign_with(NEWER, now, &body));
    shop.signed(&format!("t={now},v1={old},v1={new}"), &body).await.expect(204);
}

/// D08: the signature is over the bytes as they were sent, whatever the framing.
#[tokio::test]
async fn a_chunked_webhook_is_believed_byte_for_byte() {
    let shop = Shop::open(&Place::embedded(), |_| {}).await;
    let (order, charge) = shop.ordered(json!({"seats": ["A1"]})).await;
    let address = shop.listen().await;
    // No serialiser would write it so: odd spaces, an escape, a field of no use, a letter of two bytes cut in the middle.
    let body = event("evt_1", "charge.captured", &order, &charge).to_string();
    let body = body.replacen('{', "{ \"note\" :\t\"J\\u0061, sch\u{f6}n\",\r\n", 1);
    let now = shop.clock.unix_seconds();
    let (cut, _) = body.char_indices().find(|(_, letter)| *letter == '\u{f6}').unwrap();
    for (altered, status) in [(body.replace('\t', " "), "401"), (body.clone(), "204")] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /webhooks/payments HTTP/1.1\r\nhost: shop\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\
             stanchion-pay-signature: t={now},v1={}\r\n\r\n",
            sign(now, &body)
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        for part in [&altered.as_bytes()[..1], &altered.as_bytes()[1..=cut], &altered.as_bytes()[cut + 1..]] {
            stream.write_all(format!("{:x}\r\n", part.len()).as_bytes()).await.unwrap();
            stream.write_all(part).await.unwrap();
            stream.write_all(b"\r\n").await.unwrap();
            stream.flush().await.unwrap();
        }
        stream.write_all(b"0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        timeout(Duration::from_secs(10), stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    assert_eq!(shop.status_of(&order).await, "confirmed");
}

/// D09, at the edges of the window and beyond.
#[tokio::test]
async fn a_webhook_is_fresh_for_five_minutes_either_way() {
    let (shop, clock) = Shop::open_by_hand(&Place::embedded()).await;
    let (order, charge) = shop.ordered(json!({"seats": ["A1"]})).await;
    let signed_at = shop.clock.unix_seconds();
    let body = event("evt_1", "charge.captured", &order, &charge).to_string();
    let header = format!("t={signed_at},v1={}", sign(signed_at, &body));
    clock.advance(Duration::from_secs(301));
    assert_eq!(shop.signed(&header, &body).await.expect(401).problem(), "signature");
    for (ahead, status) in [(301, 401), (300, 204)] {
        let time = shop.clock.unix_seconds() + ahead;
        shop.signed(&format!("t={time},v1={}", sign(time, &body)), &body).await.expect(status);
    }
    assert_eq!(shop.status_of(&order).await, "confirmed");
    for time in ["NaN", "Infinity", "-1", "1e9", "0x10", "", " "] {
        shop.signed(&format!("t={time},v1={}", sign(0, &body)), &body).await.expect(401);
    }
}

/// D08: one signature header or none is believed; two leave open which one counts.
#[tokio::test]
async fn a_webhook_has_one_signature_header_and_a_body_of_bounded_size() {
    let shop = Shop::open(&Place::embedded(), |_| {}).await;
    let (order, charge) = shop.ordered(json!({"seats": ["A1"]})).await;
    let now = shop.clock.unix_seconds();
    let body = event("evt_1", "charge.captured", &order, &charge).to_string();
    let good = format!("t={now},v1={}", sign(now, &body));
    let twice = [("stanchion-pay-signature", good.as_str()), ("stanchion-pay-signature", "t=1,v1=00")];
    shop.send("POST", "/webhooks/payments", &twice, body.clone()).await.expect(401);

    let large = format!("{}{}", " ".repeat(64 * 1024), body);
    let signed = format!("t={now},v1={}", sign(now, &large));
    assert_eq!(shop.signed(&signed, &large).await.expect(413).problem(), "body-too-large");
    let padded = format!("{}{}", " ".repeat(64 * 1024 - body.len()), body);
    shop.signed(&format!("t={now},v1={}", sign(now, &padded)), &padded).await.expect(204);
    assert_eq!(shop.status_of(&order).await, "confirmed");
}

/// D07: the news of an order whose commit is a second away is not lost, and what is no order of ours never gets success.
#[tokio::test]
async fn a_webhook_ahead_of_its_order_is_told_to_come_back() {
    let shop = Shop::open(&Place::embedded(), |_| {}).await;
    for kind in ["charge.captured", "charge.declined", "refund.succeeded"] {
        let early = event("evt_early", kind, &format!("o_{}", "7".repeat(32)), "ch_1");
        for _ in 0..2 {
            let answer = shop.webhook(&early).await.expect(409);
            assert_eq!((answer.problem(), &answer.headers["retry-after"]), ("unknown-order", &"1".parse().unwrap()));
        }
    }
}
