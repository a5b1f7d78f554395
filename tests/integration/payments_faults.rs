//! The box office against the payment sandbox at its worst: afterwards both have the same books.

use std::time::Duration;

use serde_json::json;
use stanchion::pay_sandbox::{Behaviour, Spread};

use crate::support::box_office::{Shop, ask};

fn quick() -> Behaviour {
    Behaviour { latency: Spread::of(Duration::from_millis(50)), ..Behaviour::default() }
}

/// G9, with a provider that was not written for this test: its books and ours agree.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sandbox_and_the_ledger_agree_on_the_money() {
    let (shop, sandbox) = Shop::with_sandbox(Behaviour { decline_ratio: 0.3, ..quick() }, |_| {}).await;
    for number in 1..=40 {
        let hold = shop.held(json!({ "seats": [format!("A{number}")] })).await;
        shop.order(&format!("key-{number}"), &hold).await.expect(202);
    }

    let audit = shop
        .audit_when("every order is settled and told", |audit| {
            audit.orders.pending == 0 && audit.held == 0 && u64::try_from(audit.sold) == Ok(audit.orders.confirmed)
        })
        .await;

    assert_eq!(audit.orders.confirmed + audit.orders.refused, 40);
    assert!(audit.orders.confirmed > 10 && audit.orders.refused > 0, "{audit:?}");
    let summary = ask(&sandbox.router(), "GET", "/summary", &[], "".into()).await.expect(200).body;
    assert_eq!(summary["captures"], audit.captures);
    assert_eq!(summary["captured_minor"], audit.captures * 4500);
    assert_eq!(summary["declines"], audit.orders.refused);
}
