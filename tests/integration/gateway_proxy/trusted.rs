//! A11: whose word about the visitor counts.

use stanchion::{config::server::ForwardedHeader, gateway::Trust};

use super::{OK, Stage};
use crate::support::origin::Origin;

/// What the origin hears when a peer on the loopback sends these lines and `trusted` are the proxies.
async fn heard(trusted: &[&str], lines: &str) -> String {
    let origin = Origin::bind().await.always(OK);
    let networks = trusted.iter().map(|network| network.parse().unwrap()).collect();
    let trust = Trust::new(networks, ForwardedHeader::XForwardedFor);
    let stage = Stage::behind("127.0.0.1:0", origin.uri.clone(), trust, |door| door, |_, _, _| {}).await;
    let mut client = stage.client().await;
    client.send(format!("GET / HTTP/1.1\r\nHost: inner.test\r\n{lines}\r\n")).await;
    assert_eq!(client.head().await.status(), 200);
    origin.heard().pop().unwrap()
}

fn line<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    head.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).collect()
}

const CLAIMS: &str = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 198.51.100.7\r\nX-Forwarded-Proto: https\r\n\
                      X-Forwarded-Host: shop.test\r\nX-Real-IP: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n\
                      X_Forwarded_For: 6.6.6.6\r\n";

#[tokio::test]
async fn what_a_stranger_claims_is_replaced() {
    for trusted in [&[][..], &["10.0.0.0/8"], &["::1/128"]] {
        let head = heard(trusted, CLAIMS).await;
        assert!(!head.contains("6.6.6.6") && !head.contains("198.51.100.7") && !head.contains("shop.test"), "{head}");
        assert_eq!(line(&head, "x-forwarded-for"), ["127.0.0.1"]);
        assert_eq!(line(&head, "x-forwarded-proto"), ["http"]);
        assert_eq!(line(&head, "host"), ["inner.test"]);
    }
}

#[tokio::test]
async fn what_a_trusted_proxy_says_is_believed_and_continued() {
    let head = heard(&["127.0.0.0/8"], CLAIMS).await;
    assert_eq!(line(&head, "x-forwarded-for"), ["6.6.6.6, 198.51.100.7, 127.0.0.1"]);
    assert_eq!(line(&head, "forwarded"), ["for=198.51.100.7;host=\"shop.test\";proto=https, for=127.0.0.1"]);
    assert_eq!(line(&head, "x-forwarded-proto"), ["https"]);
    assert_eq!((line(&head, "x-forwarded-host"), line(&head, "host")), (vec!["shop.test"], vec!["shop.test"]));
    assert!(line(&head, "x-real-ip").is_empty() && line(&head, "x_forwarded_for").is_empty(), "{head}");
}
