//! Redis is killed in mid-sale, and comes back knowing nothing.

use std::{sync::Arc, time::Duration};

use http::{Method, StatusCode};
use tokio::task::JoinSet;

use super::{
    nodes::{CAPACITY, Nodes},
    watch::{Watch, connect},
};
use crate::support::browser::Browser;

const WAITING: usize = 5_000;
const WORKERS: usize = 50;

/// G1, G3, G5.
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_killed_and_emptied_in_mid_sale_costs_nobody_a_place_or_a_session() {
    let timing = "claim_window = \"30s\"\nsession_ttl = \"10m\"\nabsent_after = \"60s\"\nsettle = \"8s\"";
    let mut nodes = Nodes::start(2, timing).await;
    let inside = at_once(browsers(&nodes, usize::try_from(CAPACITY).unwrap()), async |mut browser| {
        browser.open("/").await;
        browser.until("admitted").await;
        browser
    })
    .await;
    let waiting = at_once(browsers(&nodes, WAITING), async |mut browser| {
        browser.call(Method::POST, "/__room/main/join").await;
        browser
    })
    .await;

    nodes.redis.kill();
    let waiting = at_once(waiting, poll).await;
    let inside = at_once(inside, visit).await;
    let newcomer = nodes.browser(0).open("/").await;
    assert_eq!(newcomer.status, StatusCode::SERVICE_UNAVAILABLE, "queued, like anybody else");

    nodes.redis.start_again();
    let watch = Watch::begin(&nodes.redis.url()).await;
    for node in 0..2 {
        nodes.until_ready(node).await;
    }
    let inside = at_once(inside, visit).await;
    let waiting = at_once(waiting, poll).await;

    let mut redis = connect(&nodes.redis.url()).await;
    let expected = in_order(&waiting);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        let line: Vec<String> =
            redis::cmd("ZRANGE").arg("stanchion:{main}:line").arg(0).arg(-1).query_async(&mut redis).await.unwrap();
        if line == expected {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{} of {WAITING} are back, or out of order", line.len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Past the settling: the sale goes on, for the first of the line first.
    tokio::time::sleep(Duration::from_secs(9)).await;
    let mut inside = at_once(inside, visit).await;
    let looks = watch.end().await;
    looks.capacity_held();
    assert_eq!(looks.0.last().unwrap().inside, CAPACITY, "everybody inside is known again");

    inside[0].call(Method::POST, "/__room/main/leave").await;
    let first = waiting.into_iter().min_by_key(score).unwrap();
    first.clone().until("admitted").await;
}

fn browsers(nodes: &Nodes, count: usize) -> Vec<Browser> {
    (0..count).map(|visitor| nodes.browser(visitor)).collect()
}

/// Lets everybody do the same, some tens at a time, in no particular order.
async fn at_once<F: Future<Output = Browser> + Send + 'static>(
    browsers: Vec<Browser>,
    act: impl Fn(Browser) -> F + Send + Sync + 'static,
) -> Vec<Browser> {
    let (mut hands, mut back, act) = (JoinSet::new(), Vec::new(), Arc::new(act));
    for browser in browsers {
        if hands.len() >= WORKERS {
            back.push(hands.join_next().await.unwrap().unwrap());
        }
        hands.spawn(act(browser));
    }
    back.extend(hands.join_all().await);
    back
}

/// A poll is answered, whatever Redis does.
async fn poll(mut browser: Browser) -> Browser {
    assert_eq!(browser.status().await["state"], "waiting");
    browser
}

/// A session passes, whatever Redis does.
async fn visit(mut browser: Browser) -> Browser {
    assert_eq!(browser.open("/").await.text(), "the shop");
    browser
}

fn score(browser: &Browser) -> u64 {
    browser.claims("stanchion_q_main")["score"].as_u64().unwrap()
}

/// Who waits, as their tokens say.
fn in_order(browsers: &[Browser]) -> Vec<String> {
    let mut order: Vec<&Browser> = browsers.iter().collect();
    order.sort_by_key(|browser| score(browser));
    order.iter().map(|browser| browser.claims("stanchion_q_main")["sub"].as_str().unwrap().to_owned()).collect()
}
