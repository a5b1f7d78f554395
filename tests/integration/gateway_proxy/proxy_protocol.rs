//! The PROXY protocol on a listener that asks for it.

use std::time::Duration;

use stanchion::{config::server::ForwardedHeader, gateway::Trust, tls::Certificate};
use tokio::net::TcpStream;

use super::{OK, Stage};
use crate::support::{
    origin::{Origin, Playing},
    tls::{client, handshake, write},
    wire::Wire,
};

const SHORT: Duration = Duration::from_millis(150);
const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

async fn stage(trusted: &str) -> (Stage, Playing) {
    let origin = Origin::bind().await.always(OK);
    let trust = Trust::new(vec![trusted.parse().unwrap()], ForwardedHeader::XForwardedFor);
    let stage = Stage::behind(
        "127.0.0.1:0",
        origin.uri.clone(),
        trust,
        stanchion::gateway::Door::with_proxy_protocol,
        |_, deadlines, _| deadlines.handshake = SHORT,
    )
    .await;
    (stage, origin)
}

/// Version 2: signature, command, family, addresses and extensions.
fn version2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[command, family], &length, rest].concat()
}

const V4: [u8; 12] = [192, 0, 2, 1, 192, 0, 2, 2, 0xdc, 0x04, 0x01, 0xbb];

/// What the origin hears of the visitor.
fn visitor(origin: &Playing) -> String {
    let head = origin.heard().pop().expect("a request came through");
    let line = head.lines().find(|line| line.starts_with("x-forwarded-for:")).unwrap().to_owned();
    line["x-forwarded-for: ".len()..].to_owned()
}

#[tokio::test]
async fn the_visitor_is_whom_the_balancer_names() {
    let (stage, origin) = stage("127.0.0.0/8").await;
    let mut v6 = vec![0; 36];
    v6[..2].copy_from_slice(&[0x20, 0x01]);
    v6[15] = 1;
    let extensions = [&V4[..], &[0x04, 2, 24], &[0; 536]].concat();
    let headers: [(Vec<u8>, &str); 7] = [
        (b"PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n".to_vec(), "192.0.2.1"),
        (b"PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n".to_vec(), "2001:db8::1"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
        (version2(0x21, 0x11, &V4), "192.0.2.1"),
        (version2(0x21, 0x21, &v6), "2001::1"),
        (version2(0x21, 0x11, &extensions), "192.0.2.1"),
        (version2(0x20, 0x00, &[]), "127.0.0.1"),
    ];
    for (header, expected) in headers {
        let mut client = stage.client().await;
        client.send([&header[..], GET.as_bytes()].concat()).await;
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(visitor(&origin), expected);
        // And for the whole connection.
        assert_eq!(client.bytes(2).await, b"ok");
        client.send(GET).await;
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(visitor(&origin), expected);
    }
}

#[tokio::test]
async fn a_header_may_come_in_pieces() {
    let (stage, origin) = stage("127.0.0.1/32").await;
    for header in [b"PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n".to_vec(), version2(0x21, 0x11, &V4)] {
        let mut client = stage.client().await;
        for piece in header.chunks(9) {
            client.send(piece).await;
            tokio::task::yield_now().await;
        }
        client.send(GET).await;
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(visitor(&origin), "192.0.2.1");
    }
}

#[tokio::test]
async fn without_a_sound_header_in_time_nothing_is_answered() {
    let (stage, origin) = stage("127.0.0.0/8").await;
    for beginning in [
        GET.as_bytes().to_vec(),
        b"PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\n".to_vec(),
        format!("PROXY TCP4 {}\r\n", "1".repeat(200)).into_bytes(),
        version2(0x31, 0x11, &V4),
        version2(0x21, 0x11, &[1, 2, 3]),
        version2(0x21, 0x11, &[0; 5_000]),
        Vec::new(),
        b"PROXY TCP4 192.0.2.1".to_vec(),
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec(),
    ] {
        let mut client = stage.client().await;
        client.send_while_open(&beginning).await;
        assert!(client.rest().await.0.is_empty(), "{beginning:?}");
    }
    assert!(origin.heard().is_empty());
}

#[tokio::test]
async fn strangers_may_not_say_who_they_are() {
    let (stage, origin) = stage("192.0.2.0/24").await;
    let mut client = stage.client().await;
    client.send_while_open(format!("PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n{GET}")).await;
    assert!(client.rest().await.0.is_empty());
    assert!(origin.heard().is_empty());
}

#[tokio::test]
async fn it_comes_before_tls() {
    let dir = tempfile::tempdir().unwrap();
    let (files, certificate) = write(dir.path());
    let tls = Certificate::open(files).unwrap().server_config().unwrap();
    let origin = Origin::bind().await.always(OK);
    let trust = Trust::new(vec!["127.0.0.1/32".parse().unwrap()], ForwardedHeader::XForwardedFor);
    let door = |door: stanchion::gateway::Door| door.with_tls(tls).with_proxy_protocol();
    let stage = Stage::behind("127.0.0.1:0", origin.uri.clone(), trust, door, |_, _, _| {}).await;
    let mut stream = TcpStream::connect(stage.addr).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, &version2(0x21, 0x11, &V4)).await.unwrap();
    let client = client(&certificate, rustls::ALL_VERSIONS, &[]);
    let mut client = Wire::over(handshake(&client, stream).await.unwrap());
    client.send(GET).await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(visitor(&origin), "192.0.2.1");
    assert!(origin.heard()[0].contains("x-forwarded-proto: https"));
}

/// It passed the connection on unread: what the sender wrote is nobody's word but their own.
#[tokio::test]
async fn a_balancer_that_names_nobody_vouches_for_nothing() {
    let (stage, origin) = stage("127.0.0.0/8").await;
    for header in [b"PROXY UNKNOWN\r\n".to_vec(), version2(0x20, 0x00, &[]), version2(0x21, 0x00, &[])] {
        let claims = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Host: evil.test\r\n\r\n";
        let mut client = stage.client().await;
        client.send([&header[..], claims.as_bytes()].concat()).await;
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(visitor(&origin), "127.0.0.1");
        assert!(!origin.heard().pop().unwrap().contains("evil"));
    }
}
