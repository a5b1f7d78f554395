//! The box office's own way with general admission: one script that lowers a counter if enough is left, and a second
//! that sells.

use futures_util::future::BoxFuture;

use super::{Outcome, RaceError, Sell, plan::Buyer, set_nx::HOLD, shop::Shop};
use crate::box_office::inventory::{Held, Tickets};

pub struct LuaDecrement(pub Shop);

impl Sell for LuaDecrement {
    fn attempt(&self, buyer: Buyer) -> BoxFuture<'_, Result<Outcome, RaceError>> {
        Box::pin(async move {
            let one = Tickets { seats: Vec::new(), quantity: 1 };
            match self.0.inventory.hold(&Shop::hold_of(buyer.number), &one, HOLD).await? {
                Held::Until { .. } => self.0.sell(buyer, &one).await,
                _ => Ok(Outcome::Conflict),
            }
        })
    }
}
