//! TLS on our own listener.

use std::{sync::Arc, time::Duration};

use http::{Request, Version};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    pki_types::CertificateDer,
    version::{TLS12, TLS13},
};
use stanchion::{
    gateway::Trust,
    tls::{Certificate, Reloaded},
};
use tempfile::TempDir;
use tokio::net::TcpStream;

use super::{OK, Stage};
use crate::support::{
    origin::{Origin, Playing},
    tls::{client, connect, handshake, write},
    wire::{Wire, soon},
};

const SHORT: Duration = Duration::from_millis(150);

/// A gateway that speaks TLS.
struct Secure {
    stage: Stage,
    origin: Playing,
    held: Arc<Certificate>,
    certificate: CertificateDer<'static>,
    dir: TempDir,
}

async fn secure() -> Secure {
    let dir = tempfile::tempdir().unwrap();
    let (files, certificate) = write(dir.path());
    let held = Certificate::open(files).unwrap();
    let origin = Origin::bind().await.always(OK);
    let tls = held.server_config().unwrap();
    let stage = Stage::behind(
        "127.0.0.1:0",
        origin.uri.clone(),
        Trust::default(),
        |door| door.with_tls(tls),
        |_, deadlines, _| {
            deadlines.handshake = SHORT;
            deadlines.linger = SHORT;
        },
    )
    .await;
    Secure { stage, origin, held, certificate, dir }
}

async fn ask(wire: &mut Wire, path: &str) -> u16 {
    wire.send(format!("GET {path} HTTP/1.1\r\nHost: shop.test\r\n\r\n")).await;
    let status = wire.head().await.status();
    assert_eq!(wire.bytes(2).await, b"ok");
    status
}

#[tokio::test]
async fn http1_is_spoken_under_every_version_and_the_shop_hears_of_https() {
    let house = secure().await;
    for (version, alpn) in [(&TLS12, &[&b"http/1.1"[..]][..]), (&TLS13, &[b"http/1.1"]), (&TLS13, &[])] {
        let client = client(&house.certificate, &[version], alpn);
        let stream = handshake(&client, TcpStream::connect(house.stage.addr).await.unwrap()).await.unwrap();
        assert_eq!(ask(&mut Wire::over(stream), "/").await, 200);
    }
    let heard = house.origin.heard();
    assert_eq!(heard.len(), 3);
    for head in heard {
        assert!(head.contains("x-forwarded-proto: https\r\n") && head.contains(";proto=https\r\n"), "{head}");
    }
}

#[tokio::test]
async fn http2_is_agreed_on_in_the_handshake() {
    let house = secure().await;
    let client = client(&house.certificate, rustls::ALL_VERSIONS, &[b"h2", b"http/1.1"]);
    let stream = handshake(&client, TcpStream::connect(house.stage.addr).await.unwrap()).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, driver) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    for path in ["/1", "/2"] {
        let request = Request::get(format!("https://shop.test{path}")).body(Empty::<bytes::Bytes>::new()).unwrap();
        let answer = soon("an answer", sender.send_request(request)).await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.version()), (200, Version::HTTP_2));
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok");
    }
    assert!(house.origin.heard()[0].contains("x-forwarded-proto: https"));
}

#[tokio::test]
async fn a_new_certificate_is_for_new_connections_and_a_bad_one_for_none() {
    let house = secure().await;
    let mut open = Wire::over(connect(house.stage.addr, &house.certificate).await.unwrap());
    assert_eq!(ask(&mut open, "/1").await, 200);
    assert!(matches!(house.held.reload(), Reloaded::Unchanged));

    let (files, renewed) = write(house.dir.path());
    assert!(matches!(house.held.reload(), Reloaded::Replaced));
    assert_eq!(ask(&mut open, "/2").await, 200);
    assert!(connect(house.stage.addr, &house.certificate).await.is_err(), "the old one is no longer shown");
    assert_eq!(ask(&mut Wire::over(connect(house.stage.addr, &renewed).await.unwrap()), "/3").await, 200);

    std::fs::write(&files.certificate, "not a certificate").unwrap();
    assert!(matches!(house.held.reload(), Reloaded::Kept(_)));
    assert!(matches!(house.held.reload(), Reloaded::Unchanged), "it is complained of once");
    assert_eq!(ask(&mut Wire::over(connect(house.stage.addr, &renewed).await.unwrap()), "/4").await, 200);
}

#[tokio::test]
async fn whoever_speaks_plain_http_is_told_so() {
    let house = secure().await;
    let mut plain = house.stage.client().await;
    plain.send("GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n").await;
    assert_eq!(plain.head().await.status(), 400);
    let (body, _) = plain.rest().await;
    assert!(String::from_utf8_lossy(&body).contains("https://"), "{body:?}");
    assert!(house.origin.heard().is_empty());
}

#[tokio::test]
async fn a_handshake_has_a_deadline() {
    let house = secure().await;
    let mut silent = house.stage.client().await;
    let mut begun = house.stage.client().await;
    begun.send(b"\x16\x03\x01\x02\x00\x01").await;
    let mut done = Wire::over(connect(house.stage.addr, &house.certificate).await.unwrap());
    silent.closed().await;
    begun.closed().await;
    assert_eq!(ask(&mut done, "/").await, 200, "others are served");
}

#[tokio::test]
async fn stopping_says_goodbye() {
    let house = secure().await;
    let mut idle = Wire::over(connect(house.stage.addr, &house.certificate).await.unwrap());
    assert_eq!(ask(&mut idle, "/").await, 200);
    house.stage.shutdown.stop();
    assert!(idle.rest().await.1, "with a close_notify, so that nobody takes it for a cut");
    drop(idle);
    soon("the gateway to end", house.stage.served).await.unwrap();
}
