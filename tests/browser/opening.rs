//! Doors that open and close by themselves, on the real program: the opening, the last seat, a browser without scripts.

use fantoccini::Locator;

use crate::{house::House, support::Browser};

/// On the event's page, with its script at work.
const INSIDE: &str = "document.querySelector('#map [tabindex=\"0\"]')";
const SOLD: &str = "document.body.innerText.includes('Everything is sold')";

#[tokio::test(flavor = "multi_thread")]
async fn the_countdown_lets_one_in_and_puts_the_other_in_line_and_the_last_seat_ends_it() {
    let (phone, desktop) = tokio::join!(Browser::start(390, 844, false), Browser::start(1280, 900, false));
    let house = House::open(&["--seats", "2", "--opens-in", "8s", "--capacity", "1", "--rate", "20"]);
    for (screen, browser) in [("phone", &phone), ("desktop", &desktop)] {
        browser.client.goto(&house.url("/")).await.unwrap();
        browser.until("/^00:0\\d$/.test(document.querySelector('[data-f=countdown]').textContent)").await;
        assert_eq!(browser.js("document.querySelector('#place').offsetParent").await, serde_json::Value::Null);
        browser.screenshots(&format!("opening-1-countdown-{screen}")).await;
    }

    // Nobody touches either.
    let first = async |inside: &Browser| inside.until(&format!("{INSIDE} || document.title.startsWith('1 ·')")).await;
    tokio::join!(first(&phone), first(&desktop));
    let is_phone_inside = phone.js(&format!("!!{INSIDE}")).await == true;
    let (inside, waiting) = if is_phone_inside { (&phone, &desktop) } else { (&desktop, &phone) };
    assert_eq!(waiting.js("document.title").await, "1 · The Stanchions, live");
    assert_eq!(inside.js(&format!("!!{INSIDE}")).await, true, "one may be inside");
    waiting.screenshot("opening-2-in-line").await;

    // The last seats: bought by one, and known to the other without a touch.
    inside.click("#best").await;
    inside.until("document.getElementById('pay').offsetParent").await;
    inside.click("#pay").await;
    inside
        .until("document.querySelectorAll('.ticket').length === 2 && document.querySelector('.ticket').offsetParent")
        .await;
    waiting.until(SOLD).await;
    waiting.screenshots("opening-3-let-in-too-late").await;
    assert_eq!(house.audit().await["sold"], 2);
    // Whoever comes from now on is told at the door.
    inside.client.goto(&house.url("/")).await.unwrap();
    inside.until("document.querySelector('#room[data-state=sold_out] h1')").await;
    inside.until(SOLD).await;
    inside.screenshots("opening-4-at-the-door").await;
    phone.close().await;
    desktop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_is_told_when_everything_is_sold() {
    let mut house = House::open(&["--seats", "2", "--opens-in", "0s", "--capacity", "2", "--rate", "20"]);
    let (buyer, onlooker) = (house.comes().await, house.comes().await);
    let browser = Browser::start(390, 844, false).await;
    browser.client.goto(&house.url("/")).await.unwrap();
    browser.until("document.title.startsWith('1 ·')").await;
    house.buys(buyer, "A1").await;
    house.buys(buyer, "A2").await;
    house.looks(onlooker).await;
    browser.until(SOLD).await;
    browser.screenshots("sold-out-while-waiting").await;
    browser.client.refresh().await.unwrap();
    browser.until(SOLD).await;
    assert_eq!(browser.js("document.title").await, "The Stanchions, live", "nobody has a place any more");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_scripts_the_page_asks_by_itself_and_lets_in() {
    let mut house = House::open(&["--seats", "20", "--opens-in", "0s", "--capacity", "1", "--rate", "20"]);
    let other = house.comes().await;
    let browser = Browser::start(390, 844, false).await;
    browser.scripts(false).await;
    browser.client.goto(&house.url("/")).await.unwrap();
    let visitor = browser.visitor().await;
    let shown = browser.client.wait().for_element(Locator::XPath("//*[@data-f='position'][.='1']")).await.unwrap();
    assert_eq!(shown.text().await.unwrap(), "1");
    browser.screenshots("no-scripts-1-waiting").await;
    assert_eq!(browser.visitor().await, visitor);
    house.leaves(other).await;
    browser.client.wait().for_element(Locator::Css("#map")).await.unwrap();
    browser.screenshots("no-scripts-2-inside").await;
    browser.close().await;
}
