//! The main job in a real browser on the real program: wait in a crowd, be let in, choose, pay, hold a ticket.

use fantoccini::Locator;

use crate::{house::House, support::Browser};

const ORDER: &str = "location.pathname.startsWith('/orders/o_')";

/// What the buyer reads: `textContent` of one element.
async fn text(browser: &Browser, selector: &str) -> String {
    browser.js(&format!("document.querySelector('{selector}').textContent")).await.as_str().unwrap().to_owned()
}

fn heading(words: &str) -> String {
    format!("[...document.querySelectorAll('h1')].some((h1) => h1.offsetParent && h1.textContent === '{words}')")
}

#[tokio::test(flavor = "multi_thread")]
async fn from_the_crowd_to_the_ticket_on_a_phone() {
    from_the_crowd_to_the_ticket("phone", 390, 844).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_the_crowd_to_the_ticket_on_a_desktop() {
    from_the_crowd_to_the_ticket("desktop", 1280, 900).await;
}

async fn from_the_crowd_to_the_ticket(screen: &str, width: u32, height: u32) {
    let mut house = House::open(&["--seats", "120", "--opens-in", "0s", "--capacity", "2", "--rate", "20"]);
    for visitor in 0..5 {
        house.comes().await;
        assert_eq!(house.is_inside(visitor), visitor < 2, "two may be inside");
    }
    let browser = Browser::start(width, height, false).await;
    let picture = async |step: &str| browser.screenshots(&format!("sale-{step}-{screen}")).await;

    waits_behind_three(&browser, &house).await;
    keeps_one_place(&browser, &house).await;
    picture("1-waiting").await;
    for (leaver, next, left) in [(0, 2, 3), (1, 3, 2), (2, 4, 1)] {
        house.leaves(leaver).await;
        house.enters(next).await;
        browser.until(&format!("document.title.startsWith('{left} ·')")).await;
    }
    browser.until("/minute/.test(document.querySelector('[data-f=wait]').textContent)").await;
    picture("2-next").await;

    house.leaves(3).await;
    browser.until("document.getElementById('map')").await;
    assert_eq!(browser.js("location.pathname").await, "/events/demo");
    picture("3-inside").await;
    let before = house.audit().await;
    let order = buys_one_seat(&browser, &picture).await;
    let after = house.audit().await;
    assert_eq!(after["sold"].as_u64().unwrap(), before["sold"].as_u64().unwrap() + 1, "{after}");
    assert_eq!((&after["captures"], &after["held"]), (&after["orders"]["confirmed"], &0.into()), "{after}");
    for guarantee in ["g7_one_seat_one_buyer", "g8_conservation", "g9_money"] {
        assert_eq!(after[guarantee], true, "{after}");
    }
    comes_again(&browser, &mut house, &order, &picture).await;
    browser.close().await;
}

async fn waits_behind_three(browser: &Browser, house: &House) {
    browser.client.goto(&house.url("/")).await.unwrap();
    browser.until(&heading("You are in line")).await;
    browser.until("document.title === '4 · The Stanchions, live'").await;
    assert_eq!(text(browser, "[data-f=position]").await, "4");
    assert_eq!(text(browser, "[data-f=ahead]").await, "3");
    assert_eq!(text(browser, "[data-f=line]").await, "4");
}

/// Reloads and tabs gain nothing and cost nothing (G4).
async fn keeps_one_place(browser: &Browser, house: &House) {
    let visitor = browser.visitor().await;
    for _ in 0..20 {
        browser.client.refresh().await.unwrap();
    }
    let first = browser.client.window().await.unwrap();
    let second = browser.client.new_window(true).await.unwrap().handle;
    browser.client.switch_to_window(second).await.unwrap();
    browser.client.goto(&house.url("/events/demo")).await.unwrap();
    browser.until("document.title.startsWith('4 ·')").await;
    assert_eq!(text(browser, "[data-f=line]").await, "4");
    browser.client.close_window().await.unwrap();
    browser.client.switch_to_window(first).await.unwrap();
    browser.until("document.title.startsWith('4 ·')").await;
    assert_eq!(browser.visitor().await, visitor);
}

/// From the map to the ticket; gives back the order's address.
async fn buys_one_seat(browser: &Browser, picture: &impl AsyncFn(&str)) -> String {
    browser.until("document.querySelector('#map [value=B20]').ariaLabel === 'Row B, seat 20, free'").await;
    browser.click("#map [value=B20]").await;
    assert_eq!(text(browser, "#chosen").await, "B20");
    picture("4-chosen").await;
    browser.click("#hold").await;
    browser.until("/^(2:00|1:\\d\\d)$/.test(document.getElementById('left').textContent)").await;
    assert_eq!(text(browser, "#held-seats").await, "Row B, seat 20");
    assert_eq!(text(browser, "#pay").await, "Pay €45.00 now");
    picture("5-held").await;
    let left = text(browser, "#left").await;
    browser.until(&format!("document.getElementById('left').textContent < '{left}'")).await;

    browser.click("#pay").await;
    let steps = "document.querySelector('.steps [aria-current]')?.offsetParent";
    browser.until(&format!("{ORDER} && {steps} && {}", heading("Processing your payment"))).await;
    browser.screenshot(&format!("sale-6-processing-{}", browser.js("innerWidth").await)).await;
    browser.until(&heading("Your ticket is here")).await;
    assert_eq!(text(browser, ".ticket dl").await, "RowBSeat20");
    picture("7-ticket").await;
    browser.js("location.pathname").await.as_str().unwrap().to_owned()
}

/// Who holds a ticket keeps it at hand, and waits like anybody for another.
async fn comes_again(browser: &Browser, house: &mut House, order: &str, picture: &impl AsyncFn(&str)) {
    // The buyer has freed their slot.
    let newcomer = house.comes().await;
    house.enters(newcomer).await;

    browser.client.refresh().await.unwrap();
    browser.until(&heading("Your ticket is here")).await;
    browser.client.goto(&house.url("/")).await.unwrap();
    browser.until("document.title.startsWith('1 ·')").await;
    picture("8-again").await;

    browser.client.goto(&house.url(order)).await.unwrap();
    browser.until(&heading("Your ticket is here")).await;
    browser.client.back().await.unwrap();
    browser.until("document.title.startsWith('1 ·')").await;
    // Let in while they look at their ticket, they go in when they come back.
    browser.client.forward().await.unwrap();
    browser.until(&heading("Your ticket is here")).await;
    house.leaves(newcomer).await;
    browser.client.back().await.unwrap();
    browser.until("document.querySelector('#map [data-s=sold][value=B20]')").await;
}

/// Forms do it all where there are no scripts: the best seats, back again, and bought.
#[tokio::test(flavor = "multi_thread")]
async fn without_scripts_the_best_seats_are_held_given_back_and_bought() {
    let house = House::open(&["--seats", "120", "--opens-in", "0s", "--capacity", "2", "--rate", "20"]);
    let browser = Browser::start(390, 844, false).await;
    browser.scripts(false).await;
    browser.client.goto(&house.url("/events/demo")).await.unwrap();
    let shows = async |css: &str| browser.client.wait().for_element(Locator::Css(css)).await.unwrap();
    let choose = async || {
        shows(".plain select").await.select_by_label("3").await.unwrap();
        browser.screenshots("no-scripts-3-choosing").await;
        shows(".plain [value=best]").await.click().await.unwrap();
        shows("form[action^='/holds/h_']").await;
    };
    choose().await;
    assert!(browser.client.current_url().await.unwrap().path().starts_with("/holds/h_"));
    assert_eq!(browser.client.find_all(Locator::Css(".stubs li")).await.unwrap().len(), 3);
    browser.screenshots("no-scripts-4-held").await;
    shows("form[action^='/holds/h_'] button").await.click().await.unwrap();
    shows(".plain").await;
    assert_eq!(house.audit().await["held"], 0);

    choose().await;
    shows("form[action='/orders'] button").await.click().await.unwrap();
    // The page asks again by itself until it is paid.
    shows(".ticket[aria-label='Ticket 3 of 3']").await;
    browser.screenshots("no-scripts-5-bought").await;
    let audit = house.audit().await;
    assert_eq!((&audit["captures"], &audit["held"]), (&1.into(), &0.into()), "{audit}");
    browser.close().await;
}
