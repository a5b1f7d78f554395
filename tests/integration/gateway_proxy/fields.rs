//! Header fields, on their way in and out.

use super::{OK, Stage, exchange};
use crate::support::{origin::Origin, wire::Wire};

#[tokio::test]
async fn path_and_query_arrive_byte_for_byte() {
    for target in ["//shop/%2e%2e/a%2Fb;c?x=%ff&y=%C3%A9&&", "/?", "/a?b?c", "/%", "/|\\^"] {
        let (.., head) = exchange(format!("GET {target} HTTP/1.1\r\nHost: shop.test\r\n\r\n")).await;
        assert_eq!(head.start, format!("GET {target} HTTP/1.1"));
        assert_eq!(head.one("host").unwrap(), "shop.test");
    }
}

#[tokio::test]
async fn a02_an_h2c_upgrade_opens_nothing() {
    let (_stage, _origin, mut client, mut inside, head) = exchange(
        "GET /shop/ HTTP/1.1\r\nHost: shop.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
         HTTP2-Settings: AAMAAABkAAQ\r\n\r\n",
    )
    .await;
    for name in ["upgrade", "http2-settings", "connection"] {
        assert_eq!(head.one(name), None);
    }
    inside.send(OK).await;
    assert_eq!(client.head().await.status(), 200);
}

#[tokio::test]
async fn a08_cookies_pass_whatever_their_bytes_and_ours_stay() {
    let (.., head) = exchange(
        b"GET /shop/ HTTP/1.1\r\nHost: shop.test\r\nCookie: junk=\xff; stanchion_s_main=t; a=1; stanchion_q_main=t\r\n\r\n",
    )
    .await;
    assert_eq!(head.raw("cookie").unwrap(), b"junk=\xff; a=1");
}

#[tokio::test]
async fn a09_cookies_split_by_http2_become_one_line() {
    let origin = Origin::bind().await;
    let stage = Stage::before(origin.uri()).await;
    let request = http::Request::get(format!("http://{}/shop/", stage.addr))
        .version(http::Version::HTTP_2)
        .header("cookie", "a=1")
        .header("cookie", "stanchion_s_main=t")
        .header("cookie", "b=2")
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    let client =
        hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).http2_only(true).build_http();
    let answer = tokio::spawn(client.request(request));
    let mut inside = origin.accept().await;
    let head = inside.head().await;
    assert_eq!(head.one("cookie").unwrap(), "a=1; b=2");
    assert_eq!(head.one("host").unwrap(), stage.addr.to_string());
    inside.send(OK).await;
    assert_eq!(answer.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn a10_every_set_cookie_keeps_its_line() {
    let (_stage, _origin, mut client, mut inside, _) = exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let dated = "b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT";
    inside
        .send(format!("HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: {dated}\r\nContent-Length: 0\r\n\r\n"))
        .await;
    assert_eq!(client.head().await.all("set-cookie"), ["a=1", dated, "stanchion_s_main=new; Path=/"]);
}

#[tokio::test]
async fn a11_a12_what_the_visitor_claims_is_replaced() {
    let (.., head) = exchange(
        "GET / HTTP/1.1\r\nHost: shop.test\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 6.6.6.7\r\n\
         X_Forwarded_For: 6.6.6.6\r\nX-Forwarded_Host: 6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n\
         Stanchion-Visitor: 6.6.6.6\r\nStanchion_Visitor: 6.6.6.6\r\nStanchion-Queue-Token: 6.6.6.6\r\n\
         X-Request-Id: 6.6.6.6\r\nX-Secret: 6.6.6.6\r\nConnection: X-Secret, Stanchion-Room, X-Forwarded-For\r\n\r\n",
    )
    .await;
    assert!(head.lines.iter().all(|(_, value)| !value.starts_with(b"6.6.6") && !value.ends_with(b"6.6.6.6")));
    assert_eq!(head.one("x-forwarded-for").unwrap(), "127.0.0.1");
    assert_eq!(head.one("x-forwarded-proto").unwrap(), "http");
    assert_eq!(head.one("x-forwarded-host").unwrap(), "shop.test");
    assert_eq!(head.one("forwarded").unwrap(), "for=127.0.0.1;host=\"shop.test\";proto=http");
    assert_eq!(head.one("stanchion-room").unwrap(), "main");
    assert_eq!(head.one("stanchion-visitor").unwrap(), stanchion::queue::VisitorId::from_bits(7).to_string());
    assert_eq!(head.one("stanchion-session-expires").unwrap(), "4000000000");
    assert_eq!(head.one("x-request-id").unwrap().len(), 32);
}

#[tokio::test]
async fn a13_ipv6_is_bracketed_and_mapped_ipv4_is_ipv4() {
    for (bind, to, forwarded, plain) in
        [("[::1]:0", "::1", "for=\"[::1]\";", "::1"), ("[::]:0", "127.0.0.1", "for=127.0.0.1;", "127.0.0.1")]
    {
        let origin = Origin::bind().await;
        let stage = Stage::on(bind, origin.uri(), |_, _, _| {}).await;
        let mut client = Wire::connect((to.parse::<std::net::IpAddr>().unwrap(), stage.addr.port()).into()).await;
        client.send("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n").await;
        let head = origin.accept().await.head().await;
        assert!(head.one("forwarded").unwrap().starts_with(forwarded), "{:?}", head.one("forwarded"));
        assert_eq!(head.one("x-forwarded-for").unwrap(), plain);
    }
}

#[tokio::test]
async fn a23_a_compressed_answer_stays_as_it_is() {
    let (_stage, _origin, mut client, mut inside, head) =
        exchange("GET /gz HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n").await;
    assert_eq!(head.one("accept-encoding").unwrap(), "gzip");
    let body = b"\x1f\x8b\x08\x00 not really";
    inside.send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nETag: \"x\"\r\nContent-Length: 15\r\n\r\n").await;
    inside.send(body).await;
    let head = client.head().await;
    assert_eq!(head.one("content-encoding").unwrap(), "gzip");
    assert_eq!(head.one("etag").unwrap(), "\"x\"");
    assert_eq!(head.one("content-length").unwrap(), "15");
    assert_eq!(client.bytes(15).await, body);
}

