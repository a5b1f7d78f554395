//! Buying: choose, hold, pay, and everything that goes wrong on the way.

use fantoccini::key::Key;
use serde_json::{Value, json};
use stanchion::box_office::{
    pages::order_page,
    views::{OrderStatus, SeatState},
};

use crate::{
    gallery::{event, order},
    stage::Stage,
    support::Browser,
};

const HOLDS: &str = "POST /events/demo/holds";
const ORDER: &str = "/orders/o_4fVJ0mBqT1y3bQ9kR7xZpA";

async fn arrive() -> (Stage, Browser) {
    let stage = Stage::open().await;
    stage.event(&event());
    let browser = Browser::start(390, 844, false).await;
    browser.client.goto(&stage.url("/events/demo")).await.unwrap();
    browser.until("document.querySelector('#map button[tabindex=\"0\"]')").await;
    (stage, browser)
}

fn hold(seats: &[&str], seconds: u64) -> Value {
    json!({
        "hold": "h_1", "event": "demo", "seats": seats, "quantity": seats.len(), "amount_minor": 4_500 * seats.len(),
        "expires_at": "2030-01-01T00:00:00Z", "expires_in_seconds": seconds,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_chooses_holds_reloads_pays_and_has_tickets() {
    let (stage, browser) = arrive().await;
    let free = event().seats.free;
    browser.click("[value=C17]").await;
    browser.click("[value=C18]").await;
    assert_eq!(browser.js("document.getElementById('total').textContent").await, "€90.00");
    assert_eq!(browser.js("document.getElementById('free').textContent").await, free.to_string());
    assert_eq!(browser.js("document.querySelector('[value=C18]').ariaLabel").await, "Row C, seat 18, yours");
    browser.screenshot("flow-1-chosen").await;

    stage.json(HOLDS, 201, hold(&["C17", "C18"], 600));
    browser.click("#hold").await;
    browser.until("document.getElementById('pay').offsetParent").await;
    assert_eq!(stage.asked(HOLDS)[0].0, r#"{"seats":["C17","C18"]}"#);
    assert_eq!(browser.js("document.getElementById('free').textContent").await, (free - 2).to_string());
    browser.screenshot("flow-2-held").await;

    browser.client.refresh().await.unwrap();
    browser.until("document.getElementById('pay').offsetParent && /^(10:00|9:5\\d)$/.test(document.getElementById('left').textContent)").await;
    assert_eq!(browser.js("document.getElementById('pay').textContent").await, "Pay €90.00 now");

    // The first answer gets lost; the second try must be the same order.
    stage.json("POST /orders", 503, json!({ "title": "busy" }));
    let page = order_page(&order(OrderStatus::Pending), "The Stanchions, live");
    stage.page(ORDER, page.html, page.csp);
    browser.click("#pay").await;
    browser.until("document.getElementById('pay').textContent === 'Still trying…'").await;
    stage.json("POST /orders", 202, serde_json::to_value(order(OrderStatus::Pending)).unwrap());
    stage.json(&format!("GET {ORDER}"), 200, serde_json::to_value(order(OrderStatus::Pending)).unwrap());
    browser.until("document.getElementById('order')").await;
    browser.screenshot("flow-3-pending").await;
    let keys: Vec<_> =
        stage.asked("POST /orders").into_iter().map(|(_, head)| head["idempotency-key"].clone()).collect();
    assert!(keys.len() >= 2 && keys.iter().all(|key| key == keys[0]), "{keys:?}");

    stage.json(&format!("GET {ORDER}"), 200, serde_json::to_value(order(OrderStatus::Confirmed)).unwrap());
    browser.until("document.querySelector('.ticket').offsetParent").await;
    assert_eq!(browser.js("document.querySelectorAll('.ticket').length").await, 2);
    assert_eq!(
        browser.js("document.querySelector('.ticket .name').textContent").await,
        "Midsummer Night at the Old Harbour"
    );
    browser.screenshot("flow-4-confirmed").await;
    browser.cdp("Emulation.setEmulatedMedia", json!({ "media": "print" })).await;
    assert_eq!(
        browser.js("document.getElementById('print').offsetParent").await,
        Value::Null,
        "buttons are not printed"
    );
    browser.screenshot("flow-5-printed").await;
    assert_eq!(browser.js("sessionStorage.getItem('stanchion-hold-demo')").await, Value::Null);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seat_lost_to_someone_else_is_named_and_the_rest_stays_chosen() {
    let (stage, browser) = arrive().await;
    browser.click("[value=C17]").await;
    browser.click("[value=C18]").await;
    stage.json(HOLDS, 409, json!({ "title": "Taken", "taken": ["C18"] }));
    let mut later = event();
    later.seats.map.iter_mut().find(|seat| seat.seat == "C18").unwrap().state = SeatState::Held;
    stage.event(&later);
    browser.click("#hold").await;
    browser.until("document.getElementById('note').textContent.startsWith('C18 was just taken')").await;
    browser.screenshot("flow-lost-seat").await;
    assert_eq!(browser.js("document.getElementById('chosen').textContent").await, "C17");
    assert_eq!(browser.js("document.querySelector('[value=C18]').ariaLabel").await, "Row C, seat 18, held");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_map_is_walked_with_the_keyboard_and_follows_the_sale() {
    let (stage, browser) = arrive().await;
    browser.js("document.querySelector('[value=B18]').click()").await;
    browser.js("document.querySelector('[value=B18]').focus()").await;
    let keys = Key::Right + &Key::Down.to_string();
    browser.client.active_element().await.unwrap().send_keys(&keys).await.unwrap();
    assert_eq!(browser.js("document.activeElement.value").await, "C19");
    assert_eq!(browser.js("document.activeElement.dataset.s").await, "sold", "the keyboard reaches every seat");
    assert_eq!(browser.js("document.querySelectorAll('#map [tabindex=\"0\"]').length").await, 1);

    let mut later = event();
    later.seats.map.iter_mut().find(|seat| seat.seat == "B18").unwrap().state = SeatState::Sold;
    stage.event(&later);
    browser.until("document.getElementById('note').textContent.startsWith('B18 was just taken')").await;
    assert_eq!(browser.js("document.getElementById('hold').disabled").await, true);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_box_office_picks_the_best_seats() {
    let (stage, browser) = arrive().await;
    stage.json(HOLDS, 409, json!({ "title": "Conflict", "free": 1 }));
    browser.click("#best").await;
    browser.until("document.getElementById('note').textContent === 'Only 1 seat free right now.'").await;
    assert_eq!(stage.asked(HOLDS)[0].0, r#"{"best_available":{"quantity":2}}"#);

    browser.click("#many [data-by='1']").await;
    stage.json(HOLDS, 201, hold(&["A20", "A21", "B4"], 600));
    browser.click("#best").await;
    browser.until("document.getElementById('pay').offsetParent").await;
    assert_eq!(stage.asked(HOLDS)[1].0, r#"{"best_available":{"quantity":3}}"#);
    assert_eq!(
        browser.js("[...document.querySelectorAll('#held-seats li')].map((seat) => seat.textContent).join('; ')").await,
        "Row A, seat 20; Row A, seat 21; Row B, seat 4"
    );
    let note = "document.getElementById('note').textContent.startsWith('No 3 seats were free side by side')";
    assert_eq!(browser.js(note).await, true);
    assert_eq!(crate::axe::violations(&browser).await, Vec::<String>::new());
    browser.screenshots("flow-best-apart").await;
    browser.close().await;
}

/// The clock ticks in silence; a reader is told at a few moments, once each.
#[tokio::test(flavor = "multi_thread")]
async fn the_countdown_is_spoken_at_milestones_only() {
    let (stage, browser) = arrive().await;
    browser.click("[value=C17]").await;
    stage.json(HOLDS, 201, hold(&["C17"], 62));
    browser
        .js("(window.said = [], new MutationObserver(() => said.push(document.getElementById('live').textContent)) \
        .observe(document.getElementById('live'), { childList: true, characterData: true, subtree: true }))")
        .await;
    browser.click("#hold").await;
    browser.until("document.getElementById('pay').offsetParent").await;
    assert_eq!(browser.js("document.getElementById('left').getAttribute('aria-live')").await, "off");
    browser.until("/^0:5[0-7]$/.test(document.getElementById('left').textContent)").await;
    assert_eq!(browser.js("said.join('|')").await, "One minute left.");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_runs_out_is_said() {
    let (stage, browser) = arrive().await;
    browser.click("[value=C17]").await;
    stage.json(HOLDS, 201, hold(&["C17"], 1));
    browser.click("#hold").await;
    browser.until("document.getElementById('note').textContent.startsWith('Your time ran out')").await;
    assert_eq!(browser.js("document.getElementById('choose').hidden").await, false);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_waiting_room_taking_over_is_explained() {
    let (stage, browser) = arrive().await;
    browser.click("[value=C17]").await;
    stage.json(HOLDS, 503, json!({ "state": "waiting", "position": 12, "next_poll_ms": 5000 }));
    browser.click("#hold").await;
    browser.until("document.getElementById('away').offsetParent").await;
    browser.screenshot("flow-away").await;
    assert_eq!(browser.js("document.querySelector('#away a').getAttribute('href')").await, "/");
    browser.close().await;
}
