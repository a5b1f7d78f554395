//! What unadmitted and malformed requests get.

use http::{HeaderMap, Method, StatusCode, header::COOKIE, header::SET_COOKIE};
use stanchion::{
    config::BypassRule,
    gateway::{Gate, Gatekeeper as _, Peer, Verdict},
};

use super::{
    super::support::{
        browser::{Browser, NAVIGATION},
        http::request,
    },
    House, eventually,
};

async fn full_house() -> House {
    let house = House::open(|config| config.policy.capacity = 1).await;
    house.browser().open("/").await;
    house
}

/// B06: HTML only for navigations, never a redirect.
#[tokio::test]
async fn programs_get_the_document_and_people_the_page() {
    let house = full_house().await;
    for (headers, is_json) in [
        (&[("accept", "application/json, text/plain, */*")][..], true),
        (&[("accept", "*/*"), ("sec-fetch-mode", "cors"), ("sec-fetch-dest", "empty")], true),
        (&[("accept", "text/html;q=0.5, application/json")], true),
        (&NAVIGATION, false),
        (&[], false),
    ] {
        let answer = house.browser().send(Method::GET, "/shop/api", headers, "").await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{headers:?}");
        assert_eq!(answer.header("cache-control"), "no-store");
        let seconds: u64 = answer.header("retry-after").parse().unwrap();
        assert!((1..=18).contains(&seconds), "{seconds}");
        if is_json {
            assert_eq!(answer.header("content-type"), "application/json", "{headers:?}");
            assert_eq!(answer.json()["state"], "waiting");
        } else {
            assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{headers:?}");
            assert!(answer.header("content-security-policy").contains("default-src 'none'"));
        }
    }
    assert_eq!(house.shop.heard(), ["GET /"]);
}

/// B07: what would change something is refused out loud, and not kept for later.
#[tokio::test]
async fn an_unadmitted_post_is_refused_and_never_reaches_the_shop() {
    let house = House::open(|_| ()).await;
    let mut ann = house.browser();
    let form = [("content-type", "application/x-www-form-urlencoded"), ("accept", "text/html")];
    let answer = ann.send(Method::POST, "/shop/buy", &form, "seat=1").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.text().contains("not submitted"), "the page says so");
    assert!(!ann.has_session(), "an empty room lets nobody in by POST");

    let call = [("content-type", "application/json"), ("accept", "application/json")];
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        let answer = house.browser().send(method, "/shop/buy", &call, "{}").await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        let said = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(said.starts_with("Nothing was submitted. Join the line with POST /__room/main/join"), "{said}");
        assert_eq!(answer.json()["state"], "not_queued");
    }
    assert_eq!(house.shop.heard(), [""; 0]);
    // The page's poll lets Ann in, and what was refused stays refused.
    ann.until("admitted").await;
    ann.open("/shop").await;
    assert_eq!(house.shop.heard(), ["GET /shop"]);
}

/// B12, on a plain and on a TLS connection.
#[tokio::test]
async fn cookies_are_host_only_lax_http_only_and_secure_on_tls() {
    let house = full_house().await;
    let gate = Gate::new([house.room.clone()].into(), "/__room");
    for tls in [false, true] {
        let (head, ()) = http::Request::get("/shop").header("host", "shop.test").body(()).unwrap().into_parts();
        let peer = Peer::new("127.0.0.1:5".parse().unwrap(), tls);
        let Verdict::Answer(answer) = gate.decide(&head, peer).await else { panic!("let in") };
        let line = answer.headers()[SET_COOKIE].to_str().unwrap();
        let (pair, attributes) = line.split_once("; ").unwrap();
        assert!(pair.starts_with("stanchion_q_main="));
        let secure = if tls { "; Secure" } else { "" };
        let (path, attributes) = attributes.split_once("; ").unwrap();
        let (age, rest) = attributes.split_once("; ").unwrap();
        assert_eq!((path, rest), ("Path=/", format!("HttpOnly; SameSite=Lax{secure}").as_str()));
        // The token's own end; a second may begin between minting and this.
        assert!(["Max-Age=86400", "Max-Age=86399"].contains(&age), "{age}");
        assert!(line.len() < 1_000, "{} bytes", line.len());
    }
}

/// A08: somebody else's junk hides nothing.
#[tokio::test]
async fn malformed_cookies_hide_no_good_one() {
    let house = full_house().await;
    let mut ann = house.browser();
    ann.open("/").await;
    let good = ann.cookies["stanchion_q_main"].clone();
    let mut headers = HeaderMap::new();
    let lines = [b"junk=\xff\xfe; stanchion_q_main=\xff; ;;=; stanchion_q_main".to_vec(), {
        format!("stanchion_q_main=forged.by.me; a=b; stanchion_q_main={good}").into_bytes()
    }];
    for line in lines {
        headers.append(COOKIE, http::HeaderValue::from_bytes(&line).unwrap());
    }
    let known = stanchion::gateway::identity::identify(&house.room, &headers);
    assert!(known.queue.is_some() && known.session.is_none());
}

