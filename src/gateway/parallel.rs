//! How much of one session may be under way at once on this node.
//!
//! A session is bound to no address, because people's addresses change under way. What keeps one session from serving
//! a crowd that shares its cookie is a bound on its parallel requests, `max_parallel`.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::GatewayError;
use crate::queue::VisitorId;

/// How long a request waits for another one of its session to end. A page with many pictures sends all its requests
/// at once over HTTP/2 and is to be shown, only no faster.
const PATIENCE: Duration = Duration::from_secs(1);

/// The sessions with requests under way. Bounded by the connections, as those who wait hold one too.
#[derive(Debug, Clone, Default)]
pub(super) struct Parallel(Arc<Mutex<HashMap<VisitorId, Session>>>);

#[derive(Debug)]
struct Session {
    free: Arc<Semaphore>,
    /// Those under way and those that wait.
    requests: usize,
}

/// One request of a session under way: held to the end of its answer or its tunnel.
#[derive(Debug)]
pub struct Share {
    // In this order: the place is free before the session may be forgotten.
    _place: OwnedSemaphorePermit,
    _request: Noted,
}

/// One request among those of its session.
#[derive(Debug)]
struct Noted {
    sessions: Parallel,
    visitor: VisitorId,
}

impl Parallel {
    /// A place among at most `most` requests of the visitor's session; `None` when `most` is 0 and nothing is counted.
    ///
    /// # Errors
    /// [`GatewayError::TooParallel`] when none of the others ends in time.
    pub(super) async fn enter(&self, visitor: VisitorId, most: u32) -> Result<Option<Share>, GatewayError> {
        if most == 0 {
            return Ok(None);
        }
        let (free, request) = self.note(visitor, most);
        match timeout(PATIENCE, free.acquire_owned()).await {
            Ok(Ok(place)) => Ok(Some(Share { _place: place, _request: request })),
            Ok(Err(_)) | Err(_) => Err(GatewayError::TooParallel),
        }
    }

    fn note(&self, visitor: VisitorId, most: u32) -> (Arc<Semaphore>, Noted) {
        let most = usize::try_from(most).unwrap_or(Semaphore::MAX_PERMITS);
        let mut sessions = self.lock();
        let session =
            sessions.entry(visitor).or_insert_with(|| Session { free: Arc::new(Semaphore::new(most)), requests: 0 });
        session.requests += 1;
        (Arc::clone(&session.free), Noted { sessions: self.clone(), visitor })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<VisitorId, Session>> {
        // Every change is a single step, so a poisoned map is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let mut sessions = self.sessions.lock();
        if let Some(session) = sessions.get_mut(&self.visitor) {
            session.requests -= 1;
            if session.requests == 0 {
                sessions.remove(&self.visitor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const ANN: VisitorId = VisitorId::from_bits(1);
    const BEN: VisitorId = VisitorId::from_bits(2);

    #[tokio::test(start_paused = true)]
    async fn a_session_has_so_many_places_and_is_forgotten_with_its_last_request() {
        let parallel = Parallel::default();
        let first = parallel.enter(ANN, 2).await.unwrap();
        let second = parallel.enter(ANN, 2).await.unwrap();
        assert!(parallel.enter(BEN, 2).await.unwrap().is_some(), "somebody else's session");
        let began = Instant::now();
        assert_eq!(parallel.enter(ANN, 2).await.unwrap_err(), GatewayError::TooParallel);
        assert_eq!(began.elapsed(), PATIENCE);
        drop(first);
        let third = parallel.enter(ANN, 2).await.unwrap();
        drop((second, third));
        assert!(parallel.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_a_place_and_gives_up_without_a_trace_when_dropped() {
        let parallel = Parallel::default();
        let first = parallel.enter(ANN, 1).await.unwrap();
        let waits = tokio::spawn({
            let parallel = parallel.clone();
            async move { parallel.enter(ANN, 1).await.map(drop) }
        });
        let gone = tokio::spawn({
            let parallel = parallel.clone();
            async move { parallel.enter(ANN, 1).await.map(drop) }
        });
        tokio::task::yield_now().await;
        gone.abort();
        drop(first);
        waits.await.unwrap().unwrap();
        assert!(gone.await.unwrap_err().is_cancelled());
        assert!(parallel.lock().is_empty());
    }

    #[tokio::test]
    async fn without_a_bound_nothing_is_counted() {
        let parallel = Parallel::default();
        for _ in 0..1_000 {
            assert!(parallel.enter(ANN, 0).await.unwrap().is_none());
        }
        assert!(parallel.lock().is_empty());
    }
}
