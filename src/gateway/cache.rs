//! A small shared cache for the routes that a room names, so that a stampede on one page is one request to the origin.
//!
//! An answer is kept if the origin says in so many words how long ([`rules`]), and whoever asks for it meanwhile gets it from
//! memory ([`answer`]). Of those who ask for what is not there, one goes and the others wait for it ([`flights`]). When it
//! turns out that it cannot be kept, the others go by themselves at once, and so does everybody for a second.
//!
//! What is asked in the name of many is asked in one form ([`wish`]): nothing that distinguishes the one who goes may decide
//! what the others see.

mod answer;
mod flights;
mod intake;
mod lead;
mod rules;
mod wish;

use std::{hash::RandomState, sync::Arc, time::Duration};

use http::HeaderName;
use quick_cache::{OptionsBuilder, Weighter, sync};
use tokio::time::Instant;

use self::{
    answer::Answer,
    flights::{Flights, Landing, Turn},
    wish::Key,
};
pub(super) use self::{
    lead::{Lead, Served},
    wish::{Wish, is_shareable},
};
use super::GatewayError;

/// What is kept, and what is on its way.
#[derive(Debug)]
pub(super) struct Cache {
    shelf: Shelf,
    flights: Arc<Flights>,
    /// Most bytes of one answer's body.
    most_bytes: usize,
}

type Shelf = Arc<sync::Cache<Key, Item, Weight, RandomState>>;

/// What is known of a key.
#[derive(Debug, Clone)]
enum Item {
    Kept(Arc<Answer>),
    /// The answers differ by these fields of the request, and stand under keys with their values.
    Varies(Arc<[HeaderName]>),
    /// It could not be kept lately: nobody has to wait to find that out again.
    Pass {
        until: Instant,
    },
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<Key, Item> for Weight {
    fn weight(&self, key: &Key, item: &Item) -> u64 {
        let item = match item {
            Item::Kept(answer) => answer.size(),
            Item::Varies(fields) => fields.iter().map(|field| field.as_str().len() + 32).sum(),
            Item::Pass { .. } => 0,
        };
        // What the entry itself takes.
        u64::try_from(key.size() + item + 512).unwrap_or(u64::MAX)
    }
}

/// What to do about a request.
#[derive(Debug)]
pub(super) enum Advice {
    /// Give this.
    Serve(Arc<Answer>),
    /// Go and ask, for all the others too.
    Ask(Lead),
    /// Go and ask, for this visitor alone.
    Pass,
}

/// What the shelf has for a request now.
enum Found {
    Fresh(Arc<Answer>),
    /// Out of date, but good enough while somebody asks anew.
    Meanwhile(Arc<Answer>),
    /// Out of date, and only good if the origin fails.
    Spare(Arc<Answer>),
    Pass,
    /// As [`Found::Pass`], but it is time for somebody to try again, for whom nobody has to wait.
    Retry,
    Nothing,
}

/// How long others need not wait for what could not be kept.
const PASS_FOR: Duration = Duration::from_secs(1);
/// How long after that those who find somebody else trying again do not wait for the outcome.
const DOUBT_FOR: Duration = Duration::from_secs(10);
/// Most bytes of one answer.
const MOST_BYTES: usize = 1 << 20;
/// One after the other: what the answers vary by, then one's own variant, and what came in between.
const MOST_LOOKS: usize = 4;

impl Cache {
    /// Keeps answers of up to `bytes` altogether.
    pub(super) fn new(bytes: usize) -> Self {
        let weight = u64::try_from(bytes).unwrap_or(u64::MAX);
        // Four parts, each with a lock of its own that is held for a look; one answer must fit into a part.
        let options = OptionsBuilder::new().shards(4).estimated_items_capacity(256).weight_capacity(weight).build();
        // Visitors choose the keys, so the hash has to be one that they cannot foresee.
        let (hash, life) = (RandomState::new(), sync::DefaultLifecycle::default());
        let shelf = match options {
            Ok(options) => sync::Cache::with_options(options, Weight, hash, life),
            Err(_) => sync::Cache::with(256, weight, Weight, hash, life),
        };
        Self { shelf: Arc::new(shelf), flights: Arc::default(), most_bytes: MOST_BYTES.min(bytes / 16) }
    }

    /// What to do about `wish`. Waits no longer than `patience` for somebody who asks already.
    ///
    /// # Errors
    /// [`GatewayError::Busy`] when that takes too long: the shop has enough to do with the one.
    pub(super) async fn advise(&self, wish: &Wish, patience: Duration) -> Result<Advice, GatewayError> {
        let deadline = Instant::now() + patience;
        for _ in 0..MOST_LOOKS {
            let (key, found) = self.look(wish);
            let (spare, instead) = match found {
                Found::Fresh(answer) => return Ok(Advice::Serve(answer)),
                Found::Pass => return Ok(Advice::Pass),
                Found::Meanwhile(answer) => (Some(Arc::clone(&answer)), Some(Advice::Serve(answer))),
                Found::Retry => (None, Some(Advice::Pass)),
                Found::Spare(answer) => (Some(answer), None),
                Found::Nothing => (None, None),
            };
            let seat = Flights::board(&self.flights, &key);
            let turn = match instead {
                Some(instead) => match seat.turn_now() {
                    Some(turn) => turn,
                    None => return Ok(instead),
                },
                None => seat.turn(deadline).await.ok_or(GatewayError::Busy)?,
            };
            match turn {
                Turn::Landed(Landing::Kept(answer)) if wish.suits(&answer) => return Ok(Advice::Serve(answer)),
                // For somebody else: other fields, another variant.
                Turn::Landed(Landing::Kept(_)) => {}
                Turn::Landed(Landing::Pass) => return Ok(Advice::Pass),
                Turn::Lead(permit) => {
                    // The last flight may have landed between the look and this.
                    let (now, found) = self.look(wish);
                    if now == key && !matches!(found, Found::Fresh(_) | Found::Pass) {
                        return Ok(Advice::Ask(Lead::new(self, seat, permit, spare)));
                    }
                }
            }
        }
        Ok(Advice::Pass)
    }

    /// What there is, and the key under which it is or would be.
    fn look(&self, wish: &Wish) -> (Key, Found) {
        let (mut key, mut item) = (wish.key().clone(), self.shelf.get(wish.key()));
        if let Some(Item::Varies(fields)) = &item {
            key = wish.key_by(fields);
            item = self.shelf.get(&key);
        }
        let now = Instant::now();
        let found = match item {
            Some(Item::Kept(answer)) if answer.is_fresh(now) => Found::Fresh(answer),
            Some(Item::Kept(answer)) if answer.may_serve_meanwhile(now) => Found::Meanwhile(answer),
            Some(Item::Kept(answer)) if answer.may_replace_error(now) => Found::Spare(answer),
            Some(Item::Pass { until }) if now < until => Found::Pass,
            Some(Item::Pass { until }) if now < until + DOUBT_FOR => Found::Retry,
            _ => Found::Nothing,
        };
        (key, found)
    }
}

#[cfg(test)]
mod tests;
