//! The best seats that are free: chosen from a picture of the hall, held by one script, which has the last word.
//!
//! The picture may be a moment old, so the script is given many candidates, the best first, and takes the first that is
//! free. Buyers who choose at the same moment begin at different candidates. What the script says is taken is struck
//! from the picture; when the picture has no more to offer, the store is asked for a new one. Seats apart from each other
//! are given, and buyers refused, only by a picture that was made
//! after they asked.

mod choice;

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;

use self::choice::Choice;
use super::{
    inventory::{Held, InventoryError},
    office::{Office, OfficeError},
    views::{HoldView, SeatState},
};

/// How often the store is asked to hold something before the buyer is told to come again. Who fails was overtaken on
/// every one of many candidates, each time.
const TRIES: usize = 24;

/// So many seats, the box office chooses which.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BestWish {
    /// How many.
    pub quantity: u32,
    /// Side by side in one row or none at all; else side by side if there are such.
    #[serde(default)]
    pub together: bool,
    /// Only from these rows; none means any.
    pub rows: Option<Vec<String>>,
}

/// How many buyers' seats are being chosen in this process.
#[derive(Debug, Default)]
pub struct Choosing(AtomicUsize);

impl Choosing {
    fn enter(&self) -> Turn<'_> {
        Turn { others: self.0.fetch_add(1, Ordering::Relaxed), choosing: self }
    }

    fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// One of them, until dropped.
struct Turn<'a> {
    others: usize,
    choosing: &'a Choosing,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.choosing.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Which seats may be had, in the plan's order.
struct Picture {
    is_free: Vec<bool>,
    /// Made after the buyer asked.
    is_own: bool,
}

impl Office {
    /// Holds the best seats that are free, all that are wanted or nothing; under a key, what is held already under it.
    pub async fn hold_best(
        &self,
        wish: &BestWish,
        visit: Option<&str>,
        key: Option<&str>,
    ) -> Result<Result<HoldView, Held>, OfficeError> {
        let Some(hold) = self.name_hold(visit, key).await? else { return Ok(Err(Held::Over)) };
        let turn = self.choosing.enter();
        let mut picture = self.shown_picture(wish).await?;
        let mut start = turn.others;
        for tried in 1..=TRIES {
            let choice = match self.choose(&mut picture, wish, start).await? {
                Ok(choice) => choice,
                Err(refused) => return Ok(Err(refused)),
            };
            let ttl = self.config.hold_ttl;
            let taken = match self.inventory.hold_best(&hold, wish.quantity, &choice.seats, choice.blocks, ttl).await {
                Err(InventoryError::Lost) => {
                    self.rebuild_if_lost().await?;
                    picture = self.own_picture(wish).await?;
                    continue;
                }
                Ok(Held::Taken(taken)) => taken,
                other => return self.show_hold(&hold, wish.quantity, other?),
            };
            for seat in taken.iter().filter_map(|seat| self.plan.position(seat)) {
                if let Some(is_free) = picture.is_free.get_mut(seat) {
                    *is_free = false;
                }
            }
            start = rand::random_range(0..=self.choosing.now() + tried);
        }
        Ok(Err(Held::Contended))
    }

    /// Candidates from the picture, which is made anew when it has none that are side by side.
    async fn choose(
        &self,
        picture: &mut Picture,
        wish: &BestWish,
        start: usize,
    ) -> Result<Result<Choice, Held>, OfficeError> {
        if let Some(choice) = Choice::together(&self.plan, &picture.is_free, wish.quantity, start) {
            return Ok(Ok(choice));
        }
        if !picture.is_own {
            *picture = self.own_picture(wish).await?;
            if let Some(choice) = Choice::together(&self.plan, &picture.is_free, wish.quantity, start) {
                return Ok(Ok(choice));
            }
        }
        let free = u32::try_from(picture.is_free.iter().filter(|is_free| **is_free).count()).unwrap_or(u32::MAX);
        if free < wish.quantity {
            return Ok(Err(Held::NotEnough { free }));
        }
        if wish.together {
            return Ok(Err(Held::Apart { free }));
        }
        Ok(Ok(Choice::apart(&self.plan, &picture.is_free, wish.quantity, start)))
    }

    /// The hall as everybody is shown it.
    async fn shown_picture(&self, wish: &BestWish) -> Result<Picture, OfficeError> {
        let shown = self.shown().await?;
        let states = shown.view.seats.map.iter().map(|seat| seat.state);
        Ok(Picture { is_free: self.wanted(wish, states), is_own: false })
    }

    /// The hall as it is now.
    async fn own_picture(&self, wish: &BestWish) -> Result<Picture, OfficeError> {
        let state = self.state().await?;
        Ok(Picture { is_free: self.wanted(wish, state.seats.into_iter()), is_own: true })
    }

    /// Which seats are free, of those that fit the wish.
    fn wanted(&self, wish: &BestWish, states: impl Iterator<Item = SeatState>) -> Vec<bool> {
        let fits = self.plan.rows().flat_map(|(row, seats)| {
            let fits = wish.rows.as_ref().is_none_or(|rows| rows.iter().any(|wanted| wanted == row));
            std::iter::repeat_n(fits, seats.len())
        });
        states.zip(fits).map(|(state, fits)| fits && state == SeatState::Free).collect()
    }
}
