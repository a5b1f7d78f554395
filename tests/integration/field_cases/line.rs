//! Places: who keeps one, who loses one, and what everybody is told.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::future::join_all;
use stanchion::{admission::Standing, queue::Place};
use tokio::time::{Instant, sleep};

use super::{Town, poll_until_in, queued};

const SECOND: Duration = Duration::from_secs(1);

/// Thirty come to ten slots; the first ten who wait stop polling; the ten slots become free.
#[tokio::test(start_paused = true)]
async fn b01_those_who_left_stall_nobody_beyond_the_claim_window_and_are_not_counted() {
    let town = Town::of(1, |config| {
        config.policy.capacity = 10;
        config.policy.burst = 10;
    })
    .await;
    let inside = town.admit(10).await;
    let (gone, here) = (town.queue_up(10).await, town.queue_up(10).await);
    let polls: Vec<_> = here
        .iter()
        .map(|claims| tokio::spawn(poll_until_in(Arc::clone(town.node()), claims.clone(), SECOND)))
        .collect();
    sleep(20 * SECOND).await;
    let freed = Instant::now();
    for buyer in &inside {
        town.node().release(buyer);
    }
    for poll in polls {
        let (_, admitted) = poll.await.unwrap();
        assert!(admitted - freed <= 93 * SECOND, "stalled for {:?}", admitted - freed);
    }
    let now = town.now().await;
    assert_eq!((now.line, now.called, now.inside, now.no_shows_total), (0, 0, 10, 10));
    for claims in &gone {
        assert_eq!(town.place(claims).await, Place::None);
    }
}

/// As above, but they are gone for so long that nobody waits for them at all.
#[tokio::test(start_paused = true)]
async fn b01_those_who_left_long_ago_are_passed_over_at_once() {
    let town = Town::of(1, |config| {
        config.policy.capacity = 10;
        config.policy.burst = 10;
    })
    .await;
    let inside = town.admit(10).await;
    town.queue_up(10).await;
    let here = town.queue_up(10).await;
    let polls: Vec<_> = here
        .iter()
        .map(|claims| tokio::spawn(poll_until_in(Arc::clone(town.node()), claims.clone(), SECOND)))
        .collect();
    sleep(60 * SECOND).await;
    let freed = Instant::now();
    for buyer in &inside {
        town.node().release(buyer);
    }
    for poll in polls {
        assert!(poll.await.unwrap().1 - freed <= 3 * SECOND);
    }
    assert_eq!(town.now().await.no_shows_total, 0);
    sleep(300 * SECOND).await;
    assert_eq!(town.now().await.line, 0, "ghosts are not counted beyond the grace");
}

#[tokio::test(start_paused = true)]
async fn b02_an_absence_below_the_grace_keeps_the_place_and_one_above_it_is_said() {
    let town = Town::of(1, |config| config.policy.capacity = 1).await;
    town.admit(1).await;
    let [short, long, here] = &town.queue_up(3).await[..] else { unreachable!() };
    tokio::spawn(poll_until_in(Arc::clone(town.node()), here.clone(), 10 * SECOND));
    sleep(290 * SECOND).await;
    let turn = town.node().look_up(Some(short.clone())).await;
    assert_eq!((queued(&turn).score, town.node().status(&turn).position), (short.score, Some(1)));
    sleep(20 * SECOND).await;
    // The first poll notes that they are there; the store's answer to that is for the next.
    town.node().look_up(Some(long.clone())).await;
    for _ in 0..3 {
        sleep(2 * SECOND).await;
        let turn = town.node().look_up(Some(long.clone())).await;
        assert_eq!(turn.standing, Standing::Expired, "said, and again after a reload");
        assert_eq!(town.node().status(&turn).position, None);
        assert_eq!(town.node().come(Some(long.clone()), true).await.standing, Standing::Expired);
    }
    let anew = queued(&town.node().join_again(Some(long.clone())).await);
    assert!(anew.score > here.score, "behind those who stayed");
    let Place::Waiting { score, .. } = town.place(short).await else { panic!("lost the place") };
    assert_eq!(score, short.score);
}

#[tokio::test(start_paused = true)]
async fn b03_reloads_and_tabs_leave_one_entry_at_its_rank() {
    let town = Town::of(2, |config| config.policy.capacity = 1).await;
    town.admit(1).await;
    let crowd = town.queue_up(3).await;
    let middle = &crowd[1];
    for reload in 0..20 {
        let turn = town.nodes[reload % 2].come(Some(middle.clone()), true).await;
        assert_eq!(queued(&turn), *middle);
    }
    let tabs = (0..20).map(|tab| town.nodes[tab % 2].come(Some(middle.clone()), true));
    for turn in join_all(tabs).await {
        assert_eq!(queued(&turn), *middle);
    }
    sleep(SECOND).await;
    let now = town.now().await;
    assert_eq!((now.line, now.joined_total), (3, 3));
    for (ahead, claims) in (0..).zip(&crowd) {
        assert_eq!(town.node().view().sketch.ahead_of(claims.score), Some(ahead));
    }
}

