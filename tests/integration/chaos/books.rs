//! The books after the sale: the provider's, the ledger's, the inventory's, and what every buyer was told.

use std::collections::HashMap;

use serde_json::Value;
use stanchion::box_office::audit::Audit;

use super::{
    PURCHASES,
    buyer::Purchase,
    cast::{Cast, TOTAL},
};

/// Waits until everything is settled, then compares.
pub async fn balance(cast: &Cast, purchases: &[Purchase]) {
    assert_eq!(purchases.len(), PURCHASES);
    let at_rest = |audit: &Audit| audit.orders.pending == 0 && audit.held == 0 && audit.refunds_owed == 0;
    for office in &cast.offices {
        let agrees = |audit: &Audit| at_rest(audit) && audit.sold == i64::try_from(audit.tickets_confirmed).unwrap();
        let audit = office.audit_when("everything to be settled", agrees).await;
        assert!(audit.g7_one_seat_one_buyer && audit.g8_conservation && audit.g9_money, "{audit:?}");
        assert_eq!(audit.free + audit.sold, TOTAL, "{audit:?}");
        let records = cast.records().await;
        let summary = &records["summary"];
        assert_eq!(summary["pending"], 0, "{summary}");
        assert_eq!(summary["captures"], audit.orders.confirmed + audit.refunds, "{summary} {audit:?}");
        assert_eq!(records["faults"]["forgeries_believed"], 0, "{}", records["faults"]);
        money_for_tickets(cast, &records).await;
        eprintln!("{audit:?}\n{summary} {}", records["faults"]);
    }
    told_the_truth(cast, purchases).await;
}

/// Order by order: paid once if it is confirmed, else not at all or paid back.
async fn money_for_tickets(cast: &Cast, records: &Value) {
    let paid = records["orders"].as_object().unwrap();
    let mut orders = 0;
    for row in cast.ledger("SELECT id, status, amount_minor FROM orders").await {
        let fields: Vec<&str> = row.split('|').collect();
        let [order, status, amount] = fields[..] else { panic!("{row}") };
        let of = |name: &str| paid.get(order).map_or(0, |record| record[name].as_u64().unwrap());
        let kept = of("captured_minor") - of("refunded_minor");
        assert_eq!(
            kept,
            if status == "confirmed" { amount.parse().unwrap() } else { 0 },
            "{row} {:?}",
            paid.get(order)
        );
        assert!(of("charges") <= 1 && of("captures") <= 1, "{row}: {:?}", paid.get(order));
        orders += usize::from(paid.contains_key(order));
    }
    assert_eq!(orders, paid.len(), "the provider knows no order that the ledger does not");
    let twice = "SELECT i.seat FROM order_items i JOIN orders o ON o.id = i.order_id WHERE o.status = 'confirmed' \
                 GROUP BY i.seat HAVING COUNT(*) > 1";
    assert!(cast.ledger(twice).await.is_empty(), "seats sold twice");
}

/// Whoever was told of an outcome has it, and nobody has an order that he was not told of.
async fn told_the_truth(cast: &Cast, purchases: &[Purchase]) {
    let ledger: HashMap<String, String> = cast
        .ledger("SELECT id, status FROM orders")
        .await
        .into_iter()
        .map(|row| row.split_once('|').map(|(order, status)| (order.to_owned(), status.to_owned())).unwrap())
        .collect();
    for Purchase { order, status, seats } in purchases {
        let recorded = &ledger[order];
        // A late payment may still make a ticket of it; a ticket stays one.
        assert!(recorded == status || status != "confirmed", "{order} for {seats:?}: told {status}, it is {recorded}");
    }
    assert_eq!(ledger.len(), purchases.len(), "as many orders as were accepted");
    let confirmed = purchases.iter().filter(|purchase| purchase.status == "confirmed").count();
    assert!(confirmed > PURCHASES / 2, "{confirmed} of {PURCHASES} bought something");
}
