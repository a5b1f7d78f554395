//! G5: the store loses everything, and nobody loses their place.

use std::time::Duration;

use stanchion::queue::{Arrival, Mode, Past, Place, Policy, Proof, Score, VisitorId};

use super::world::{World, is_inside, policy, score, visitor, visitors};

super::on_both_engines!(
    order_and_sessions_survive_a_flush,
    a_place_given_up_stays_given_up,
    a_proof_is_believed_for_one_grace_only,
    places_two_nodes_gave_the_same_moment_do_not_tie,
    a_visitor_with_session_and_place_keeps_the_session,
    a_room_that_takes_nobody_restores_nobody,
    what_is_over_since_the_loss_is_not_given_back,
    a_session_that_came_back_and_was_released_late_stays_released,
);

const SETTLE: Duration = Duration::from_secs(10);

struct Token {
    visitor: VisitorId,
    proof: Proof,
}

async fn crowd_in_line(world: &World, numbers: std::ops::Range<u32>) -> Vec<Token> {
    let mut tokens = Vec::new();
    for visitor in visitors(numbers) {
        let score = world.wait_in_line(visitor).await;
        tokens.push(Token { visitor, proof: Proof { score, issued_at_ms: world.now_ms() } });
        world.clock.advance(Duration::from_millis(7));
    }
    tokens
}

async fn lose_and_configure(world: &mut World, policy: &Policy) {
    world.lose_everything();
    world.clock.advance(Duration::from_secs(2));
    assert!(world.queue.call(1).await.unwrap_err().is_transient());
    world.queue.configure(policy, Past::Unknown).await.unwrap();
}

async fn order_and_sessions_survive_a_flush(world: World) {
    let policy = Policy { capacity: 4, ..policy() };
    let mut world = world.configured(policy.clone()).await;
    let mut sessions = Vec::new();
    for visitor in visitors(100..103) {
        match world.arrive(visitor, None, true).await {
            Place::Inside { expires_ms, .. } => sessions.push((visitor, world.now_ms(), expires_ms)),
            other => panic!("not inside but {other:?}"),
        }
    }
    let tokens = crowd_in_line(&world, 0..60).await;
    lose_and_configure(&mut world, &policy).await;

    // They come back in any order, by poll, by reload, by claim; strangers come between them.
    let (mut by_poll, mut later) = (Vec::new(), Vec::new());
    for (turn, Token { visitor, proof }) in (0..).zip(tokens.iter().rev()) {
        match turn % 3 {
            0 => by_poll.push((*visitor, *proof)),
            1 => assert_eq!(
                world.arrive(*visitor, Some(*proof), true).await,
                Place::Waiting { score: proof.score, ahead: None }
            ),
            _ => {
                let place = world.queue.claim(*visitor, Some(*proof)).await.unwrap();
                assert_eq!(place, Place::Waiting { score: proof.score, ahead: None });
            }
        }
        if turn % 10 == 0 {
            later.push(score(world.arrive(super::world::visitor(500 + turn), None, true).await));
        }
    }
    let places = world.queue.seen(&by_poll).await.unwrap();
    assert!(
        places
            .iter()
            .zip(&by_poll)
            .all(|(place, (_, proof))| *place == Place::Waiting { score: proof.score, ahead: None })
    );
    assert!(later.iter().all(|later| *later > tokens[59].proof.score), "a newcomer got before the old line");
    assert_eq!(world.call_all().await, 0, "the room settles first");

    for (visitor, issued_ms, expires_ms) in sessions {
        let place = world.queue.renew(visitor, issued_ms, expires_ms, Duration::ZERO, u64::MAX).await.unwrap();
        assert!(matches!(place, Place::Inside { expires_ms: end, .. } if end == expires_ms), "{place:?}");
    }
    world.pass(SETTLE).await;
    assert_eq!(world.call_all().await, 1, "three of four slots are still theirs");
    for Token { visitor, .. } in &tokens {
        let place = world.claim(*visitor).await;
        assert!(is_inside(place), "not next: {place:?}");
        world.queue.release(*visitor).await.unwrap();
        world.queue.call(50).await.unwrap();
    }
}

async fn a_place_given_up_stays_given_up(world: World) {
    let mut world = world.configured(policy()).await;
    let tokens = crowd_in_line(&world, 0..3).await;
    for Token { visitor, .. } in &tokens {
        world.queue.leave(*visitor).await.unwrap();
    }
    world.clock.advance(Duration::from_secs(1));
    let Token { visitor, proof } = &tokens[0];
    assert_eq!(world.arrive(*visitor, Some(*proof), true).await, Place::None);
    assert_eq!(world.queue.claim(*visitor, Some(*proof)).await.unwrap(), Place::None);
    assert_eq!(world.queue.seen(&[(*visitor, *proof)]).await.unwrap(), [Place::None]);
    assert_eq!(world.snapshot().await.line, 0);

    // Nor does a token of the history after a loss bring anything back.
    lose_and_configure(&mut world, &policy()).await;
    let tokens = crowd_in_line(&world, 10..11).await;
    world.queue.leave(tokens[0].visitor).await.unwrap();
    assert_eq!(world.arrive(tokens[0].visitor, Some(tokens[0].proof), true).await, Place::None);
}

