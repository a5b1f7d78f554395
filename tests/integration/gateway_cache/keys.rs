//! What tells two answers apart, and what nobody can slip into the answers of others.

use super::{KEEP, answer, get, house, text};
use crate::support::origin::Origin;

/// A shop that says what it was asked.
async fn echo(lines: &'static str) -> crate::support::origin::Playing {
    Origin::bind().await.by(move |asked, _| super::said(lines, asked).into_bytes())
}

#[tokio::test]
async fn addresses_hosts_and_queries_are_kept_apart() {
    let shop = super::numbering(KEEP).await;
    let house = house(shop.uri.clone()).await;
    let mut seen = Vec::new();
    for path in ["/event", "/event?", "/event?a=1&b=2", "/event?b=2&a=1", "/event/", "/event/1", "/event//1"] {
        for host in ["a", "A", "a:80", "b"] {
            let request = get(path, "").replace("Host: a", &format!("Host: {host}"));
            let first = answer(&house, &request).await.1;
            assert_eq!(answer(&house, &request).await.1, first, "{path} {host}");
            assert!(!seen.contains(&first), "{path} {host} got somebody else's {first}");
            seen.push(first);
        }
    }
}

#[tokio::test]
async fn answers_vary_by_what_the_origin_names() {
    let shop = echo("Cache-Control: max-age=600\r\nVary: Accept-Language\r\nVary: accept-encoding\r\n").await;
    let house = house(shop.uri.clone()).await;
    for _ in 0..2 {
        for language in ["de", "fr", "de, fr"] {
            let said = text(&house, "/event", &format!("Accept-Language: {language}\r\n")).await;
            assert!(said.contains(&format!("accept-language: {language}\r\n")), "{said}");
        }
    }
    assert_eq!(shop.heard().len(), 3);
    // The same codings in other words are the same.
    for codings in ["gzip, br", "br;q=1.0,GZIP", "gzip;q=0.5, br, new-one"] {
        let said = text(&house, "/event", &format!("Accept-Language: de\r\nAccept-Encoding: {codings}\r\n")).await;
        assert!(said.contains("accept-encoding: br, gzip\r\n"), "{said}");
    }
    assert_eq!(shop.heard().len(), 4);
}

#[tokio::test]
async fn nobody_gets_a_coding_that_they_do_not_take_though_the_origin_forgets_to_say() {
    let shop = Origin::bind().await.by(|asked, _| {
        let is_taken = asked.contains("accept-encoding: gzip\r\n");
        super::said(if is_taken { "Cache-Control: max-age=600\r\nContent-Encoding: gzip\r\n" } else { KEEP }, "x")
            .into_bytes()
    });
    let house = house(shop.uri.clone()).await;
    for _ in 0..3 {
        answer(&house, get("/event", "Accept-Encoding: gzip\r\n")).await;
        assert_eq!(answer(&house, get("/event", "")).await.0.one("content-encoding"), None);
    }
}

#[tokio::test]
async fn what_no_key_holds_does_not_reach_the_origin() {
    let shop = echo(KEEP).await;
    let house = house(shop.uri.clone()).await;
    let poison = "X-Forwarded-Host: evil.test\r\nX-Forwarded-Scheme: evil.test\r\nX-Original-URL: /evil.test\r\n\
                  X-Rewrite-URL: /evil.test\r\nX-HTTP-Method-Override: evil.test\r\nX-Host: evil.test\r\n\
                  Forwarded: host=evil.test\r\nReferer: evil.test\r\nX_Forwarded_Host: evil.test\r\nVia: evil.test\r\n";
    for path in ["/event", "/public"] {
        let poison = poison.replace("X-HTTP-Method-Override: evil.test\r\n", "");
        assert!(!text(&house, path, &poison).await.contains("evil.test"));
        assert!(!text(&house, path, "").await.contains("evil.test"));
    }
    assert_eq!(shop.heard().len(), 2);
    // This one is asked for by itself, and not kept.
    assert!(text(&house, "/event/2", poison).await.contains("x-http-method-override: evil.test"));
    assert!(!text(&house, "/event/2", "").await.contains("evil.test"));
}
