//! Who is present is told to the store in batches, and a crowd of them stalls nobody.

use std::time::Duration;

use stanchion::{admission::Standing, queue::VisitorId, shutdown::Shutdown, tokens::Claims};
use tokio::task::yield_now;

use crate::support::{
    node::{TokioClock, keyring, node, store},
    watched_engine::{Mood, WatchedEngine},
};

/// Arguments per visitor.
const EACH: usize = 3;

#[tokio::test(start_paused = true)]
async fn a_crowd_is_reported_a_hundred_a_run_and_between_two_runs_others_get_their_turn() {
    const CROWD: usize = 5_050;
    let clock = TokioClock::now();
    let engine = WatchedEngine::before(store(clock), "seen");
    let room = node(engine.clone(), clock, &keyring(), |_| ()).await;
    let Some(ann) = room.come(None, false).await.queue else { panic!("no place") };
    for bits in 1..CROWD as u128 {
        let poll = room.look_up(Some(Claims { sub: VisitorId::from_bits(bits), ..ann.clone() })).await;
        assert_eq!(poll.standing, Standing::Waiting);
    }
    assert_eq!(engine.runs(), [0; 0], "no poll waits for the store");
    let shutdown = Shutdown::new();
    room.start(&shutdown);
    let (mut before, mut turns) = (0, 0);
    while engine.runs().iter().sum::<usize>() < CROWD * EACH {
        yield_now().await;
        let runs = engine.runs().len();
        assert!(runs <= before + 1, "{} runs without a turn for anyone else", runs - before);
        (before, turns) = (runs, turns + 1);
        assert!(turns < 100_000, "never done");
    }
    assert_eq!(engine.runs().len(), CROWD.div_ceil(100));
    assert!(engine.runs().iter().all(|arguments| *arguments <= 100 * EACH));
    shutdown.stop();
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_reported_is_reported_later_though_nobody_polls_again() {
    const CROWD: usize = 250;
    let clock = TokioClock::now();
    let engine = WatchedEngine::before(store(clock), "seen");
    let room = node(engine.clone(), clock, &keyring(), |_| ()).await;
    for _ in 0..CROWD {
        assert_eq!(room.come(None, false).await.standing, Standing::Waiting);
    }
    engine.set(Mood::Away);
    let shutdown = Shutdown::new();
    room.start(&shutdown);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let failed = engine.runs().len();
    assert!((1..=31).contains(&failed), "one try a second at most: {failed}");
    engine.set(Mood::Pass);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(engine.runs()[failed..].iter().sum::<usize>(), CROWD * EACH);
    shutdown.stop();
}