async fn a_proof_is_believed_for_one_grace_only(world: World) {
    let mut world = world.configured(policy()).await;
    let tokens = crowd_in_line(&world, 0..2).await;
    lose_and_configure(&mut world, &policy()).await;
    world.pass(Duration::from_secs(299)).await;
    let [early, late] = &tokens[..] else { unreachable!() };
    score(world.arrive(early.visitor, Some(early.proof), true).await);
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(world.arrive(late.visitor, Some(late.proof), true).await, Place::None);
    let nonsense = Proof { score: Score(u64::MAX >> 8), ..late.proof };
    assert_eq!(world.arrive(late.visitor, Some(nonsense), true).await, Place::None);
}

async fn places_two_nodes_gave_the_same_moment_do_not_tie(world: World) {
    let mut world = world.configured(policy()).await;
    let issued_at_ms = world.now_ms();
    let proof = Proof { score: Score(super::world::START_US - 5), issued_at_ms };
    lose_and_configure(&mut world, &policy()).await;
    let arrivals: Vec<Arrival> =
        visitors(0..3).into_iter().map(|visitor| Arrival { visitor, proof: Some(proof), may_enter: false }).collect();
    let mut scores: Vec<u64> = world.queue.join(&arrivals).await.unwrap().into_iter().map(|p| score(p).0).collect();
    scores.sort_unstable();
    assert_eq!(scores, [proof.score.0, proof.score.0 + 1, proof.score.0 + 2]);
}

async fn a_visitor_with_session_and_place_keeps_the_session(world: World) {
    let mut world = world.configured(policy()).await;
    let issued_ms = world.now_ms();
    let queue_proof = Proof { score: Score(super::world::START_US), issued_at_ms: issued_ms };
    lose_and_configure(&mut world, &policy()).await;
    score(world.arrive(visitor(1), Some(queue_proof), true).await);
    let ttl = Duration::from_mins(1);
    let place = world.queue.renew(visitor(1), issued_ms, issued_ms + 600_000, ttl, u64::MAX).await.unwrap();
    assert!(is_inside(place));
    let now = world.snapshot().await;
    assert_eq!((now.line, now.inside), (0, 1));
}

async fn a_room_that_takes_nobody_restores_nobody(world: World) {
    let mut world = world.configured(policy()).await;
    let tokens = crowd_in_line(&world, 0..1).await;
    lose_and_configure(&mut world, &policy()).await;
    world.queue.set_mode(Mode::Closed).await.unwrap();
    let place = world.arrive(tokens[0].visitor, Some(tokens[0].proof), true).await;
    assert_eq!(place, Place::NotOpen(Mode::Closed));
}

/// Else whoever had a good place before the loss could use it again and again, for one grace, before all others.
async fn what_is_over_since_the_loss_is_not_given_back(world: World) {
    let mut world = world.configured(policy()).await;
    let old_session_ms = world.now_ms();
    let tokens = crowd_in_line(&world, 0..3).await;
    lose_and_configure(&mut world, &policy()).await;
    for Token { visitor, proof } in &tokens {
        score(world.arrive(*visitor, Some(*proof), true).await);
    }
    world.pass(SETTLE).await;
    let [bought, left, inside] = &tokens[..] else { unreachable!() };
    world.queue.leave(left.visitor).await.unwrap();
    world.call_all().await;
    for Token { visitor, .. } in [bought, inside] {
        assert!(is_inside(world.claim(*visitor).await));
    }
    world.queue.release(bought.visitor).await.unwrap();
    for Token { visitor, proof } in [bought, left] {
        assert_eq!(world.arrive(*visitor, Some(*proof), true).await, Place::None);
        assert_eq!(world.queue.claim(*visitor, Some(*proof)).await.unwrap(), Place::None);
        assert_eq!(world.queue.seen(&[(*visitor, *proof)]).await.unwrap(), [Place::None]);
    }
    let ends_ms = old_session_ms + 600_000;
    let renewed = world.queue.renew(bought.visitor, old_session_ms, ends_ms, Duration::ZERO, u64::MAX).await.unwrap();
    assert_eq!(renewed, Place::None, "a session that ended since the loss");

    // They may come anew like anybody, and end that too.
    assert!(is_inside(world.arrive(bought.visitor, None, true).await));
    world.queue.release(bought.visitor).await.unwrap();
    assert_eq!(world.arrive(bought.visitor, Some(bought.proof), true).await, Place::None);
    assert!(is_inside(world.claim(inside.visitor).await), "the others keep what they have");
}

/// Its token may live longer than anything else of a lost history is believed.
async fn a_session_that_came_back_and_was_released_late_stays_released(world: World) {
    let mut world = world.configured(policy()).await;
    let (issued_ms, ends_ms) = (world.now_ms(), world.now_ms() + 3_600_000);
    lose_and_configure(&mut world, &policy()).await;
    for visitor in visitors(1..3) {
        let renewed = world.queue.renew(visitor, issued_ms, ends_ms, Duration::ZERO, u64::MAX).await.unwrap();
        assert!(is_inside(renewed));
    }
    world.pass(policy().grace + Duration::from_secs(1)).await;
    assert!(world.queue.release(visitor(1)).await.unwrap());
    assert!(world.queue.leave(visitor(2)).await.unwrap());
    for visitor in visitors(1..3) {
        let renewed = world.queue.renew(visitor, issued_ms, ends_ms, Duration::ZERO, u64::MAX).await.unwrap();
        assert_eq!(renewed, Place::None);
    }
    assert!(is_inside(world.arrive(visitor(1), None, true).await), "free to come anew");
}
