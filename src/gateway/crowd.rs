//! How many connections there are, and who has to make room when there are too many.
//!
//! Nobody is bounded while there is room: a thousand visitors may come from one office. When four fifths of the places are
//! taken, whoever has more than a share gets no further one; when all are, whoever idles makes room.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep},
};

/// How often somebody to make room is looked for, when nobody was idle.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Of so many that idle longest, the one with most connections makes room.
const CANDIDATES: usize = 64;

/// Every connection of a gateway.
#[derive(Debug, Clone)]
pub(super) struct Crowd(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    places: Arc<Semaphore>,
    most: usize,
    most_per_address: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<Address, usize>,
    /// By how long they have been idle, the longest first.
    idle: BTreeMap<Since, Idler>,
    ids: u64,
}

type Since = (Instant, u64);

#[derive(Debug)]
struct Idler {
    address: Option<Address>,
    leave: Arc<Notify>,
}

/// Whose connections are counted together: an IPv4 address, or the /64 that one customer of IPv6 has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Address {
    V4(u32),
    V6(u64),
}

/// One connection's place.
#[derive(Debug)]
pub(super) struct Place {
    crowd: Crowd,
    address: Option<Address>,
    leave: Arc<Notify>,
    _permit: OwnedSemaphorePermit,
}

/// A connection that idles, until the value is dropped.
#[derive(Debug)]
pub(super) struct Rest<'a> {
    place: &'a Place,
    since: Since,
}

impl Crowd {
    pub(super) fn new(most: usize, most_per_address: usize) -> Self {
        let places = Arc::new(Semaphore::new(most));
        Self(Arc::new(Shared { places, most, most_per_address, state: Mutex::default() }))
    }

    /// A place for a connection from `address`; from nobody in particular, when that is not known yet or a trusted proxy's.
    /// Waits while all are taken and nobody idles. `None` when the address has had its share.
    pub(super) async fn enter(&self, address: Option<IpAddr>) -> Option<Place> {
        let address = address.map(Address::of);
        if !self.admits(address) {
            return None;
        }
        let permit = loop {
            if let Ok(permit) = Arc::clone(&self.0.places).try_acquire_owned() {
                break permit;
            }
            self.make_room();
            tokio::select! {
                permit = Arc::clone(&self.0.places).acquire_owned() => break permit.ok()?,
                () = sleep(LOOK_AGAIN) => {}
            }
        };
        self.note(address);
        Some(Place { crowd: self.clone(), address, leave: Arc::default(), _permit: permit })
    }

    /// Whether another connection from there is borne. One that idles is sent away for it.
    fn admits(&self, address: Option<Address>) -> bool {
        let Some(address) = address else { return true };
        let is_crowded = self.0.places.available_permits() < self.0.most / 5;
        let mut state = self.lock();
        if !is_crowded || state.open_of(address) < self.0.most_per_address {
            return true;
        }
        let own = state.idle.iter().take(4 * CANDIDATES).find(|(_, idler)| idler.address == Some(address));
        match own.map(|(since, _)| *since) {
            Some(since) => state.send_away(since),
            None => false,
        }
    }

    fn make_room(&self) {
        let mut state = self.lock();
        // Of equals the longest idle one goes: the last maximum of the reversed order.
        let candidates: Vec<_> = state.idle.iter().take(CANDIDATES).collect();
        let one = candidates
            .into_iter()
            .rev()
            .max_by_key(|(_, idler)| idler.address.map_or(0, |address| state.open_of(address)))
            .map(|(since, _)| *since);
        if let Some(since) = one {
            state.send_away(since);
        }
    }

    fn note(&self, address: Option<Address>) {
        if let Some(address) = address {
            *self.lock().open.entry(address).or_default() += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is a single step, so that a poisoned state is still whole.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn open_of(&self, address: Address) -> usize {
        self.open.get(&address).copied().unwrap_or(0)
    }

    fn send_away(&mut self, since: Since) -> bool {
        self.idle.remove(&since).inspect(|idler| idler.leave.notify_one()).is_some()
    }
}

impl Address {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6(u64::try_from(address.to_bits() >> 64).unwrap_or_default()),
        }
    }
}

impl Place {
    /// Says whose place it is, once that is known. Whether that address may have it.
    pub(super) fn belongs_to(&mut self, address: IpAddr) -> bool {
        let address = Some(Address::of(address));
        let is_borne = self.crowd.admits(address);
        self.crowd.note(address);
        self.address = address;
        is_borne
    }

    /// From now on the connection may be asked to make room.
    pub(super) fn rest(&self) -> Rest<'_> {
        let mut state = self.crowd.lock();
        state.ids += 1;
        let since = (Instant::now(), state.ids);
        state.idle.insert(since, Idler { address: self.address, leave: Arc::clone(&self.leave) });
        Rest { place: self, since }
    }
}

impl Rest<'_> {
    /// Resolves when the connection has to make room.
    pub(super) async fn ended(&self) {
        self.place.leave.notified().await;
    }
}

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        self.place.crowd.lock().idle.remove(&self.since);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut state = self.crowd.lock();
        if let Some(open) = state.open.get_mut(&address) {
            *open -= 1;
            if *open == 0 {
                state.open.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests;
