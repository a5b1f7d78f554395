//! A crowd that keeps no cookies, and people among it.

use std::{sync::Arc, time::Duration};

use http::Method;
use tokio::task::JoinSet;

use super::{
    nodes::Nodes,
    watch::{Watch, connect},
};
use crate::support::{
    browser::{Browser, NAVIGATION},
    http::request,
};

const GHOSTS: usize = 5_000;
const PEOPLE: usize = 60;

/// B11, B20: entries are bounded by capacity and rate whatever comes, and people get through the ghosts of the others.
#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_clients_without_cookies_never_exceed_capacity_or_rate() {
    let timing = "claim_window = \"3s\"\nabsent_after = \"2s\"\ngrace = \"20s\"\nsession_ttl = \"3s\"";
    let nodes = Arc::new(Nodes::start(3, timing).await);
    // Until the room has settled nobody is called, and a crowd that is quicker than that would be gone by then.
    enter_stay_and_leave(nodes.browser(0)).await;
    let watch = Watch::begin(&nodes.redis.url()).await;

    let mut crowd = JoinSet::new();
    for worker in 0..50 {
        let nodes = Arc::clone(&nodes);
        crowd.spawn(async move {
            for visit in 0..GHOSTS / 50 {
                let url = nodes.url(worker + visit).to_owned();
                let status = request(Method::GET, &url, &NAVIGATION, "").await.status;
                assert!([200, 503].contains(&status.as_u16()), "{status}");
            }
        });
    }
    for person in 0..PEOPLE {
        let browser = nodes.browser(person);
        crowd.spawn(enter_stay_and_leave(browser));
    }
    while let Some(end) = crowd.join_next().await {
        end.unwrap();
    }

    let looks = watch.end().await;
    looks.capacity_held();
    looks.rate_held();
}

async fn enter_stay_and_leave(mut browser: Browser) {
    browser.open("/").await;
    let deadline = tokio::time::Instant::now() + Duration::from_mins(2);
    loop {
        let status = browser.status().await;
        if status["state"] == "admitted" {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "a person never got through: {status}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert_eq!(browser.open("/").await.text(), "the shop");
    browser.call(Method::POST, "/__room/main/leave").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_who_join_one_after_the_other_rank_in_that_order() {
    // Nobody is called meanwhile, so everybody stays in the line to be counted.
    let nodes = Nodes::start(3, "opens_at = \"2000-01-01T00:00:00Z\"").await;
    let mut redis = connect(&nodes.redis.url()).await;
    let () = redis::cmd("HSET").arg("stanchion:{main}:state").arg("mode").arg(2).query_async(&mut redis).await.unwrap();
    let mut visitors = Vec::new();
    for turn in 0..500 {
        let mut browser = nodes.browser(turn);
        browser.call(Method::POST, "/__room/main/join").await;
        visitors.push(browser.claims("stanchion_q_main")["sub"].as_str().unwrap().to_owned());
    }
    let line: Vec<String> =
        redis::cmd("ZRANGE").arg("stanchion:{main}:line").arg(0).arg(-1).query_async(&mut redis).await.unwrap();
    assert_eq!(line, visitors);
}
