//! A reset starts a new epoch, and a store that falls back to before one does not bring the old one back.

use std::time::Duration;

use stanchion::queue::{Mode, Past, Place, Proof, Score};

use super::{
    draws::{lottery, seed},
    world::{World, is_inside, policy, score, visitor, visitors},
};

super::on_both_engines!(
    after_a_reset_nobody_waits_and_no_old_token_counts,
    a_repeated_reset_changes_nothing,
    a_reset_makes_room_for_another_draw,
    a_state_of_before_a_reset_is_given_up,
    who_was_sent_away_stays_away,
);

/// B26.
async fn after_a_reset_nobody_waits_and_no_old_token_counts(world: World) {
    let world = world.configured(policy()).await;
    assert!(is_inside(world.arrive(visitor(100), None, true).await));
    let mut proofs = Vec::new();
    for who in visitors(0..20) {
        let proof = Proof { score: world.wait_in_line(who).await, issued_at_ms: world.now_ms() };
        proofs.push((who, proof));
        world.clock.advance(Duration::from_millis(1));
    }
    world.queue.call(3).await.unwrap();
    world.queue.set_mode(Mode::SoldOut).await.unwrap();
    world.clock.advance(Duration::from_secs(2));
    assert_eq!(world.queue.reset(1).await.unwrap(), 2);
    let now = world.snapshot().await;
    assert_eq!((now.epoch, now.mode, now.line, now.called, now.inside), (2, Mode::Open, 0, 0, 0));
    assert_eq!((now.joined_total, now.called_total, now.watermark), (0, 0, Score(0)));
    assert_eq!((now.capacity, now.rate), (policy().capacity, policy().rate), "the policy stays");
    if let Some(redis) = &world.redis {
        for key in ["line", "seen", "called", "inside", "notes", "over", "roster"] {
            assert_eq!(redis.command(&format!("EXISTS stanchion:{{main}}:{key}")), ":0\r\n", "{key}");
        }
    }
    let newest = world.wait_in_line(visitor(50)).await;
    assert!(newest > proofs[19].1.score, "no score is given twice");
    assert!(!is_inside(world.claim(visitor(100)).await), "no session of before");
    assert_eq!(world.call_all().await, 0, "no burst: the last admissions may be a moment ago");
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(world.call_all().await, 1);
}

async fn a_repeated_reset_changes_nothing(world: World) {
    let world = world.configured(policy()).await;
    world.wait_in_line(visitor(1)).await;
    assert_eq!(world.queue.reset(1).await.unwrap(), 2);
    let place = world.wait_in_line(visitor(2)).await;
    assert_eq!(world.queue.reset(1).await.unwrap(), 2, "the answer to the first was lost");
    assert_eq!(score(world.look(visitor(2)).await), place);
    assert_eq!(world.queue.reset(2).await.unwrap(), 3);
    assert_eq!(world.snapshot().await.line, 0);
}

async fn a_reset_makes_room_for_another_draw(world: World) {
    let world = world.configured(lottery()).await;
    world.queue.seal(1, [Some(&seed().commitment("nonce", None)), None, None], None).await.unwrap();
    assert!(matches!(world.arrive(visitor(1), None, true).await, Place::Registered { .. }));
    world.queue.reset(1).await.unwrap();
    let draw = world.snapshot().await.draw.unwrap();
    assert_eq!((draw.roster, draw.commitment, draw.digest, draw.is_done), (0, None, None, false));
    world.queue.seal(1, [Some("of the old epoch"), None, None], None).await.unwrap();
    assert_eq!(world.snapshot().await.draw.unwrap().commitment, None);
}

/// An older copy of the store's data, or a node that set the room up before anybody could tell it the epoch.
async fn a_state_of_before_a_reset_is_given_up(world: World) {
    let mut world = world.configured(policy()).await;
    world.queue.reset(1).await.unwrap();
    let mine = Proof { score: world.wait_in_line(visitor(1)).await, issued_at_ms: world.now_ms() };
    let seen = world.snapshot().await;
    world.lose_everything();
    world.clock.advance(Duration::from_secs(1));
    world.queue.configure(&policy(), Past::Unknown).await.unwrap();
    world.wait_in_line(visitor(2)).await;
    assert_eq!(world.snapshot().await.epoch, 1);

    world.queue.configure(&policy(), Past::Seen(&seen)).await.unwrap();
    let now = world.snapshot().await;
    assert_eq!((now.epoch, now.line), (2, 0));
    assert!(now.settle_until_ms > now.now_ms, "places of this epoch register first");
    assert_eq!(score(world.arrive(visitor(1), Some(mine), true).await), mine.score);
    // A node that is behind changes nothing of it.
    world.queue.configure(&policy(), Past::Unknown).await.unwrap();
    let now = world.snapshot().await;
    assert_eq!((now.epoch, now.line), (2, 1));
}

async fn who_was_sent_away_stays_away(world: World) {
    let mut world = world.configured(policy()).await;
    let issued_ms = world.now_ms();
    world.arrive(visitor(1), None, true).await;
    let waiting = Proof { score: world.wait_in_line(visitor(2)).await, issued_at_ms: issued_ms };
    for who in visitors(1..3) {
        assert!(world.queue.revoke(who).await.unwrap());
    }
    let told = world.snapshot().await.ended;
    assert_eq!(told.iter().map(|(who, _)| *who).collect::<Vec<_>>(), visitors(1..3));

    // Also when the store does not know them: it lost what it knew, and they have not come back yet.
    world.lose_everything();
    world.clock.advance(Duration::from_secs(1));
    world.queue.configure(&policy(), Past::Unknown).await.unwrap();
    for who in visitors(1..3) {
        assert!(!world.queue.revoke(who).await.unwrap());
    }
    assert_eq!(world.snapshot().await.ended.len(), 2);
    let ends_ms = issued_ms + 600_000;
    let renewed = world.queue.renew(visitor(1), issued_ms, ends_ms, Duration::ZERO, u64::MAX).await.unwrap();
    assert_eq!(renewed, Place::None);
    assert_eq!(world.arrive(visitor(2), Some(waiting), true).await, Place::None);

    // A node that starts within the life of such a session's token still learns of it.
    world.pass(Duration::from_secs(599)).await;
    assert_eq!(world.snapshot().await.ended.len(), 2);
    world.pass(Duration::from_secs(2)).await;
    assert_eq!(world.snapshot().await.ended.len(), 0, "nothing is kept for ever");
}
