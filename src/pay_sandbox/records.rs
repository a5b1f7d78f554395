//! What the provider keeps: charges, refunds, events, and the journal's lines about them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a caller asks to be charged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChargeRequest {
    pub(super) order: String,
    pub(super) amount_minor: u64,
    pub(super) currency: String,
}

/// What a caller asks to be paid back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RefundRequest {
    pub(super) charge: String,
    pub(super) amount_minor: u64,
}

/// What becomes of a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Captured,
    Declined,
}

/// How far a charge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Pending,
    Captured,
    Declined,
}

/// A charge as callers see it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Charge {
    #[serde(rename = "charge")]
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) request: ChargeRequest,
    pub(super) status: Status,
    pub(super) refunded_minor: u64,
    /// When it is decided (Unix ms), and how.
    #[serde(skip)]
    pub(super) due_ms: u64,
    #[serde(skip)]
    pub(super) outcome: Outcome,
}

/// A refund as callers see it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Refund {
    #[serde(rename = "refund")]
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) request: RefundRequest,
    pub(super) order: String,
    pub(super) currency: String,
    pub(super) status: &'static str,
}

/// A webhook's body.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Event {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) charge: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refund: Option<String>,
    pub(super) order: String,
    pub(super) amount_minor: u64,
    pub(super) currency: String,
    /// Unix seconds.
    pub(super) created: u64,
}

impl Event {
    /// The exact bytes that are signed and sent.
    #[expect(clippy::expect_used, reason = "strings and whole numbers always have a JSON form")]
    pub(super) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain JSON")
    }
}

/// Everything that ever happened, counted.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Summary {
    pub(super) pending: u64,
    pub(super) captures: u64,
    pub(super) captured_minor: u64,
    pub(super) declines: u64,
    pub(super) refunds: u64,
    pub(super) refunded_minor: u64,
}

/// What became of one order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct OrderRecord {
    pub(super) charges: u64,
    pub(super) captures: u64,
    pub(super) captured_minor: u64,
    pub(super) refunded_minor: u64,
}

/// Everything that ever happened, order by order.
#[derive(Debug, Clone)]
pub(super) struct Records {
    pub(super) summary: Summary,
    /// By the order's name.
    pub(super) orders: BTreeMap<String, OrderRecord>,
    /// Events that are still to be sent.
    pub(super) unacknowledged: usize,
}

/// One line of the journal. The book is what all lines together say.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(super) enum Entry {
    /// A charge was made under an idempotency key.
    Charge {
        id: String,
        key: String,
        request: ChargeRequest,
        /// When it is decided, Unix milliseconds, and how.
        due_ms: u64,
        outcome: Outcome,
    },
    /// A charge was decided.
    Settlement { charge: String, event: String, created: u64 },
    /// Money went back, under an idempotency key.
    Refund { id: String, key: String, request: RefundRequest, event: String, created: u64 },
    /// A webhook was acknowledged.
    Delivery { event: String },
}

/// A new identifier: the prefix and 128 random bits.
pub(super) fn new_id(prefix: &str) -> String {
    format!("{prefix}_{:032x}", rand::random::<u128>())
}
