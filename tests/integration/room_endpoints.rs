//! The visitor endpoints and the admin API from outside.

mod at_once;

use std::time::Duration;

use http::{Method, StatusCode};

use super::support::{
    browser::NAVIGATION,
    house::{ADMIN_TOKEN, House, eventually},
    http::{get, request},
};

async fn full_house() -> House {
    let house = House::open(|config| config.policy.capacity = 1).await;
    house.browser().open("/").await;
    house
}

#[tokio::test]
async fn an_app_joins_polls_and_leaves_without_cookies() {
    let house = full_house().await;
    let room = format!("{}/__room/main", house.url);
    let json = ("accept", "application/json");
    let joined = request(Method::POST, &format!("{room}/join"), &[json], "").await;
    assert_eq!((joined.status, joined.header("cache-control")), (StatusCode::ACCEPTED, "no-store"));
    let document = joined.json();
    assert_eq!((&document["state"], &document["position"]), (&"waiting".into(), &1.into()));
    let token = ("stanchion-queue-token", document["queue_token"].as_str().unwrap());

    // Joining again is the same place.
    let again = request(Method::POST, &format!("{room}/join"), &[json, token], "").await.json();
    assert_eq!((&again["position"], &again["queue_token"]), (&1.into(), &document["queue_token"]));
    let status = request(Method::GET, &format!("{room}/status"), &[json, token], "").await.json();
    assert_eq!((&status["state"], &status["position"]), (&"waiting".into(), &1.into()));
    assert!(status.get("queue_token").is_none(), "the poll repeats no token");

    let left = request(Method::POST, &format!("{room}/leave"), &[token], "").await;
    assert_eq!((left.status, left.body.len()), (StatusCode::NO_CONTENT, 0));
    eventually("the empty line", async || (house.figure("line").await == 0).then_some(())).await;
    let status = request(Method::GET, &format!("{room}/status"), &[json, token], "").await.json();
    assert_eq!(status["state"], "expired");
}