#[tokio::test]
async fn a27_the_inner_address_stays_inside() {
    let request = "GET / HTTP/1.1\r\nHost: shop.test\r\nX-Forwarded-Host: evil.test\r\n\r\n";
    let (_stage, origin, mut client, mut inside, head) = exchange(request).await;
    assert_eq!(head.one("x-forwarded-host").unwrap(), "shop.test");
    let location = format!("{}x?y=1", origin.uri());
    inside.send(format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")).await;
    assert_eq!(client.head().await.one("location").unwrap(), "/x?y=1");
}

#[tokio::test]
async fn what_the_origin_tells_the_gateway_stays_inside() {
    let (_stage, _origin, mut client, mut inside, _) = exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    inside
        .send(
            "HTTP/1.1 200 Fine\r\nStanchion-Command: release\r\nStanchion-Unknown: 1\r\nKeep-Alive: timeout=5\r\n\
             Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nContent-Length: 0\r\n\r\n",
        )
        .await;
    let head = client.head().await;
    assert_eq!(head.start, "HTTP/1.1 200 Fine");
    assert_eq!(head.one("x-memo").unwrap(), "seen", "the gatekeeper saw the command, and its own memo");
    for name in ["stanchion-command", "stanchion-unknown", "keep-alive", "connection", "x-hop"] {
        assert_eq!(head.one(name), None);
    }
}

#[tokio::test]
async fn a_claimed_session_is_given_even_when_the_origin_is_down() {
    let gone = Origin::bind().await.uri();
    let stage = Stage::before(gone).await;
    let mut client = stage.client().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let head = client.head().await;
    assert_eq!((head.status(), head.all("set-cookie").len()), (502, 1));
}

#[test]
fn an_origin_is_an_http_address_without_a_path() {
    let limits = stanchion::gateway::Limits::default();
    for wrong in ["https://a", "http://a/path", "/path", "a:80"] {
        let error = stanchion::gateway::Proxy::new(
            [("main".parse().unwrap(), stanchion::config::Origins::at(wrong.parse().unwrap()))],
            &limits,
        )
        .unwrap_err();
        assert!(error.to_string().contains("http://HOST:PORT"), "{error}");
    }
}
