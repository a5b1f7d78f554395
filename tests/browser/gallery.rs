//! Every page at the width of a small phone, a phone, a desktop and a desktop zoomed to 400 %, for a person to look at; and
//! what a machine can see of it: nothing sticks out, nothing is too small to touch, axe-core has nothing to say.

use serde_json::json;
use stanchion::{
    box_office::{
        pages::{PageHtml, event_page, hold_page, order_page, problem_page},
        views::{CountView, EventView, HoldView, OrderStatus, OrderView, SeatState, SeatView, SeatsView},
    },
    pages::{ErrorPage, Page, WaitingPage},
};

use crate::{axe, stage::Stage, support::Browser};

/// Each width in one scheme: what differs between schemes is colour, which every page has from the same few names. The
/// stories have both at every step.
const VIEWS: [(&str, u32, u32, bool); 4] = [
    ("zoomed-dark", 320, 200, true),
    ("narrow-light", 320, 640, false),
    ("phone-dark", 390, 844, true),
    ("desktop-light", 1280, 800, false),
];

pub fn waiting(state: &str, position: Option<u64>) -> Page {
    let eta = position.map(|_| json!({ "low": 600, "high": 780 }));
    let line = position.map(|at| at + 47_017);
    let opens_at_ms = (state == "scheduled").then_some(4_102_444_800_000);
    let message =
        (state == "waiting").then_some("Doors open at seven.\nPlease have your card ready: payment takes two minutes.");
    let status = json!({
        "room": "main", "state": state, "position": position, "ahead": position.map(|at| at - 1), "line": line,
        "eta_seconds": eta, "admitted_per_minute": 412.0, "opens_at": null, "next_poll_ms": 60_000, "message": message,
        "location": null,
    });
    WaitingPage {
        title: "Midsummer Night at the Old Harbour",
        room: "main",
        prefix: "/__room",
        state,
        position,
        ahead: position.map(|at| at - 1),
        line,
        eta: position.map(|_| (600, 780)),
        message,
        refresh_seconds: 20,
        to: "/events/demo",
        status_json: &status.to_string(),
        not_submitted: false,
        opens_at_ms,
    }
    .render()
}

/// 20 rows of 40 seats, every seventh sold and every eleventh held.
pub fn event() -> EventView {
    let map: Vec<SeatView> = (0..800_u32)
        .map(|at| SeatView {
            seat: format!("{}{}", char::from(b'A' + u8::try_from(at / 40).unwrap()), at % 40 + 1),
            state: match at {
                at if at % 7 == 0 => SeatState::Sold,
                at if at % 11 == 0 => SeatState::Held,
                _ => SeatState::Free,
            },
        })
        .collect();
    let free = u32::try_from(map.iter().filter(|seat| seat.state == SeatState::Free).count()).unwrap();
    EventView {
        id: "demo".to_owned(),
        name: "Midsummer Night at the Old Harbour".to_owned(),
        on_sale: true,
        currency: "EUR".to_owned(),
        price_minor: 4_500,
        per_hold_limit: 6,
        seats: SeatsView { total: 800, free, map },
        general_admission: CountView { total: 0, free: 0 },
    }
}

pub fn order(status: OrderStatus) -> OrderView {
    OrderView {
        order: "o_4fVJ0mBqT1y3bQ9kR7xZpA".to_owned(),
        event: "demo".to_owned(),
        status,
        seats: vec!["C18".to_owned(), "C19".to_owned()],
        quantity: 2,
        amount_minor: 9_000,
        currency: "EUR".to_owned(),
    }
}

fn hold() -> HoldView {
    HoldView {
        hold: "h_0123456789abcdef0123456789abcdef".to_owned(),
        event: "demo".to_owned(),
        seats: vec!["C18".to_owned(), "C19".to_owned()],
        quantity: 2,
        amount_minor: 9_000,
        expires_at: "2030-01-01T20:15:03.123Z".to_owned(),
        expires_in_seconds: 597,
    }
}

