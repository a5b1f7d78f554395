//! Group commit: joins that arrive together share one run of the script.
//!
//! A join that finds no flight under way flies at once. Those that arrive meanwhile wait for it to land and travel in
//! the next one, in the order in which they came, so an idle room's join waits for nobody and a crowd's joins cost the
//! store one call per hundred. One flight at a time: two could overtake each other on their way to the store.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::oneshot,
    task::yield_now,
    time::{Instant, timeout},
};

use super::LiveRoom;
use crate::{
    queue::{Arrival, Place, QueueError, scripts},
    store::StoreError,
};

/// Most joins that wait for the next flight. More than a store serves within [`LONGEST_WAIT`] would wait in vain.
const MOST_WAITING: usize = 10_000;
/// Longest a join waits to be taken along: two flights that just meet the engine's deadline of half a second.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Longest a flight may take, whatever the engine's own deadline is.
const LONGEST_FLIGHT: Duration = Duration::from_secs(1);

/// The joins of one room on one node that are waiting for the store, at most [`MOST_WAITING`].
#[derive(Debug, Default)]
pub struct Joins(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    waiting: VecDeque<Passenger>,
    is_flying: bool,
}

/// One join under way. Dropped, it answers that the store cannot be reached.
#[derive(Debug)]
struct Passenger {
    arrival: Arrival,
    since: Instant,
    answer: oneshot::Sender<Place>,
}

/// What becomes of a join that was handed in.
#[derive(Debug, PartialEq)]
enum Entered {
    /// A flight has to be started for it.
    First,
    /// The flight under way comes back for it.
    Waits,
    /// There is no room for one more.
    Full,
}

impl Joins {
    fn enter(&self, passenger: Passenger) -> Entered {
        let mut inner = self.lock();
        if inner.waiting.len() >= MOST_WAITING {
            return Entered::Full;
        }
        inner.waiting.push_back(passenger);
        if std::mem::replace(&mut inner.is_flying, true) { Entered::Waits } else { Entered::First }
    }

    /// The next batch, without those who have gone or waited too long. `None` ends the flight.
    fn board(&self) -> Option<Vec<Passenger>> {
        let mut inner = self.lock();
        let mut batch = Vec::new();
        while batch.len() < scripts::BATCH
            && let Some(passenger) = inner.waiting.pop_front()
        {
            if !passenger.answer.is_closed() && passenger.since.elapsed() < LONGEST_WAIT {
                batch.push(passenger);
            }
        }
        inner.is_flying = !batch.is_empty();
        Some(batch).filter(|batch| !batch.is_empty())
    }

    /// Answers everybody who waits that the store cannot be reached.
    fn refuse_all(&self) {
        self.lock().waiting.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is a single step, so a poisoned list is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveRoom {
    /// One join, together with those that arrive at the same time. `None` when the store cannot be asked; it may have
    /// joined all the same, and the repeat finds the place. Dropped while it waits, it never reaches the store.
    pub(super) async fn join_together(self: &Arc<Self>, arrival: Arrival) -> Option<Place> {
        let (answer, place) = oneshot::channel();
        match self.joins.enter(Passenger { arrival, since: Instant::now(), answer }) {
            Entered::First => self.beside(Flight { room: Arc::clone(self), has_landed: false }.fly()),
            Entered::Waits => {}
            Entered::Full => return None,
        }
        place.await.ok()
    }
}

/// Whoever joins for all others. A task of its own, so that the visitor whose join started it may go.
struct Flight {
    room: Arc<LiveRoom>,
    has_landed: bool,
}

impl Flight {
    async fn fly(mut self) {
        while let Some(batch) = self.room.joins.board() {
            self.carry(batch).await;
            // The in-process engine never makes anyone wait, so nobody else would get a turn.
            yield_now().await;
        }
        self.has_landed = true;
    }

    async fn join(&self, arrivals: &[Arrival]) -> Result<Vec<Place>, QueueError> {
        let late = |_| Err(StoreError::Unavailable(format!("a join took longer than {LONGEST_FLIGHT:?}")).into());
        timeout(LONGEST_FLIGHT, self.room.queue.join(arrivals)).await.unwrap_or_else(late)
    }

    async fn carry(&self, batch: Vec<Passenger>) {
        let room = &self.room;
        let mut arrivals: Vec<Arrival> = batch.iter().map(|passenger| passenger.arrival).collect();
        let mut joined = self.join(&arrivals).await;
        if joined.as_ref().is_err_and(|error| matches!(error, QueueError::OtherEpoch(_)))
            && room.look_again().await.is_ok()
        {
            // A reset came between: what they can prove is of before it, so all of them come anew.
            for arrival in &mut arrivals {
                arrival.proof = None;
            }
            joined = self.join(&arrivals).await;
        }
        match joined {
            Ok(places) => {
                for (passenger, place) in batch.into_iter().zip(places) {
                    // Fails for someone who went away meanwhile.
                    let _ = passenger.answer.send(place);
                }
            }
            Err(error) => {
                room.store_failed(&error);
                // They would only wait as long as these did, to hear the same.
                if error.is_transient() {
                    room.joins.refuse_all();
                }
            }
        }
    }
}

/// A flight that was cut short, by a panic or the end of the runtime, strands nobody.
impl Drop for Flight {
    fn drop(&mut self) {
        if !self.has_landed {
            let mut inner = self.room.joins.lock();
            inner.waiting.clear();
            inner.is_flying = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::VisitorId;

    fn passenger(bits: u128) -> (Passenger, oneshot::Receiver<Place>) {
        let (answer, place) = oneshot::channel();
        let arrival = Arrival { visitor: VisitorId::from_bits(bits), proof: None, may_enter: false };
        (Passenger { arrival, since: Instant::now(), answer }, place)
    }

    #[tokio::test(start_paused = true)]
    async fn the_list_is_bounded_and_each_batch_too() {
        let joins = Joins::default();
        let mut places = Vec::new();
        for bits in 0..=MOST_WAITING as u128 {
            let (passenger, place) = passenger(bits);
            let expected = match bits {
                0 => Entered::First,
                _ if bits == MOST_WAITING as u128 => Entered::Full,
                _ => Entered::Waits,
            };
            assert_eq!(joins.enter(passenger), expected, "{bits}");
            places.push(place);
        }
        assert!(places.last_mut().unwrap().try_recv().is_err(), "told at once");
        let batch = joins.board().unwrap();
        assert_eq!(batch.len(), scripts::BATCH);
        assert!((0..).zip(&batch).all(|(bits, next)| next.arrival.visitor == VisitorId::from_bits(bits)), "in order");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_gone_or_waited_too_long_is_not_taken_along() {
        let joins = Joins::default();
        let (late, mut told) = passenger(1);
        let (gone, place) = passenger(2);
        joins.enter(late);
        tokio::time::advance(LONGEST_WAIT).await;
        joins.enter(gone);
        drop(place);
        let (here, _place) = passenger(3);
        joins.enter(here);
        let batch = joins.board().unwrap();
        assert_eq!(batch.iter().map(|next| next.arrival.visitor).collect::<Vec<_>>(), [VisitorId::from_bits(3)]);
        assert_eq!(told.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert!(joins.board().is_none(), "landed");
        assert_eq!(joins.enter(passenger(4).0), Entered::First, "the next one flies at once");
    }
}
