//! Numbers and words as the database holds them.

use super::LedgerError;
use crate::box_office::views::OrderStatus;

/// Saturates; no amount or time of ours comes near.
pub fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub fn unsigned(value: i64) -> Result<u64, LedgerError> {
    u64::try_from(value).map_err(|_| LedgerError::Unreadable("number"))
}

pub fn status_word(status: OrderStatus) -> &'static str {
    match status {
        OrderStatus::Pending => "pending",
        OrderStatus::Confirmed => "confirmed",
        OrderStatus::Refused => "refused",
        OrderStatus::Expired => "expired",
        OrderStatus::Refunded => "refunded",
    }
}

pub fn status(word: &str) -> Result<OrderStatus, LedgerError> {
    Ok(match word {
        "pending" => OrderStatus::Pending,
        "confirmed" => OrderStatus::Confirmed,
        "refused" => OrderStatus::Refused,
        "expired" => OrderStatus::Expired,
        "refunded" => OrderStatus::Refunded,
        _ => return Err(LedgerError::Unreadable("order status")),
    })
}
