//! Gateways that stand still and go on.

use std::{sync::Arc, time::Duration};

use http::Method;
use tokio::task::JoinSet;

use super::{
    nodes::{CAPACITY, Nodes},
    watch::{Watch, connect},
};
use crate::support::{browser::NAVIGATION, http::request};

/// Longer than the 5 s after which the scripts take a room for unattended.
const PAUSE: Duration = Duration::from_secs(8);

/// G2: after all gateways slept, nothing is caught up, and nobody is taken for absent because of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_of_every_gateway_is_followed_by_no_burst() {
    let timing = "claim_window = \"1s\"\nsession_ttl = \"1s\"\nabsent_after = \"30s\"";
    let nodes = Arc::new(Nodes::start(2, timing).await);
    let mut crowd = JoinSet::new();
    for worker in 0..20 {
        let nodes = Arc::clone(&nodes);
        crowd.spawn(async move {
            for ghost in 0..100 {
                request(Method::GET, nodes.url(worker + ghost), &NAVIGATION, "").await;
            }
        });
    }
    crowd.join_all().await;
    let watch = Watch::begin(&nodes.redis.url()).await;
    until_more_are_called(&nodes).await;
    nodes.programs.iter().for_each(|node| node.signal("-STOP"));
    tokio::time::sleep(PAUSE).await;
    nodes.programs.iter().for_each(|node| node.signal("-CONT"));
    // Whatever would be caught up would come at once.
    until_more_are_called(&nodes).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    let looks = watch.end().await;
    looks.rate_held();
    let longest = looks.0.windows(2).filter(|two| two[1].called_total > two[0].called_total).map(|two| two[1].at_us);
    let calls: Vec<u64> = longest.collect();
    let gap = calls.windows(2).map(|two| two[1] - two[0]).max().unwrap();
    assert!(gap >= 7_000_000, "nobody was asleep: the longest time without a call was {gap} us");
    let most = looks.0.iter().map(|look| look.called + look.inside).max().unwrap();
    assert!(most <= CAPACITY, "{most}");
}

async fn until_more_are_called(nodes: &Nodes) {
    let mut redis = connect(&nodes.redis.url()).await;
    let mut called = async || -> u64 {
        let total = redis::cmd("HGET").arg("stanchion:{main}:state").arg("called_total").query_async(&mut redis).await;
        total.unwrap()
    };
    let before = called().await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while called().await == before {
        assert!(tokio::time::Instant::now() < deadline, "nobody was called any more after the first {before}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// G6: who leaves from the front holds nobody up.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_one_who_left_from_the_front_is_called_within_the_claim_window() {
    let nodes = Nodes::start(2, "claim_window = \"2s\"\nabsent_after = \"60s\"\nsession_ttl = \"60s\"").await;
    let mut inside = Vec::new();
    for visitor in 0..usize::try_from(CAPACITY).unwrap() {
        let mut browser = nodes.browser(visitor);
        browser.open("/").await;
        browser.until("admitted").await;
        inside.push(browser);
    }
    let (mut front, mut next) = (nodes.browser(0), nodes.browser(1));
    for browser in [&mut front, &mut next] {
        browser.open("/").await;
        assert_eq!(browser.status().await["state"], "waiting");
    }
    // One goes without a word, one says so; then a slot is free.
    let mut second = nodes.browser(0);
    second.open("/").await;
    front.cookies.clear();
    next.call(Method::POST, "/__room/main/leave").await;
    inside[0].call(Method::POST, "/__room/main/leave").await;
    let freed = tokio::time::Instant::now();
    second.until("admitted").await;
    assert!(freed.elapsed() < Duration::from_secs(2 + 3), "called only after {:?}", freed.elapsed());
}
