//! The box office's own way with seats: one script that sets the seat's key if nobody has it, and a second that sells.

use std::time::Duration;

use futures_util::future::BoxFuture;

use super::{
    Outcome, RaceError, Sell,
    plan::{Buyer, Wish},
    shop::Shop,
};
use crate::box_office::inventory::Held;

/// How long a seat is held for its buyer.
pub const HOLD: Duration = Duration::from_mins(2);

pub struct SetNx(pub Shop);

impl Sell for SetNx {
    fn attempt(&self, buyer: Buyer) -> BoxFuture<'_, Result<Outcome, RaceError>> {
        Box::pin(async move {
            // A buyer whom any seat would suit is refused only when the near one is gone, and every seat is near to
            // somebody: as many are sold as if each had tried them all.
            let (Wish::Seat(seat) | Wish::Any { near: seat }) = buyer.wish;
            let tickets = self.0.seat(seat);
            match self.0.inventory.hold(&Shop::hold_of(buyer.number), &tickets, HOLD).await? {
                Held::Until { .. } => self.0.sell(buyer, &tickets).await,
                _ => Ok(Outcome::Conflict),
            }
        })
    }
}