#[tokio::test]
async fn leaving_ends_a_session_and_removes_the_cookies() {
    let house = House::open(|config| config.policy.capacity = 1).await;
    let mut ann = house.browser();
    ann.open("/").await;
    let kept = ann.clone();
    // As a beacon: no headers of our choosing.
    let answer = ann.send(Method::POST, "/__room/main/leave", &[], "").await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert!(ann.cookies.keys().all(|name| !name.starts_with("stanchion_")), "{:?}", ann.cookies);
    eventually("the free slot", async || (house.figure("inside").await == 0).then_some(())).await;
    let anew = kept.clone().open("/").await;
    assert!(anew.cookie("stanchion_s_main").is_some(), "the session is over, and the slot free for a newcomer");
    assert_eq!(house.browser().open("/").await.status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn the_form_on_the_page_joins_and_comes_back_to_the_page() {
    let house = full_house().await;
    let mut ann = house.browser();
    let joined = ann.send(Method::POST, "/__room/main/join?to=/shop%3Fa%3D1", &NAVIGATION, "").await;
    assert_eq!((joined.status, joined.header("location")), (StatusCode::SEE_OTHER, "/__room/main?to=/shop%3Fa%3D1"));
    let page = ann.open(joined.header("location")).await;
    assert_eq!((page.status, page.header("content-type")), (StatusCode::OK, "text/html; charset=utf-8"));
    assert_eq!(page.header("cache-control"), "no-store");
    assert_eq!(page.cookie("stanchion_q_main"), None, "the place is there already");

    let left = ann.send(Method::POST, "/__room/main/leave", &NAVIGATION, "").await;
    assert_eq!(left.status, StatusCode::OK);
    assert!(ann.cookies.is_empty(), "{:?}", ann.cookies);
}

#[tokio::test]
async fn the_pages_own_address_takes_whoever_may_enter_to_where_they_wanted() {
    let house = House::open(|_| ()).await;
    let mut ann = house.browser();
    for _ in 0..2 {
        let answer = ann.open("/__room/main?to=/shop").await;
        assert_eq!((answer.status, answer.header("location")), (StatusCode::SEE_OTHER, "/shop"));
    }
    assert!(ann.has_session());
    assert_eq!(ann.open("/shop").await.text(), "the shop");
}

/// B13.
#[tokio::test]
async fn nobody_is_led_to_another_site() {
    let house = House::open(|_| ()).await;
    let mut ann = house.browser();
    ann.open("/").await;
    for (to, leads) in [
        ("//evil.test", "/"),
        ("/%5Cevil.test", "/"),
        ("/%09/evil.test", "/"),
        ("https:evil.test", "/"),
        ("https://shop.test@evil.test", "/"),
        ("https://evil-shop.test", "/"),
        ("/a%0D%0ASet-Cookie:%20x=1", "/"),
        ("/__room/main/status", "/"),
        ("", "/"),
        ("/r%3Fu=https://x/y%7C1", "/r?u=https://x/y|1"),
        ("/caf%C3%A9", "/caf%C3%A9"),
    ] {
        let status = ann.call(Method::GET, &format!("/__room/main/status?to={to}")).await.json();
        assert_eq!(status["location"], leads, "{to}");
        let page = ann.open(&format!("/__room/main?to={to}")).await;
        assert_eq!(page.header("location"), leads, "{to}");
    }
    let twice = ann.call(Method::GET, "/__room/main/status?to=/a&to=/b").await;
    assert_eq!(twice.json()["location"], "/", "an unreadable query leads to the front page");
}

#[tokio::test]
async fn the_line_is_the_same_for_everyone_and_cacheable() {
    let house = full_house().await;
    house.browser().open("/").await;
    eventually("the line", async || (house.figure("line").await == 1).then_some(())).await;
    let answer = get(&format!("{}/__room/main/line.json", house.url)).await;
    assert_eq!(answer.header("cache-control"), "public, max-age=1, stale-while-revalidate=5");
    assert!(answer.headers.get("set-cookie").is_none());
    let line = answer.json();
    assert_eq!((&line["room"], &line["state"], &line["line"]), (&"main".into(), &"open".into(), &1.into()));
    assert_eq!((&line["sketch"][0][0], line["sketch"].as_array().unwrap().len()), (&0.into(), 1));
    assert!(line["sketch"][0][1].as_u64() > line["watermark"].as_u64());
}

#[tokio::test]
async fn the_pages_assets_are_immutable_and_compressed_for_whoever_takes_it() {
    let house = full_house().await;
    let page = house.browser().open("/").await.text().to_owned();
    let paths: Vec<&str> = page.split('"').filter(|part| part.starts_with("/__room/assets/")).collect();
    assert!(paths.len() >= 2, "a style and a script");
    for path in paths {
        let url = format!("{}{path}", house.url);
        let plain = get(&url).await;
        assert_eq!(plain.status, StatusCode::OK, "{path}");
        assert_eq!(plain.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(plain.header("content-encoding"), "");
        let packed = request(Method::GET, &url, &[("accept-encoding", "br;q=1, gzip;q=0.8")], "").await;
        assert_eq!((packed.header("content-encoding"), packed.header("vary")), ("gzip", "accept-encoding"));
        assert!(packed.body.len() < plain.body.len());
        let refused = request(Method::GET, &url, &[("accept-encoding", "gzip;q=0")], "").await;
        assert_eq!(refused.body, plain.body);
        let held = request(Method::GET, &url, &[("if-none-match", plain.header("etag"))], "").await;
        assert_eq!((held.status, held.body.len()), (StatusCode::NOT_MODIFIED, 0));
    }
}

#[tokio::test]
async fn errors_are_problem_documents_that_say_what_to_do() {
    let house = House::open(|_| ()).await;
    for (method, path, status) in [
        (Method::GET, "/__room/other/status", 404),
        (Method::GET, "/__room/%ff%00/status", 404),
        (Method::POST, "/__room/other/join", 404),
        (Method::GET, "/__room/main/join", 405),
        (Method::DELETE, "/__room/main/status", 405),
        (Method::GET, "/__room/assets/room.0000000000000000.css", 404),
        (Method::GET, "/__room/main/line.xml", 404),
        (Method::GET, "/__room", 404),
    ] {
        let answer = request(method.clone(), &format!("{}{path}", house.url), &[], "").await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), "application/problem+json", "{method} {path}");
        let problem = answer.json();
        assert_eq!(problem["status"], status);
        assert!(!problem["what_to_do"].as_str().unwrap().is_empty());
    }
    assert_eq!(house.shop.heard(), [""; 0]);
}

#[tokio::test]
async fn the_admin_api_reads_without_a_token_and_changes_only_with_it() {
    let house = House::open(|config| config.policy.capacity = 7).await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(house.admin(Method::GET, path, None, "").await.0, StatusCode::OK, "{path}");
    }
    let (_, rooms) = house.admin(Method::GET, "/api/rooms", None, "").await;
    let rooms: serde_json::Value = serde_json::from_str(&rooms).unwrap();
    let mut names: Vec<&String> = rooms[0].as_object().unwrap().keys().collect();
    names.sort();
    let expected = [
        "admitted_total",
        "burst",
        "called",
        "called_total",
        "capacity",
        "draw",
        "epoch",
        "inside",
        "joined_total",
        "line",
        "method",
        "mode",
        "no_shows_total",
        "opens_at",
        "pace",
        "rate",
        "room",
        "warnings",
    ];
    assert_eq!(names, expected);
    assert_eq!((&rooms[0]["capacity"], &rooms[0]["mode"]), (&7.into(), &"open".into()));
    for name in ["other", "%ff"] {
        let (given, text) = house.admin(Method::GET, &format!("/api/rooms/{name}"), None, "").await;
        assert_eq!(given, StatusCode::NOT_FOUND);
        assert!(text.contains("what_to_do"), "{text}");
    }

    let pause = "{\"mode\":\"paused\"}";
    for (token, body, status) in [
        (None, pause, StatusCode::UNAUTHORIZED),
        (Some("guess"), pause, StatusCode::FORBIDDEN),
        (Some(ADMIN_TOKEN), "{\"mode\":\"scheduled\"}", StatusCode::UNPROCESSABLE_ENTITY),
        (Some(ADMIN_TOKEN), "pause", StatusCode::UNPROCESSABLE_ENTITY),
        (Some(ADMIN_TOKEN), &" ".repeat(2_100_000), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let (given, text) = house.admin(Method::POST, "/api/rooms/main/mode", token, body).await;
        assert_eq!(given, status, "{text}");
        assert!(text.contains("what_to_do"), "{text}");
    }
    assert_eq!(house.figure("mode").await, "open");
    house.set_mode("paused").await;
}

/// An operator who sets "open" before the opening must not believe that it is open.
#[tokio::test]
async fn the_answer_to_a_mode_says_what_holds() {
    let set = async |house: &House, mode: &str| {
        let body = format!("{{\"mode\":\"{mode}\"}}");
        let (status, text) = house.admin(Method::POST, "/api/rooms/main/mode", Some(ADMIN_TOKEN), &body).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let early = House::open(|config| config.policy.schedule.opens_at_ms = Some(4_000_000_000_000)).await;
    let answer = set(&early, "open").await;
    assert_eq!((&answer["mode"], &answer["opens_at"]), (&"scheduled".into(), &"2096-10-02T07:06:40Z".into()));
    assert!(answer["note"].as_str().unwrap().contains("opens at opens_at"), "{answer}");
    let answer = set(&early, "paused").await;
    assert!(answer["note"].as_str().unwrap().contains("paused from its opening on"), "{answer}");
    let house = House::open(|_| ()).await;
    for mode in ["paused", "sold_out", "open"] {
        let answer = set(&house, mode).await;
        assert_eq!((&answer["mode"], &answer["note"]), (&mode.into(), &serde_json::Value::Null));
    }
}

#[tokio::test]
async fn a_room_says_what_its_operator_wrote_and_answers_with_the_status_they_chose() {
    let house = House::open(|config| {
        config.policy.capacity = 0;
        config.message = Some("Bring <b>tea</b>.".to_owned());
        config.queued_status = 202;
        config.policy.claim_window = Duration::from_secs(20);
    })
    .await;
    let mut ann = house.browser();
    let page = ann.open("/").await;
    assert_eq!(page.status, StatusCode::ACCEPTED);
    assert!(page.text().contains("Bring &#60;b&#62;tea") || page.text().contains("Bring &lt;b&gt;tea"));
    assert_eq!(ann.status().await["message"], "Bring <b>tea</b>.");
}
