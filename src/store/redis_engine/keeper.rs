//! Keeps a connection to the master: replaces it when calls report that it is lost.
//!
//! One task connects, however many calls wait. While it does so for the first time calls wait for it, within their
//! deadline; once an attempt has failed they are told at once, so that nothing piles up while the store is away.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::RedisError;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

use super::{
    super::{
        StoreError,
        redis_address::RedisAddress,
        redis_rules::{CONNECT_DEADLINE, LONGEST_PAUSE, SILENCE, is_demoted, no_server_in_time},
    },
    link::{self, Link},
    sentinel, text,
};

/// Longest first pause; each further one may be twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// How often the Sentinels are asked whether the master is still the one we talk to. A master that was cut off from
/// them and replaced does not know that by itself.
const SENTINEL_ROUND: Duration = Duration::from_secs(2);

/// The connection at present, and who replaces it.
pub struct Keeper {
    state: watch::Receiver<State>,
    lost: watch::Sender<Loss>,
}

#[derive(Clone)]
enum State {
    /// The first attempt to replace a lost connection.
    Opening,
    Open(Held),
    /// Why the last attempt failed, or the connection before it.
    Failed(String),
}

/// The last connection that was reported lost, and why.
#[derive(Default)]
struct Loss {
    generation: u64,
    reason: String,
}

/// A connection as one call has it. Cheap to clone.
#[derive(Clone)]
pub struct Held {
    /// The connection itself.
    pub link: Link,
    generation: u64,
    opened: Instant,
    /// When an answer last came, in milliseconds after `opened`.
    heard: Arc<AtomicU64>,
}

impl Held {
    fn new(link: Link, generation: u64) -> Self {
        Self { link, generation, opened: Instant::now(), heard: Arc::default() }
    }

    /// Notes that the server is alive.
    pub fn answered(&self) {
        self.heard.fetch_max(self.age_millis(), Ordering::Relaxed);
    }

    fn age_millis(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// How long no answer came. In a cluster the answers of one node say nothing of another, so there it is the
    /// connection's age.
    fn silent_for(&self) -> Duration {
        let heard = if self.link.is_cluster() { 0 } else { self.heard.load(Ordering::Relaxed) };
        Duration::from_millis(self.age_millis().saturating_sub(heard))
    }
}

impl Keeper {
    /// Takes care of `link` from now on, until the keeper is dropped.
    pub fn new(address: Arc<RedisAddress>, link: Link) -> Self {
        let held = Held::new(link, 1);
        let (states, state) = watch::channel(State::Open(held.clone()));
        let (lost, losses) = watch::channel(Loss::default());
        tokio::spawn(keep(address, held, states, losses));
        Self { state, lost }
    }

    /// The connection, waiting for one that is just being made.
    pub async fn get(&self) -> Result<Held, StoreError> {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| !matches!(state, State::Opening)).await;
        match settled.as_deref() {
            Ok(State::Open(held)) => Ok(held.clone()),
            Ok(State::Failed(reason)) => Err(StoreError::Unavailable(reason.clone())),
            _ => Err(StoreError::Unavailable("nobody keeps the connection".to_owned())),
        }
    }

    /// Takes note of a call's failure.
    pub fn note(&self, held: &Held, error: &RedisError) {
        if error.is_unrecoverable_error() || error.code().is_some_and(is_demoted) {
            self.report(held, text(error));
        } else {
            held.answered();
        }
    }

    /// Takes note of a call without an answer.
    pub fn note_silence(&self, held: &Held) {
        if held.silent_for() >= SILENCE {
            self.report(held, format!("{} falls silent", held.link.to));
        }
    }

    fn report(&self, held: &Held, reason: String) {
        self.lost.send_if_modified(|loss| {
            let is_news = loss.generation < held.generation;
            if is_news {
                *loss = Loss { generation: held.generation, reason };
            }
            is_news
        });
    }
}

/// The keeper's task. Ends when nobody is left who could report a loss.
async fn keep(
    address: Arc<RedisAddress>,
    mut held: Held,
    states: watch::Sender<State>,
    mut losses: watch::Receiver<Loss>,
) {
    let mut attempt = 0;
    while let Some(reason) = lost(&address, &held, &mut losses).await {
        // One that breaks at once, again and again, is no better than none.
        if held.opened.elapsed() > 2 * LONGEST_PAUSE {
            attempt = 0;
        }
        tracing::warn!(%address, reason, "the connection to the store is replaced");
        // What a cluster's healthy nodes can do they do meanwhile.
        let serves_meanwhile = held.link.is_cluster();
        if !serves_meanwhile {
            states.send_replace(if attempt == 0 { State::Opening } else { State::Failed(reason) });
        }
        let link = loop {
            sleep(pause(attempt)).await;
            attempt += 1;
            if losses.has_changed().is_err() {
                return;
            }
            let opening = timeout(CONNECT_DEADLINE, link::open(&address)).await;
            match opening.unwrap_or_else(|_| Err(no_server_in_time(&address))) {
                Ok(link) => break link,
                Err(_) if serves_meanwhile => {}
                Err(StoreError::Unavailable(reason) | StoreError::Unusable(reason)) => {
                    states.send_replace(State::Failed(reason));
                }
                Err(error) => drop(states.send_replace(State::Failed(error.to_string()))),
            }
        };
        tracing::info!(%address, server = link.to, "connected to the store again");
        held = Held::new(link, held.generation + 1);
        states.send_replace(State::Open(held.clone()));
        // In mid-sale it is better to go on and say so than to stop.
        if let Err(error @ StoreError::Unusable(_)) = held.link.check().await {
            tracing::error!(%error, "the server that took over is not fit for this; going on with it");
        }
    }
}

/// Waits until the connection is lost. None when nobody is left to report it.
async fn lost(address: &RedisAddress, held: &Held, losses: &mut watch::Receiver<Loss>) -> Option<String> {
    loop {
        let reported = losses.wait_for(|loss| loss.generation >= held.generation);
        if let Ok(reported) = timeout(SENTINEL_ROUND, reported).await {
            return reported.ok().map(|loss| loss.reason.clone());
        }
        if sentinel::has_moved(address, &held.link.to).await {
            return Some(format!("{} is not the master any more", held.link.to));
        }
    }
}

/// Random, so that many nodes do not come back at one instant.
fn pause(attempt: u32) -> Duration {
    let most = FIRST_PAUSE.saturating_mul(1 << attempt.min(10)).min(LONGEST_PAUSE);
    most.mul_f64(rand::random())
}