#[tokio::test]
async fn tampered_foreign_and_crossed_tokens_are_worth_nothing() {
    let house = full_house().await;
    let other = House::open(|_| ()).await;
    let mut stranger = other.browser();
    stranger.open("/").await;
    let mut waiting = house.browser();
    waiting.open("/").await;
    let queue_token = waiting.cookies["stanchion_q_main"].clone();
    let mut cut = stranger.cookies["stanchion_s_main"].clone();
    cut.truncate(cut.len() - 4);
    for session in [stranger.cookies["stanchion_s_main"].clone(), cut, queue_token, "a.b.c".to_owned(), "%".repeat(900)]
    {
        let mut forger = house.browser();
        forger.cookies.insert("stanchion_s_main".to_owned(), session);
        let answer = forger.open("/shop").await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "a newcomer like any other");
        assert!(answer.cookie("stanchion_q_main").is_some());
    }
    assert_eq!(house.shop.heard(), ["GET /"]);
}

#[tokio::test]
async fn apps_send_their_tokens_in_headers_which_the_shop_never_sees() {
    let house = House::open(|_| ()).await;
    let joined = house.browser().call(Method::POST, "/__room/main/join").await.json();
    assert_eq!(joined["state"], "admitted");
    let bearer = format!("Bearer {}", joined["session_token"].as_str().unwrap());
    let answer = house.browser().send(Method::POST, "/shop/api", &[("authorization", &bearer)], "{}").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(house.shop.last_header("authorization"), "");
    let basic = [("authorization", "Basic c2hvcDpzaG9w")];
    let mut browser = house.browser();
    browser.open("/").await;
    browser.send(Method::GET, "/", &basic, "").await;
    assert_eq!(house.shop.last_header("authorization"), "Basic c2hvcDpzaG9w", "the shop's own login passes");
}

/// B28, A06.
#[tokio::test]
async fn bypass_rules_let_through_what_they_surely_cover_and_nothing_else() {
    let house = House::open(|config| {
        config.policy.capacity = 0;
        let hook =
            BypassRule { methods: vec![Method::POST], path_prefix: Some("/hook".to_owned()), ..BypassRule::default() };
        config.bypass = vec![hook];
    })
    .await;
    let to = async |method: Method, path: &str| {
        request(method, &format!("{}{path}", house.url), &[("user-agent", "Googlebot")], "").await.status
    };
    assert_eq!(to(Method::POST, "/hook").await, StatusCode::OK);
    assert_eq!(to(Method::POST, "/hook/pay").await, StatusCode::OK);
    for path in [
        "/hook/../shop/",
        "/hook%2f../shop",
        "/hook;/../shop",
        "//hook",
        "/HOOK",
        "/hooks",
        "/shop",
        "/hook/%2e%2e/shop",
    ] {
        let status = to(Method::POST, path).await;
        assert!(matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_REQUEST), "{path}: {status}");
    }
    assert_eq!(to(Method::GET, "/hook").await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(house.shop.heard(), ["POST /hook", "POST /hook/pay"]);
    assert_eq!(house.shop.last_header("stanchion-visitor"), "", "uncounted");
}

#[tokio::test]
async fn only_guarded_hosts_and_paths_are_guarded() {
    let house = House::open(|config| {
        config.policy.capacity = 0;
        config.hosts = vec!["shop.test".to_owned()];
        config.paths = vec!["/shop".to_owned()];
    })
    .await;
    let to = async |host: &str, path: &str| {
        request(Method::GET, &format!("{}{path}", house.url), &[("host", host)], "").await.status
    };
    assert_eq!(to("shop.test", "/about").await, StatusCode::OK);
    assert_eq!(to("SHOP.test:8080", "/shop").await, StatusCode::SERVICE_UNAVAILABLE);
    for path in ["/SHOP/", "//shop/", "/shop%2Fbuy", "/healthz/../shop/", "/healthz;/../shop/"] {
        assert_eq!(to("shop.test", path).await, StatusCode::SERVICE_UNAVAILABLE, "{path}");
    }
    for path in ["/shop/%2e%2e/healthz", "/healthz/..%2fshop/"] {
        assert_eq!(to("shop.test", path).await, StatusCode::BAD_REQUEST, "{path}");
    }
    assert_eq!(to("evil.test", "/shop").await, StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(house.shop.heard(), ["GET /about"]);
}

/// B11: clients that keep no cookies are told what to do, without a loop and without a place each time they reload.
#[tokio::test]
async fn a_poll_without_a_cookie_creates_nothing() {
    let house = full_house().await;
    for _ in 0..10 {
        let mut forgetful: Browser = house.browser();
        assert_eq!(forgetful.status().await["state"], "not_queued");
        assert!(forgetful.cookies.is_empty());
    }
    eventually("the view", async || (house.figure("inside").await == 1).then_some(())).await;
    assert_eq!(house.figure("joined_total").await, 0);
}
