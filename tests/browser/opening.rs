//! Doors that open and close by themselves, on the real program: the opening, the last seat, a browser without scripts.

use fantoccini::Locator;

use crate::{house::House, support::Browser};

const INSIDE: &str = "document.getElementById('map')";

#[tokio::test(flavor = "multi_thread")]
async fn at_the_opening_the_countdown_lets_one_in_and_puts_the_other_in_line_and_later_both_see_the_end() {
    let (phone, desktop) = tokio::join!(Browser::start(390, 844, false), Browser::start(1280, 900, false));
    let mut house = House::open(&["--seats", "2", "--opens-in", "6s", "--capacity", "1", "--rate", "20"]);
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

    // A slot that frees brings the next in; both seats go to them.
    inside.client.delete_all_cookies().await.unwrap();
    phone.close().await;
    desktop.close().await;
    let _ = house.comes().await;
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
