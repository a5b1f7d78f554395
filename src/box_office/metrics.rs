//! The audit as Prometheus text (exposition format 0.0.4): a few gauges and counters, read anew each time.

use std::fmt::Write as _;

use super::audit::Audit;

/// `Content-Type` of [`text`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

struct Metric<'a> {
    name: &'a str,
    kind: &'a str,
    help: &'a str,
    /// Each with its label's value.
    values: Vec<(&'a str, i128)>,
    label: &'a str,
}

/// Every number of the audit.
pub fn text(audit: &Audit) -> String {
    let (orders, told) = (&audit.orders, &audit.reconciler);
    let words = |name, kind, label, help, values| Metric { name, kind, help, values, label };
    let one = |name, kind, help, value: i128| Metric { name, kind, help, values: vec![("", value)], label: "" };
    let metrics = [
        words(
            "stanchion_tickets",
            "gauge",
            "state",
            "Tickets in the inventory.",
            vec![("free", audit.free.into()), ("held", audit.held.into()), ("sold", audit.sold.into())],
        ),
        words(
            "stanchion_orders",
            "gauge",
            "status",
            "Orders in the ledger.",
            vec![
                ("pending", orders.pending.into()),
                ("confirmed", orders.confirmed.into()),
                ("refused", orders.refused.into()),
                ("expired", orders.expired.into()),
                ("refunded", orders.refunded.into()),
            ],
        ),
        one("stanchion_charges_total", "counter", "Charges that took money.", audit.captures.into()),
        one("stanchion_refunds_total", "counter", "Charges whose money was given back.", audit.refunds.into()),
        one(
            "stanchion_refunds_owed",
            "gauge",
            "Charges whose money is still to be given back.",
            audit.refunds_owed.into(),
        ),
        one(
            "stanchion_charges_mismatched",
            "gauge",
            "Charges that took another sum than ordered.",
            audit.mismatched.into(),
        ),
        one("stanchion_outbox_due", "gauge", "Calls to the provider still to be made.", audit.tasks_due.into()),
        one("stanchion_outbox_parked", "gauge", "Calls to the provider given up.", audit.tasks_parked.into()),
        one("stanchion_inventory_untold", "gauge", "Orders the inventory has not heard of yet.", audit.untold.into()),
        words(
            "stanchion_guarantee_holds",
            "gauge",
            "guarantee",
            "Whether a guarantee holds, 1 or 0.",
            vec![
                ("g7_one_seat_one_buyer", audit.g7_one_seat_one_buyer.into()),
                ("g8_conservation", audit.g8_conservation.into()),
                ("g9_money", audit.g9_money.into()),
            ],
        ),
        one("stanchion_reconciler_has_lease", "gauge", "Whether this node compares, 1 or 0.", told.has_lease.into()),
        one("stanchion_reconciler_runs_total", "counter", "Comparisons this node made.", told.runs.into()),
        one(
            "stanchion_reconciler_last_run_timestamp_seconds",
            "gauge",
            "When this node's last comparison ended; 0 for never.",
            told.last_run_seconds().into(),
        ),
        words(
            "stanchion_reconciler_repairs_total",
            "counter",
            "kind",
            "What this node mended.",
            vec![
                ("freed", told.freed.into()),
                ("put_back", told.put_back.into()),
                ("counters", told.counters_corrected.into()),
            ],
        ),
        one(
            "stanchion_reconciler_unresolved",
            "gauge",
            "Findings that this node's last comparison could not mend, 20 at most.",
            i128::try_from(told.unresolved.len()).unwrap_or(i128::MAX),
        ),
    ];
    let mut text = String::new();
    for Metric { name, kind, help, values, label } in metrics {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (word, value) in values {
            // An event's identifier needs no escaping: a-z, 0-9 and '-'.
            let more = if label.is_empty() { String::new() } else { format!(",{label}=\"{word}\"") };
            let _ = writeln!(text, "{name}{{event=\"{}\"{more}}} {value}", audit.event);
        }
    }
    text
}
