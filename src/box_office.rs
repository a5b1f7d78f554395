//! The box office: seats, holds, orders, ledger, payments. It knows nothing of the waiting room.

pub mod pages;
pub mod views;
