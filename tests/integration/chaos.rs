//! D18: a sale in which everything dies, again and again, and comes back: box offices, Redis, `PostgreSQL`, the provider.
//!
//! Who is killed when follows from a seed, `STANCHION_SEED`, which a failure names. Blows fall when so many purchases have
//! begun, not at a time of the clock.

mod books;
mod buyer;
mod cast;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use tokio::task::JoinSet;

use self::{
    buyer::{Purchase, Shopper},
    cast::{Cast, Victim},
};
use crate::support::seeds::seeds;

const PURCHASES: usize = 500;
/// Buyers at the same time.
const CROWD: usize = 24;
/// How often each of the five is killed.
const BLOWS_EACH: usize = 4;

/// One SIGKILL.
#[derive(Debug, Clone, Copy)]
struct Blow {
    /// When so many purchases have begun.
    at: usize,
    victim: Victim,
    /// How long it stays dead.
    down: Duration,
}

fn blows(random: &mut StdRng) -> Vec<Blow> {
    let mut victims: Vec<Victim> = Victim::ALL.iter().flat_map(|victim| [*victim; BLOWS_EACH]).collect();
    victims.shuffle(random);
    let mut blows: Vec<Blow> = victims
        .into_iter()
        .map(|victim| Blow {
            at: random.random_range(5..PURCHASES - 20),
            victim,
            down: Duration::from_millis(random.random_range(0..1_500)),
        })
        .collect();
    blows.sort_by_key(|blow| blow.at);
    blows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn captures_are_confirmed_or_refunded_and_nothing_is_left_whoever_is_killed_in_mid_sale() {
    for seed in seeds(1) {
        eprintln!("play this again with STANCHION_SEED={seed} STANCHION_HISTORIES=1");
        let mut random = StdRng::seed_from_u64(seed);
        let blows = blows(&mut random);
        for blow in &blows {
            eprintln!("{blow:?}");
        }
        let cast = Arc::new(Cast::start(seed).await);
        let purchases = play(&cast, seed, blows).await;
        books::balance(&cast, &purchases).await;
    }
}

/// All purchases, while the blows fall. Everybody is alive again at the end.
async fn play(cast: &Arc<Cast>, seed: u64, blows: Vec<Blow>) -> Vec<Purchase> {
    let begun = Arc::new(AtomicUsize::new(0));
    let mut crowd = JoinSet::new();
    for _ in 0..CROWD {
        let (cast, begun) = (Arc::clone(cast), Arc::clone(&begun));
        crowd.spawn(async move {
            let mut purchases = Vec::new();
            loop {
                let number = begun.fetch_add(1, SeqCst);
                if number >= PURCHASES {
                    return purchases;
                }
                purchases.push(Shopper::new(Arc::clone(&cast), seed, number).buy().await);
            }
        });
    }
    let mut deaths = JoinSet::new();
    for blow in blows {
        while begun.load(SeqCst) < blow.at {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let cast = Arc::clone(cast);
        deaths.spawn(async move { cast.strike(blow.victim, blow.down).await });
    }
    deaths.join_all().await;
    crowd.join_all().await.concat()
}
