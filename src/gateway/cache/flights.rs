//! Requests on their way in the name of many. The first to want something goes and asks; whoever comes meanwhile waits until
//! that has landed, or takes over when it is given up.
//!
//! Each flight is kept in a map for as long as somebody is on board. A visitor is on board of one flight at most for each of
//! their requests, so that there are never more than requests under way, which the bounds of the listeners bound.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError},
    time::{Instant, timeout_at},
};

use super::{answer::Answer, wish::Key};

/// All flights under way.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<HashMap<Key, Boarded>>);

#[derive(Debug)]
struct Boarded {
    flight: Arc<Flight>,
    seats: usize,
}

#[derive(Debug)]
struct Flight {
    /// One place, for who asks. It is free again when they give up, and goes to who waited longest. Closed on landing, which
    /// wakes everybody.
    lead: Arc<Semaphore>,
    landing: OnceLock<Landing>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub(super) enum Landing {
    /// This was kept.
    Kept(Arc<Answer>),
    /// It could not be kept.
    Pass,
}

/// Whose turn it is.
#[derive(Debug)]
pub(super) enum Turn {
    /// Yours to go and ask.
    Lead(OwnedSemaphorePermit),
    /// Somebody did.
    Landed(Landing),
}

/// A visitor's seat on a flight.
#[derive(Debug)]
pub(super) struct Seat {
    flights: Arc<Flights>,
    key: Key,
    flight: Arc<Flight>,
}

impl Flights {
    /// A seat on the flight to `key`; a new flight where there is none.
    pub(super) fn board(flights: &Arc<Self>, key: &Key) -> Seat {
        let mut all = flights.lock();
        let boarded = all.entry(key.clone()).or_insert_with(|| Boarded {
            flight: Arc::new(Flight { lead: Arc::new(Semaphore::new(1)), landing: OnceLock::new() }),
            seats: 0,
        });
        boarded.seats += 1;
        Seat { flights: Arc::clone(flights), key: key.clone(), flight: Arc::clone(&boarded.flight) }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Boarded>> {
        // Every change is a single step, so a poisoned map is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// The turn to go and ask, or what came of it; `None` when neither comes by `deadline`.
    pub(super) async fn turn(&self, deadline: Instant) -> Option<Turn> {
        match timeout_at(deadline, Arc::clone(&self.flight.lead).acquire_owned()).await {
            Ok(Ok(permit)) => Some(Turn::Lead(permit)),
            Ok(Err(_closed)) => self.landed(),
            Err(_late) => None,
        }
    }

    /// The same without waiting: `None` when somebody else is at it.
    pub(super) fn turn_now(&self) -> Option<Turn> {
        match Arc::clone(&self.flight.lead).try_acquire_owned() {
            Ok(permit) => Some(Turn::Lead(permit)),
            Err(TryAcquireError::Closed) => self.landed(),
            Err(TryAcquireError::NoPermits) => None,
        }
    }

    fn landed(&self) -> Option<Turn> {
        self.flight.landing.get().cloned().map(Turn::Landed)
    }

    pub(super) const fn key(&self) -> &Key {
        &self.key
    }

    /// Tells everybody on board. Whoever comes later boards a new flight, so what they shall find must be on the shelf before.
    pub(super) fn land(&self, landing: Landing) {
        let mut all = self.flights.lock();
        if all.get(&self.key).is_some_and(|boarded| Arc::ptr_eq(&boarded.flight, &self.flight)) {
            all.remove(&self.key);
        }
        drop(all);
        let _first = self.flight.landing.set(landing);
        self.flight.lead.close();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut all = self.flights.lock();
        let Some(boarded) = all.get_mut(&self.key).filter(|boarded| Arc::ptr_eq(&boarded.flight, &self.flight)) else {
            return;
        };
        boarded.seats = boarded.seats.saturating_sub(1);
        if boarded.seats == 0 {
            all.remove(&self.key);
        }
    }
}