fn not_submitted() -> Page {
    WaitingPage {
        title: "Midsummer Night at the Old Harbour",
        room: "main",
        prefix: "/__room",
        state: "waiting",
        position: Some(81),
        ahead: Some(80),
        line: Some(100),
        eta: None,
        message: None,
        refresh_seconds: 20,
        to: "/",
        status_json: "",
        not_submitted: true,
        opens_at_ms: None,
    }
    .render()
}

fn broken() -> Page {
    ErrorPage {
        status: 502,
        title: "The shop did not answer",
        explanation: "You are in, but the shop behind this door gave no answer in time.",
        what_to_do: "Wait a moment and load this page again. You keep your access meanwhile.",
        request_id: "01JX4Y7Q2M",
    }
    .render()
}

fn rooms() -> Vec<(&'static str, Page)> {
    vec![
        ("waiting", waiting("waiting", Some(4_213))),
        ("waiting-far", waiting("waiting", Some(1_048_576))),
        ("waiting-next", waiting("waiting", Some(1))),
        ("paused", waiting("paused", Some(318))),
        ("scheduled", waiting("scheduled", None)),
        ("prequeue", waiting("prequeue", None)),
        ("sold-out", waiting("sold_out", None)),
        ("closed", waiting("closed", None)),
        ("expired", waiting("expired", None)),
        ("not-queued", waiting("not_queued", None)),
        ("not-submitted", not_submitted()),
        ("error", broken()),
    ]
}

fn shops() -> Vec<(&'static str, PageHtml)> {
    let mut general = event();
    general.seats = SeatsView { total: 0, free: 0, map: vec![] };
    general.general_admission = CountView { total: 200, free: 17 };
    let mut sold_out = event();
    sold_out.on_sale = false;
    sold_out.seats.free = 0;
    sold_out.seats.map.iter_mut().for_each(|seat| seat.state = SeatState::Sold);
    vec![
        ("event", event_page(&event())),
        ("event-sold-out", event_page(&sold_out)),
        ("event-general", event_page(&general)),
        ("hold", hold_page(&hold(), "The Stanchions, live", "EUR")),
        ("order-pending", order_page(&order(OrderStatus::Pending), "The Stanchions, live")),
        ("order-confirmed", order_page(&order(OrderStatus::Confirmed), "The Stanchions, live")),
        ("order-refused", order_page(&order(OrderStatus::Refused), "The Stanchions, live")),
        ("order-expired", order_page(&order(OrderStatus::Expired), "The Stanchions, live")),
        ("order-refunded", order_page(&order(OrderStatus::Refunded), "The Stanchions, live")),
        ("problem", problem_page(404, "There is no such order", "Check the address for missing letters.", Some("/"))),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_fits_every_screen() {
    let stage = Stage::open().await;
    let browser = Browser::start(390, 844, false).await;
    let rooms = rooms().into_iter().map(|(name, page)| (name, page.html, page.csp));
    let shops = shops().into_iter().map(|(name, page)| (name, page.html, page.csp.to_owned()));
    for (name, html, csp) in rooms.chain(shops) {
        stage.page("/gallery", html, csp);
        for (view, width, height, dark) in VIEWS {
            browser.view(width, height, dark).await;
            browser.client.goto(&stage.url("/gallery")).await.unwrap();
            browser.screenshot(&format!("{name}-{view}")).await;
            fits(&browser, &format!("{name} at {view}")).await;
            if ["zoomed-dark", "desktop-light"].contains(&view) {
                let wrong = axe::violations(&browser).await;
                assert!(wrong.is_empty(), "{name} at {view}: {wrong:#?}");
            }
        }
    }
    browser.close().await;
}

/// What a machine can see of good looks.
async fn fits(browser: &Browser, what: &str) {
    let wide = browser.js("document.scrollingElement.scrollWidth - document.documentElement.clientWidth").await;
    assert_eq!(wide, 0, "{what} scrolls sideways");
    let small = "[...document.querySelectorAll('button, a, summary')] \
        .filter((part) => part.offsetParent && (part.offsetWidth < 24 || part.offsetHeight < 24)).length";
    assert_eq!(browser.js(small).await, 0, "{what} has targets below 24 pixels");
    let styled = "getComputedStyle(document.querySelector('main')).maxWidth !== 'none'";
    assert_eq!(browser.js(styled).await, true, "{what} came without its style");
}
