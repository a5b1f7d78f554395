//! A lottery in a real browser, in front of the real gateway.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use stanchion::{
    queue::{Method, Past, Queue, Schedule},
    tokens::{Keyring, SigningKey},
};

use crate::{
    gateway::{House, eventually, in_process},
    support::Browser,
};

const IN_SHOP: &str = "!document.querySelector('#room') && document.body.innerText === 'the shop'";

fn state_is(state: &str) -> String {
    format!("document.querySelector('#room').dataset.state === '{state}'")
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_touches_the_page_from_the_pre_queue_through_the_draw_into_the_shop() {
    let browser = Browser::start(390, 844, false).await;
    let engine = in_process();
    let house = House::on(Arc::clone(&engine), Keyring::new(SigningKey::random(), Vec::new()), |config| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now_ms = u64::try_from(now.as_millis()).unwrap();
        // Nobody is let in before the test has seen the line.
        config.policy.capacity = 0;
        config.policy.schedule = Schedule {
            prequeue_at_ms: Some(now_ms - 1_000),
            opens_at_ms: Some(now_ms + 8_000),
            closes_at_ms: None,
            method: Method::Lottery,
        };
    })
    .await;
    browser.client.goto(&format!("{}/shop", house.url)).await.unwrap();
    browser.until(&state_is("prequeue")).await;
    browser.until("/^00:0\\d$/.test(document.querySelector('[data-f=countdown]').textContent)").await;
    assert_eq!(browser.js("document.querySelector('#place').offsetParent").await, serde_json::Value::Null);
    assert_eq!(browser.js("!!document.querySelector('a[download]').offsetParent").await, true, "a receipt is offered");
    let counted = "document.querySelector('[data-f=line]').textContent === '1'";
    assert_eq!(browser.js(counted).await, true, "whoever is in is counted, from the first page on");
    let visitor = browser.visitor().await;
    browser.screenshots("lottery-1-prequeue").await;

    browser.until(&format!("{} && document.title === '1 · The sale'", state_is("waiting"))).await;
    assert_eq!(browser.js("document.querySelector('[data-f=position]').textContent").await, "1");
    assert_eq!(browser.js("document.querySelector('#countdown').offsetParent").await, serde_json::Value::Null);
    assert_eq!(browser.visitor().await, visitor, "one visitor all along");
    browser.screenshots("lottery-2-waiting").await;

    let queue = Queue::new(engine, house.room.name());
    let mut policy = house.room.config().policy.clone();
    policy.capacity = 1;
    policy.schedule.opens_at_ms = house.room.view().snapshot.opens_at_ms;
    queue.configure(&policy, Past::Unknown).await.unwrap();
    browser.until(IN_SHOP).await;
    // Its icon, too, which a browser asks for by itself.
    eventually("the shop", async || house.shop.heard().iter().any(|heard| heard == "GET /shop").then_some(())).await;
    assert_eq!(house.shop.last_header("stanchion-visitor"), visitor);
    browser.close().await;
}
