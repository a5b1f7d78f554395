//! The wait itself: numbers that move, news that is told, a door that opens by itself.

use serde_json::{Value, json};
use stanchion::pages::{Page, WaitingPage};

use crate::{stage::Stage, support::Browser};

const STATUS: &str = "GET /__room/main/status";

fn status(state: &str, position: Option<u64>) -> Value {
    json!({
        "room": "main", "state": state, "position": position, "ahead": position.map(|at| at - 1), "line": 500,
        "eta_seconds": position.map(|_| json!({ "low": 600, "high": 780 })), "admitted_per_minute": 412.0,
        "opens_at": null, "next_poll_ms": 1000, "message": null, "location": null,
    })
}

fn page(state: &str, position: Option<u64>, opens_at_ms: Option<u64>) -> Page {
    WaitingPage {
        title: "The Sale",
        room: "main",
        prefix: "/__room",
        state,
        position,
        ahead: position.map(|at| at - 1),
        line: Some(500),
        eta: position.map(|_| (600, 780)),
        message: None,
        refresh_seconds: 1,
        to: "/shop",
        status_json: &status(state, position).to_string(),
        not_submitted: false,
        opens_at_ms,
    }
    .render()
}

/// A server that shows the waiting page at `/shop`, and a browser on it.
async fn arrive(page: Page) -> (Stage, Browser) {
    let stage = Stage::open().await;
    stage.page("/shop", page.html, page.csp);
    let browser = Browser::start(390, 844, false).await;
    (stage, browser)
}

fn inside(stage: &Stage) {
    stage.page("/shop", "<title>Shop</title><h1>Inside</h1>".to_owned(), "default-src 'none'");
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_follow_the_poll_and_never_rise_and_the_door_opens_by_itself() {
    let (stage, browser) = arrive(page("waiting", Some(40), None)).await;
    stage.json(STATUS, 200, status("waiting", Some(31)));
    browser.client.goto(&stage.url("/shop#seats")).await.unwrap();
    browser.until("document.title === '31 · The Sale'").await;
    assert_eq!(browser.js("document.querySelector('[data-f=ahead]').textContent").await, "30");
    assert_eq!(browser.js("document.querySelector('[data-f=wait]').textContent").await, "about 10–13 minutes");

    let before = stage.asked(STATUS).len();
    stage.json(STATUS, 200, status("waiting", Some(99)));
    stage.until_asked(STATUS, before + 3).await;
    browser.until("document.querySelector('[data-f=position]').textContent === '31'").await;

    let mut admitted = status("admitted", None);
    admitted["location"] = json!("/shop");
    inside(&stage);
    stage.json(STATUS, 200, admitted);
    browser.until("document.title === 'Shop'").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_the_back_button_brings_back_asks_at_once() {
    let (stage, browser) = arrive(page("waiting", Some(40), None)).await;
    let mut patient = status("waiting", Some(31));
    patient["next_poll_ms"] = json!(600_000);
    stage.json(STATUS, 200, patient);
    browser.client.goto(&stage.url("/shop")).await.unwrap();
    browser.until("document.title.startsWith('31 ')").await;
    inside(&stage);
    let mut admitted = status("admitted", None);
    admitted["location"] = json!("/shop");
    stage.json(STATUS, 200, admitted);
    browser.js("window.dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))").await;
    browser.until("document.title === 'Shop'").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_told_and_survived() {
    let (stage, browser) = arrive(page("waiting", Some(40), None)).await;
    stage.json(STATUS, 502, json!({ "title": "gone" }));
    browser.client.goto(&stage.url("/shop")).await.unwrap();
    browser.until("!document.getElementById('net').hidden").await;
    assert_eq!(
        browser.js("document.querySelector('[data-f=position]').textContent").await,
        "40",
        "the last known place stays"
    );
    stage.json(STATUS, 200, status("waiting", Some(7)));
    browser.until("document.getElementById('net').hidden && document.title.startsWith('7 ')").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_given_up_is_said_and_can_be_asked_for_again() {
    let (stage, browser) = arrive(page("waiting", Some(40), None)).await;
    stage.json(STATUS, 200, status("expired", None));
    browser.client.goto(&stage.url("/shop")).await.unwrap();
    browser.until("document.querySelector('[data-when=expired]').offsetParent").await;
    let asked = stage.asked(STATUS).len();
    stage.json("POST /__room/main/join", 202, status("waiting", Some(400)));
    browser.click("#join button").await;
    browser.until("document.title.startsWith('400 ')").await;
    assert_eq!(stage.asked("POST /__room/main/join").len(), 1);
    assert!(stage.asked(STATUS).len() <= asked + 1, "an expired place is not polled");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_scheduled_sale_opens_the_page_joins_by_itself() {
    let opens = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() + 2_000;
    let (stage, browser) = arrive(page("scheduled", None, u64::try_from(opens).ok())).await;
    stage.json(STATUS, 200, status("not_queued", None));
    stage.json("POST /__room/main/join", 202, status("waiting", Some(12)));
    browser.client.goto(&stage.url("/shop")).await.unwrap();
    browser.until("document.title.startsWith('12 ')").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_cookies_are_explained() {
    let (stage, browser) = arrive(page("waiting", Some(40), None)).await;
    stage.json(STATUS, 200, status("not_queued", None));
    browser.client.goto(&stage.url("/shop")).await.unwrap();
    browser.until("document.getElementById('cookies').offsetParent").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_takes_two_steps() {
    let (stage, browser) = arrive(page("waiting", Some(40), None)).await;
    stage.json(STATUS, 200, status("waiting", Some(40)));
    stage.json("POST /__room/main/leave", 204, Value::Null);
    browser.client.goto(&stage.url("/shop")).await.unwrap();
    browser.click("#leave summary").await;
    assert!(stage.asked("POST /__room/main/leave").is_empty());
    browser.click("#leave button").await;
    browser.until("document.querySelector('[data-when=left]').offsetParent").await;
    assert_eq!(stage.asked("POST /__room/main/leave").len(), 1);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_javascript_the_page_reloads_itself_until_the_shop_answers() {
    let (stage, browser) = arrive(page("waiting", Some(40), None)).await;
    browser.scripts(false).await;
    browser.client.goto(&stage.url("/shop")).await.unwrap();
    let shown = browser.client.find(fantoccini::Locator::Css("[data-f=position]")).await.unwrap();
    assert_eq!(shown.text().await.unwrap(), "40");
    inside(&stage);
    browser.client.wait().for_element(fantoccini::Locator::XPath("//h1[.='Inside']")).await.unwrap();
    browser.close().await;
}
