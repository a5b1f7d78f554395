//! The gate from outside: who passes, who waits, and what each is told.

mod commands;
mod outage;
mod parallel;
mod places;
mod refusals;
mod rollback;
mod troubles;

use std::{sync::Arc, time::Duration};

use http::{Method, StatusCode};
use stanchion::{
    store::{SharedEngine, redis_engine::RedisEngine},
    tokens::{Keyring, SigningKey},
};

use super::support::{
    house::{House, eventually, in_process},
    redis_server::RedisServer,
};

/// A story that must go the same way on both engines.
async fn on_both<F: Future<Output = ()>>(story: impl Fn(SharedEngine) -> F) {
    story(in_process()).await;
    let redis = RedisServer::start();
    let engine = RedisEngine::connect(&redis.url()).await.unwrap();
    story(Arc::new(engine)).await;
}

fn keyring() -> Keyring {
    Keyring::new(SigningKey::random(), Vec::new())
}

#[tokio::test]
async fn one_goes_straight_in_the_next_waits_and_follows_when_the_first_is_done() {
    on_both(async |engine| {
        let house = House::on(engine, keyring(), |config| config.policy.capacity = 1).await;
        let (mut ann, mut ben) = (house.browser(), house.browser());

        // Step 4: straight in, without a waiting page.
        let answer = ann.open("/shop?x=1").await;
        assert_eq!((answer.status, answer.text()), (StatusCode::OK, "the shop"));
        assert!(ann.has_session());
        assert_eq!(house.shop.heard(), ["GET /shop?x=1"]);
        assert_eq!(house.shop.last_header("stanchion-room"), "main");
        assert_eq!(house.shop.last_header("cookie"), "", "our cookies are none of the shop's business");

        // Step 5: the waiting page.
        let answer = ben.open("/shop").await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(!ben.has_session());
        assert_eq!(ben.status().await["position"], 1);

        // Step 2: in again, with nothing new to remember.
        let answer = ann.open("/shop").await;
        assert_eq!((answer.status, answer.cookie("stanchion_s_main")), (StatusCode::OK, None));

        // Ann is done; the poll lets Ben in and says where to go (step 3 by way of the poll).
        assert_eq!(ann.open("/done").await.status, StatusCode::OK);
        let status = ben.until("admitted").await;
        assert_eq!(status["location"], "/shop");
        assert_eq!(ben.cookies.keys().collect::<Vec<_>>(), ["stanchion_s_main"], "the queue token has served");
        assert_eq!(ben.open("/shop").await.text(), "the shop");
    })
    .await;
}

#[tokio::test]
async fn a_called_visitors_navigation_just_goes_through() {
    on_both(async |engine| {
        let house = House::on(engine, keyring(), |config| config.policy.capacity = 1).await;
        let (mut ann, mut ben) = (house.browser(), house.browser());
        ann.open("/").await;
        ben.open("/").await;
        ann.open("/done").await;
        // Reloading is all that a browser without JavaScript does.
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while ben.open("/shop").await.status != StatusCode::OK {
            assert!(std::time::Instant::now() < deadline, "never called");
        }
        assert!(ben.has_session());
    })
    .await;
}

#[tokio::test]
async fn g4_tabs_retries_and_parallel_polls_have_one_place_and_one_session() {
    on_both(async |engine| {
        let house = House::on(engine, keyring(), |config| config.policy.capacity = 1).await;
        let (mut ann, mut ben) = (house.browser(), house.browser());
        ann.open("/").await;
        ben.open("/").await;
        let tabs = (0..20).map(|tab| {
            let mut tab_of_ben = ben.clone();
            async move {
                if tab % 2 == 0 {
                    tab_of_ben.open("/").await
                } else {
                    tab_of_ben.call(Method::POST, "/__room/main/join").await
                }
            }
        });
        for answer in futures_util::future::join_all(tabs).await {
            assert_eq!(answer.cookie("stanchion_q_main"), None, "nobody is given a second place");
        }
        eventually("the line", async || (house.figure("line").await == 1).then_some(())).await;
        assert_eq!(house.figure("joined_total").await, 1);

        ann.open("/done").await;
        let polls = (0..20).map(|_| {
            let mut tab = ben.clone();
            async move { tab.until("admitted").await }
        });
        futures_util::future::join_all(polls).await;
        eventually("the view", async || (house.figure("inside").await == 1).then_some(())).await;
        assert_eq!(house.figure("admitted_total").await, 2, "Ann and Ben, once each");
    })
    .await;
}

#[tokio::test]
async fn a_session_is_renewed_when_half_of_it_is_gone_and_outlives_its_first_end() {
    on_both(async |engine| {
        let house = House::on(engine, keyring(), |config| config.policy.session_ttl = Duration::from_secs(4)).await;
        let mut ann = house.browser();
        ann.open("/").await;
        let first = ann.cookies["stanchion_s_main"].clone();
        let renewed = eventually("a renewal", async || {
            let mut tab = ann.clone();
            assert_eq!(tab.open("/").await.status, StatusCode::OK);
            Some(tab).filter(|tab| tab.cookies["stanchion_s_main"] != first)
        })
        .await;
        // The old token ends, the new one goes on.
        eventually("the old token's end", async || {
            let mut old = ann.clone();
            old.cookies.remove("stanchion_q_main");
            (old.call(Method::GET, "/__room/main/status").await.json()["state"] == "not_queued").then_some(())
        })
        .await;
        assert_eq!(renewed.clone().open("/").await.status, StatusCode::OK);
    })
    .await;
}

#[tokio::test]
async fn a_session_ends_at_its_cap_whatever_it_does() {
    let house = House::open(|config| {
        config.policy.capacity = 1;
        config.policy.session_ttl = Duration::from_secs(2);
        config.session_cap = Duration::from_secs(3);
    })
    .await;
    let (mut ann, mut ben) = (house.browser(), house.browser());
    ann.open("/").await;
    ben.open("/").await;
    let began = std::time::Instant::now();
    while ann.open("/").await.status == StatusCode::OK {
        assert!(began.elapsed() < Duration::from_secs(8), "renewed beyond the cap");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(began.elapsed() > Duration::from_millis(1_900), "ended before its time: {:?}", began.elapsed());
    ben.until("admitted").await;
    assert_eq!(ann.status().await["state"], "waiting", "in line again, behind Ben");
}

#[tokio::test]
async fn a_visitor_whose_session_ran_out_comes_straight_in_again_when_nobody_waits() {
    let house = House::open(|config| config.policy.session_ttl = Duration::from_secs(1)).await;
    let mut ann = house.browser();
    ann.open("/").await;
    let first = ann.cookies.clone();
    eventually("the session", async || (house.figure("inside").await == 1).then_some(())).await;
    eventually("the session's end", async || (house.figure("inside").await == 0).then_some(())).await;
    assert_eq!(ann.open("/").await.status, StatusCode::OK);
    assert_ne!(ann.cookies, first);
    assert_eq!(house.figure("line").await, 0);
}
