//! Which requests create a place, and what happens to one over time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{Method, StatusCode};

use super::{House, eventually, keyring, on_both};

/// B09, B10: parts of pages, prefetches, preflights and probes.
#[tokio::test]
async fn nothing_but_a_visit_takes_a_place_or_a_slot() {
    let house = House::open(|_| ()).await;
    for (method, path, headers) in [
        (Method::GET, "/favicon.ico", &[][..]),
        (Method::GET, "/robots.txt", &[]),
        (Method::GET, "/apple-touch-icon.png", &[]),
        (Method::GET, "/healthz", &[]),
        (Method::GET, "/x.png", &[("accept", "image/png"), ("if-none-match", "*")]),
        (Method::GET, "/x", &[("sec-fetch-dest", "image"), ("sec-fetch-mode", "no-cors")]),
        (Method::GET, "/", &[("sec-purpose", "prefetch;prerender")]),
        (Method::OPTIONS, "/", &[("access-control-request-method", "PUT"), ("origin", "http://x.test")]),
        (Method::HEAD, "/", &[]),
    ] {
        let answer = house.browser().send(method.clone(), path, headers, "").await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{method} {path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{method} {path}");
        assert!(answer.headers.get("set-cookie").is_none(), "{method} {path}");
        assert!(answer.headers.get("etag").is_none() && answer.headers.get("last-modified").is_none());
    }
    assert_eq!(house.shop.heard(), [""; 0]);
    // A visit afterwards is the first one.
    house.browser().open("/").await;
    eventually("the view", async || (house.figure("inside").await == 1).then_some(())).await;
    assert_eq!((house.figure("joined_total").await, house.figure("line").await), (0.into(), 0.into()));
}

#[tokio::test]
async fn a_prefetch_does_not_use_up_a_call() {
    let house = House::open(|config| config.policy.capacity = 1).await;
    let (mut ann, mut ben) = (house.browser(), house.browser());
    ann.open("/").await;
    ben.open("/").await;
    ann.open("/done").await;
    eventually("the call", async || (house.figure("called").await == 1).then_some(())).await;
    let answer = ben.send(Method::GET, "/", &[("sec-purpose", "prefetch")], "").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(!ben.has_session());
    ben.until("admitted").await;
}

/// B02: an absence beyond the grace is said, never silently turned into a place at the end.
#[tokio::test]
async fn a_place_given_up_by_absence_is_told_and_joined_anew_behind_the_others() {
    on_both(async |engine| {
        let house = House::on(engine, keyring(), |config| {
            config.policy.capacity = 1;
            config.policy.absent_after = Duration::from_secs(1);
            config.policy.grace = Duration::from_secs(2);
        })
        .await;
        let (mut ann, mut ben, mut cat) = (house.browser(), house.browser(), house.browser());
        ann.open("/").await;
        ben.open("/").await;
        cat.open("/").await;
        assert_eq!(cat.status().await["ahead"], 1);
        // Ben goes to sleep, Cat stays.
        eventually("the line without Ben", async || {
            let mut tab = cat.clone();
            (tab.status().await["ahead"] == 0).then_some(())
        })
        .await;
        let status = ben.until("expired").await;
        assert_eq!((&status["position"], &status["eta_seconds"]), (&serde_json::Value::Null, &serde_json::Value::Null));
        let page = ben.open("/").await;
        assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(page.text().contains("/__room/main/join"), "the page offers to join again");
        assert_eq!(ben.status().await["state"], "expired", "a reload does not change it");

        let joined = ben.call(Method::POST, "/__room/main/join").await;
        assert_eq!((joined.status, &joined.json()["state"]), (StatusCode::ACCEPTED, &"waiting".into()));
        eventually("a place behind Cat", async || {
            cat.clone().status().await;
            (ben.clone().status().await["ahead"] == 1).then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn before_the_opening_everybody_waits_for_it_and_then_comes_in_by_polling() {
    on_both(async |engine| {
        let house = House::on(engine, keyring(), |config| {
            config.policy.schedule.opens_at_ms = Some(now_ms() + 1_500);
            config.policy.capacity = 1;
        })
        .await;
        let (mut ann, mut ben) = (house.browser(), house.browser());
        for visitor in [&mut ann, &mut ben] {
            let page = visitor.open("/shop").await;
            assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
            let status = visitor.status().await;
            assert_eq!((&status["state"], &status["position"]), (&"scheduled".into(), &serde_json::Value::Null));
            assert!(status["opens_at"].is_string());
            assert!(status["next_poll_ms"].as_u64().unwrap() <= 3_600, "{status}");
        }
        assert_eq!((house.figure("line").await, house.figure("inside").await), (0.into(), 0.into()));
        let ben_waits = async { ben.until("waiting").await };
        ann.until("admitted").await;
        let status = ben_waits.await;
        assert_eq!(status["position"], 1);
    })
    .await;
}

/// G4: a tab that slept since before the opening comes back when its visitor is called already, with a cookie that
/// says nothing of the order.
#[tokio::test]
async fn a_tab_left_behind_at_the_opening_keeps_its_visitors_order() {
    on_both(async |engine| {
        let house = House::on(engine, keyring(), |config| {
            config.policy.schedule.opens_at_ms = Some(now_ms() + 1_000);
            config.policy.capacity = 2;
        })
        .await;
        let mut crowd = [(); 4].map(|()| house.browser());
        for visitor in &mut crowd {
            visitor.open("/shop").await;
        }
        let [ann, abe, ben, cat] = &mut crowd;
        let mut left_behind = ben.clone();
        for (visitor, state) in
            [(&mut *ann, "admitted"), (&mut *abe, "admitted"), (&mut *ben, "waiting"), (cat, "waiting")]
        {
            visitor.until(state).await;
        }
        for buyer in [ann, abe] {
            buyer.open("/done").await;
        }
        eventually("the two who wait to be called", async || (house.figure("called").await == 2).then_some(())).await;
        left_behind.until("admitted").await;
        let (before, after) = (ben.claims("stanchion_q_main"), left_behind.claims("stanchion_s_main"));
        assert_eq!((&before["sub"], &before["score"]), (&after["sub"], &after["score"]));
    })
    .await;
}

/// B05: what is unknown is null, whatever the mode; nothing is negative.
#[tokio::test]
async fn paused_sold_out_and_closed_rooms_say_so_and_let_nobody_in() {
    on_both(async |engine| {
        let house = House::on(engine, keyring(), |config| config.policy.capacity = 1).await;
        let (mut ann, mut ben) = (house.browser(), house.browser());
        ann.open("/").await;
        ben.open("/").await;
        house.set_mode("paused").await;
        ann.open("/done").await;
        eventually("the free slot", async || (house.figure("inside").await == 0).then_some(())).await;
        let status = ben.status().await;
        assert_eq!((&status["state"], &status["eta_seconds"]), (&"paused".into(), &serde_json::Value::Null));
        assert_eq!(status["position"], 1, "the place is kept");
        let mut cat = house.browser();
        assert_eq!(cat.open("/").await.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(cat.status().await["state"], "paused");

        for mode in ["sold_out", "closed"] {
            house.set_mode(mode).await;
            let status = ben.status().await;
            assert_eq!((&status["state"], &status["position"]), (&mode.into(), &serde_json::Value::Null));
            let mut dan = house.browser();
            assert_eq!(dan.open("/").await.status, StatusCode::SERVICE_UNAVAILABLE);
            assert!(dan.cookies.is_empty(), "nothing to wait for");
        }
        house.set_mode("open").await;
        ben.until("admitted").await;
    })
    .await;
}

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}