#[tokio::test(start_paused = true)]
async fn b04_a_position_never_rises_while_others_join_leave_and_are_called() {
    let town = Town::of(2, |config| {
        config.policy.capacity = 5;
        config.policy.rate = 2.0;
        config.policy.burst = 1;
    })
    .await;
    let mut inside = town.admit(1).await;
    let before = town.queue_up(40).await;
    let ann = town.queue_up(1).await.remove(0);
    let (leavers, others) = before.split_at(20);
    for claims in others {
        tokio::spawn(poll_until_in(Arc::clone(&town.nodes[1]), claims.clone(), SECOND));
    }
    let mut leavers = leavers.iter().step_by(2);
    let mut last = u64::MAX;
    for turn in 0..120 {
        // Somebody joins behind, somebody in front leaves or is let in, one node or the other answers.
        town.nodes[turn % 2].come(None, false).await;
        if turn % 2 == 0
            && let Some(claims) = leavers.next()
        {
            town.nodes[turn / 2 % 2].leave(claims.sub, None).await;
        }
        if let Some(buyer) = inside.pop() {
            town.node().release(&buyer);
        }
        let room = &town.nodes[turn / 3 % 2];
        let poll = room.look_up(Some(ann.clone())).await;
        if let Standing::Admitted(_) = poll.standing {
            break;
        }
        let position = room.status(&poll).position.unwrap_or(last);
        assert!(position <= last, "{last} rose to {position}");
        last = position;
        sleep(SECOND / 2).await;
    }
    assert!(last < 41, "nobody moved");
}

/// 75 s between two polls, as browsers allow a hidden tab, which is longer than `absent_after` and shorter than the
/// claim window and the grace.
#[tokio::test(start_paused = true)]
async fn b23_a_hidden_tab_keeps_its_place_and_gets_in_when_its_turn_comes() {
    // Wherever in its rhythm the slot becomes free, and whether others wait behind or not.
    for (free_after, behind) in [(160, 0), (185, 3), (376, 3)] {
        let town = Town::of(1, |config| config.policy.capacity = 1).await;
        let buyer = town.admit(1).await.remove(0);
        let hidden = town.queue_up(1).await.remove(0);
        let others = town.queue_up(behind).await;
        let rhythm = Duration::from_secs(75);
        let tab = tokio::spawn(poll_until_in(Arc::clone(town.node()), hidden.clone(), rhythm));
        let present: Vec<_> = others
            .iter()
            .map(|claims| tokio::spawn(poll_until_in(Arc::clone(town.node()), claims.clone(), 5 * SECOND)))
            .collect();
        sleep(Duration::from_secs(free_after)).await;
        let Place::Waiting { score, .. } = town.place(&hidden).await else { panic!("lost the place") };
        assert_eq!(score, hidden.score);
        let freed = Instant::now();
        town.node().release(&buyer);
        // Whoever is let in meanwhile buys for ten seconds.
        let node = Arc::clone(town.node());
        let buyers = tokio::spawn(async move {
            for other in present {
                let (session, _) = other.await.unwrap();
                sleep(10 * SECOND).await;
                node.release(&session);
            }
        });
        let (admitted, at) = tab.await.unwrap();
        assert_eq!((admitted.sub, admitted.score), (hidden.sub, hidden.score));
        // It is back in line with one poll, called before all others, and in with the next.
        assert!(at - freed <= 2 * rhythm + 3 * SECOND, "{:?} after the slot was free", at - freed);
        assert_eq!(town.now().await.no_shows_total, 0, "called, it shows up in time");
        town.node().release(&admitted);
        buyers.await.unwrap();
    }
}

/// Five hundred at once, on two nodes, for fifty slots.
#[tokio::test(start_paused = true)]
async fn b20_two_nodes_never_admit_more_than_the_capacity() {
    let town = Arc::new(
        Town::of(2, |config| {
            config.policy.capacity = 50;
            config.policy.rate = 100.0;
            config.policy.burst = 50;
        })
        .await,
    );
    let crowd: Vec<_> = (0_u32..500)
        .map(|number| {
            let town = Arc::clone(&town);
            tokio::spawn(async move {
                let room = &town.nodes[number as usize % 2];
                let turn = room.come(None, true).await;
                let bought = match turn.standing {
                    Standing::Admitted(session) => *session,
                    _ => poll_until_in(Arc::clone(room), queued(&turn), SECOND).await.0,
                };
                sleep(Duration::from_millis(500 + u64::from(number * 37 % 1_000))).await;
                // Done at the other node than the one that let them in.
                town.nodes[number as usize / 2 % 2].release(&bought);
                bought.sub
            })
        })
        .collect();
    let watched = Arc::clone(&town);
    let watch = tokio::spawn(async move {
        let mut most = 0;
        loop {
            let now = watched.now().await;
            most = most.max(now.called + now.inside);
            assert!(now.called + now.inside <= 50, "{} called, {} inside", now.called, now.inside);
            if now.admitted_total == 500 && now.inside == 0 {
                return most;
            }
            sleep(Duration::from_millis(25)).await;
        }
    });
    let visitors: BTreeSet<_> = join_all(crowd).await.into_iter().map(Result::unwrap).collect();
    assert_eq!((visitors.len(), watch.await.unwrap()), (500, 50), "everybody, and every slot was used");
}
