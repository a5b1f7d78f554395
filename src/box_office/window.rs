//! The ticket window: what visitors see of the event, at most a quarter of a second old, made once for all of them.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use tokio::sync::Semaphore;

use super::{
    inventory::InventoryState,
    office::{Office, OfficeError},
    pages::PageHtml,
    views::{CountView, EventView, SeatView, SeatsView},
};

/// A view older than this is made anew.
const FRESH: Duration = Duration::from_millis(250);
/// While the store is away, a view this old is better than none.
const BEARABLE: Duration = Duration::from_secs(5);

/// The event as it was a moment ago.
#[derive(Debug)]
pub struct Shown {
    made: Instant,
    /// What visitors may know.
    pub view: EventView,
    /// The view as JSON.
    pub json: Bytes,
    /// The view as a page, rendered when first asked for.
    pub page: OnceLock<PageHtml>,
    /// Whether every ticket is sold (not merely held).
    pub sold_out: bool,
}

/// The latest view, and the turn to make the next one.
#[derive(Debug)]
pub struct Window {
    latest: ArcSwapOption<Shown>,
    turn: Semaphore,
}

impl Default for Window {
    fn default() -> Self {
        Self { latest: ArcSwapOption::empty(), turn: Semaphore::new(1) }
    }
}

impl Office {
    /// The event as it is now, or was up to 250 ms ago. However many ask, one asks the store.
    pub async fn shown(&self) -> Result<Arc<Shown>, OfficeError> {
        if let Some(shown) = self.window.not_older(FRESH) {
            return Ok(shown);
        }
        let _turn = self.window.turn.acquire().await;
        if let Some(shown) = self.window.not_older(FRESH) {
            return Ok(shown);
        }
        match self.state().await {
            Ok(state) => {
                let shown = Arc::new(self.show(&state)?);
                self.window.latest.store(Some(Arc::clone(&shown)));
                Ok(shown)
            }
            Err(error) => self.window.not_older(BEARABLE).ok_or(error),
        }
    }

    fn show(&self, state: &InventoryState) -> Result<Shown, OfficeError> {
        let event = &self.config.event;
        let sold = state.seat_counts.plus(state.tickets).sold;
        let sold_out = sold >= i64::from(event.seats) + i64::from(event.general_admission);
        let map = self.plan.names().iter().zip(&state.seats);
        let view = EventView {
            id: event.id.clone(),
            name: event.name.clone(),
            on_sale: !sold_out,
            currency: event.currency.clone(),
            price_minor: event.price_minor,
            per_hold_limit: event.per_hold_limit,
            seats: SeatsView {
                total: event.seats,
                free: count(state.seat_counts.free),
                map: map.map(|(seat, state)| SeatView { seat: seat.clone(), state: *state }).collect(),
            },
            general_admission: CountView { total: state.tickets_total, free: count(state.tickets.free) },
        };
        let json = serde_json::to_vec(&view).map_err(|error| OfficeError::Defect(error.to_string()))?;
        Ok(Shown { made: Instant::now(), view, json: json.into(), page: OnceLock::new(), sold_out })
    }
}

impl Window {
    fn not_older(&self, age: Duration) -> Option<Arc<Shown>> {
        self.latest.load_full().filter(|shown| shown.made.elapsed() <= age)
    }
}

/// Never below zero, whatever the store had promised.
fn count(value: i64) -> u32 {
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}
