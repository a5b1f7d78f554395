//! The pre-queue and its draw: everybody who came before the opening gets an order that nobody could choose.

use std::time::Duration;

use stanchion::{
    clock::Clock as _,
    queue::{
        Draw, Method, Mode, Past, Place, Policy, Proof, Schedule, Score, VisitorId,
        lottery::{RosterDigest, Seed},
    },
};

use super::world::{START_US, World, is_called, is_inside, policy, score, visitor, visitors};

super::on_both_engines!(
    a_place_in_the_roster_is_one_and_repeats_only_read,
    who_leaves_before_the_opening_is_not_in_the_roster_and_after_it_draws_nothing,
    the_draw_is_that_of_seed_and_public_value_and_late_ones_are_behind,
    nobody_is_called_before_everybody_drew,
    nodes_that_interleave_die_and_repeat_draw_the_same,
    what_is_published_first_stays,
    nothing_is_published_before_its_time,
    nobody_takes_part_before_the_commitment,
    a_digest_of_a_roster_that_grew_meanwhile_is_not_taken,
    a_draw_of_another_epoch_is_refused,
    a_paused_room_draws_when_it_goes_on,
    an_opening_put_off_after_the_draw_makes_no_other,
    it_closes_by_the_stores_clock,
    a_loss_in_the_pre_queue_loses_no_place_in_the_draw,
    a_loss_between_the_digest_and_the_draw_keeps_order_and_facts,
    a_loss_after_the_draw_keeps_the_order,
    a_loss_in_the_pre_queue_is_made_good_until_the_opening_and_then_behind_the_drawn,
    a_second_loss_after_the_digest_keeps_both_the_drawn_and_the_others,
    who_comes_for_the_draw_when_it_was_done_over_a_lost_roster_is_told_to_draw,
    nobody_is_called_before_the_drawn_had_time_to_come_back,
    the_roster_counts_as_it_was_published_after_a_loss,
    who_was_put_back_proves_it_after_a_second_loss_and_nobody_else_does,
    who_left_the_roster_is_not_put_back_by_a_token_of_before,
);

const OPENS_MS: u64 = START_US / 1_000 + 60_000;
const SETTLE: Duration = Duration::from_secs(10);

/// Takes visitors at once, and draws in a minute.
pub fn lottery() -> Policy {
    let schedule = Schedule {
        prequeue_at_ms: Some(START_US / 1_000 - 1_000),
        opens_at_ms: Some(OPENS_MS),
        closes_at_ms: None,
        method: Method::Lottery,
    };
    Policy { schedule, ..policy() }
}

pub fn seed() -> Seed {
    Seed::new([7; 32])
}

async fn prequeue(world: World) -> World {
    let world = world.configured(lottery()).await;
    commit(&world, 1).await;
    world
}

async fn commit(world: &World, epoch: u64) {
    world.queue.seal(epoch, [Some(&seed().commitment("nonce", None)), None, None], None).await.unwrap();
}

async fn register(world: &World, who: VisitorId) -> Score {
    match world.arrive(who, None, true).await {
        Place::Registered { arrival, .. } => arrival,
        other => panic!("not in the roster but {other:?}"),
    }
}

/// In the roster of this history, or in the one that was closed.
async fn in_roster(world: &World, arrival: Score) -> Place {
    let now = world.snapshot().await;
    let sealed_since_ms = now.draw.unwrap().sealed_since_ms;
    Place::Registered { arrival, since_ms: if sealed_since_ms > 0 { sealed_since_ms } else { now.since_ms } }
}

fn arrival_of(place: Place) -> Option<Score> {
    match place {
        Place::Registered { arrival, .. } => Some(arrival),
        _ => None,
    }
}

/// This many come in the pre-queue, one a millisecond. The proofs are what their tokens say.
async fn crowd(world: &World, numbers: std::ops::Range<u32>) -> Vec<(VisitorId, Proof)> {
    let mut crowd = Vec::new();
    for who in visitors(numbers) {
        let score = register(world, who).await;
        crowd.push((who, Proof { score, issued_at_ms: world.now_ms() }));
        world.clock.advance(Duration::from_millis(1));
    }
    crowd
}

/// Looked after until the opening.
async fn until_open(world: &World) {
    let left = Duration::from_millis(OPENS_MS.saturating_sub(world.now_ms()));
    world.pass(left).await;
}

async fn facts(world: &World) -> Draw {
    world.snapshot().await.draw.unwrap()
}

/// What a node does to close the roster: reads it in stretches, and publishes.
async fn close(world: &World, stretch: u32) -> String {
    let (mut digest, mut after, mut count) = (RosterDigest::new(), Score(0), 0);
    loop {
        let part = world.queue.roster(after, stretch).await.unwrap();
        let Some(&(_, last)) = part.last() else { break };
        count += part.len() as u64;
        for &(who, arrival) in &part {
            digest.add(who, arrival);
        }
        after = last;
    }
    let digest = digest.finish();
    let [_, published, _] = world.queue.seal(1, [None, Some(&digest), None], Some(count)).await.unwrap();
    let published = published.expect("the roster is closed");
    world.queue.seal(1, [None, None, Some(&published)], None).await.unwrap();
    published
}

/// One stretch of a node's draw from `after`. Returns where it came to, and whether the roster ended there.
async fn stretch(world: &World, after: Score, most: u32, public: &str) -> (Score, bool) {
    let part = world.queue.roster(after, most).await.unwrap();
    let is_last = part.len() < most as usize;
    let until = part.last().map_or(after, |&(_, arrival)| arrival);
    let lots = seed().with(public);
    let drawn: Vec<_> = part.iter().map(|&(who, _)| (who, lots.of(who))).collect();
    world.queue.draw(1, until, is_last, &drawn).await.unwrap();
    (until, is_last)
}

async fn draw_all(world: &World, public: &str) {
    let mut after = Score(0);
    loop {
        let (until, is_last) = stretch(world, after, 7, public).await;
        after = until;
        if is_last {
            return;
        }
    }
}

/// What a node does next, whatever was done so far, with stretches of this length.
pub async fn next_step_of_a_node(world: &World, most: u32) -> String {
    let now = world.snapshot().await;
    let Some(draw) = now.draw else { return "no lottery".to_owned() };
    if draw.commitment.is_none() {
        commit(world, now.epoch).await;
        return "committed".to_owned();
    }
    let read = world.queue.roster(Score(0), 1_000).await.unwrap();
    let mut digest = RosterDigest::new();
    for &(who, arrival) in &read {
        digest.add(who, arrival);
    }
    let (digest, count) = (digest.finish(), Some(read.len() as u64));
    let [_, digest, _] = world.queue.seal(now.epoch, [None, Some(&digest), None], count).await.unwrap();
    let Some(digest) = digest else { return "not closed".to_owned() };
    world.queue.seal(now.epoch, [None, None, Some(&digest)], None).await.unwrap();
    let part = world.queue.roster(Score(draw.drawn_to), most).await.unwrap();
    let (lots, is_last) = (seed().with(&digest), part.len() < most as usize);
    let until = part.last().map_or(Score(draw.drawn_to), |&(_, arrival)| arrival);
    let drawn: Vec<_> = part.iter().map(|&(who, _)| (who, lots.of(who))).collect();
    let goes_on = world.queue.draw(now.epoch, until, is_last, &drawn).await.unwrap();
    format!("{digest} {} {goes_on}", until.0)
}

/// The order in which the room calls people.
async fn order(world: &World, people: &[VisitorId]) -> Vec<VisitorId> {
    let mut order: Vec<(Score, VisitorId)> = Vec::new();
    for (who, place) in people.iter().zip(world.look_at(people).await) {
        if let Place::Waiting { score, .. } = place {
            order.push((score, *who));
        }
    }
    order.sort_unstable();
    order.into_iter().map(|(_, who)| who).collect()
}

fn drawn_order(people: &[VisitorId], public: &str) -> Vec<VisitorId> {
    let lots = seed().with(public);
    let mut order: Vec<_> = people.to_vec();
    order.sort_by_key(|who| lots.of(*who));
    order
}

async fn a_place_in_the_roster_is_one_and_repeats_only_read(world: World) {
    let world = prequeue(world).await;
    let first = register(&world, visitor(1)).await;
    let before = world.snapshot().await;
    assert_eq!((before.mode, before.line, before.draw.as_ref().unwrap().roster), (Mode::Prequeue, 0, 1));
    for _ in 0..3 {
        world.clock.advance(Duration::from_millis(5));
        assert_eq!(register(&world, visitor(1)).await, first);
        assert_eq!(world.claim(visitor(1)).await, in_roster(&world, first).await);
        assert_eq!(world.look(visitor(1)).await, in_roster(&world, first).await);
        assert_eq!(
            world.queue.seen(&[(visitor(1), super::world::never_believed())]).await.unwrap(),
            [in_roster(&world, first).await]
        );
    }
    let after = world.snapshot().await;
    assert_eq!((after.joined_total, after.draw), (before.joined_total, before.draw));
    assert!(register(&world, visitor(2)).await > first);
    assert_eq!(world.queue.roster(Score(0), 1).await.unwrap(), [(visitor(1), first)]);
    assert_eq!(world.call_all().await, 0);
}

async fn who_leaves_before_the_opening_is_not_in_the_roster_and_after_it_draws_nothing(world: World) {
    let world = prequeue(world).await;
    let crowd = crowd(&world, 0..5).await;
    assert!(world.queue.leave(visitor(0)).await.unwrap());
    assert!(!world.queue.leave(visitor(0)).await.unwrap(), "once");
    assert_eq!(facts(&world).await.roster, 4);
    assert!(register(&world, visitor(0)).await > crowd[4].1.score, "who comes again comes anew");
    assert!(world.queue.leave(visitor(0)).await.unwrap());

    // Nodes read the roster from the opening on: from then on nobody is taken out of it.
    until_open(&world).await;
    assert!(world.queue.leave(visitor(1)).await.unwrap());
    assert!(!world.queue.leave(visitor(1)).await.unwrap(), "once");
    assert_eq!(facts(&world).await.roster, 4);
    assert_eq!(world.look(visitor(1)).await, Place::None);
    let public = close(&world, 3).await;
    assert!(world.queue.leave(visitor(2)).await.unwrap());
    draw_all(&world, &public).await;
    assert_eq!(order(&world, &visitors(0..5)).await, drawn_order(&visitors(3..5), &public));
}

async fn the_draw_is_that_of_seed_and_public_value_and_late_ones_are_behind(world: World) {
    let world = prequeue(world).await;
    crowd(&world, 0..40).await;
    until_open(&world).await;
    let mut late = vec![world.wait_in_line(visitor(100)).await];
    let public = close(&world, 9).await;
    late.push(world.wait_in_line(visitor(101)).await);
    stretch(&world, Score(0), 11, &public).await;
    late.push(world.wait_in_line(visitor(102)).await);
    draw_all(&world, &public).await;
    late.push(world.wait_in_line(visitor(103)).await);

    let now = world.snapshot().await;
    assert_eq!((now.mode, now.line), (Mode::Open, 44));
    let lots = seed().with(&public);
    for who in visitors(0..40) {
        assert_eq!(score(world.look(who).await), lots.of(who));
        assert!(lots.of(who) < late[0]);
    }
    assert!(late.is_sorted(), "first come, first served behind the draw");
    // They are let in in exactly this order.
    let mut expected = drawn_order(&visitors(0..40), &public);
    expected.extend(visitors(100..104));
    for who in expected {
        world.queue.call(1).await.unwrap();
        assert!(is_inside(world.claim(who).await));
    }
}

async fn nobody_is_called_before_everybody_drew(world: World) {
    let world = prequeue(world).await;
    crowd(&world, 0..20).await;
    assert_eq!(world.call_all().await, 0);
    until_open(&world).await;
    assert_eq!(world.snapshot().await.mode, Mode::Drawing);
    assert!(!is_inside(world.arrive(visitor(50), None, true).await), "straight in, before those who drew");
    assert_eq!(world.call_all().await, 0);
    let public = close(&world, 100).await;
    assert_eq!(world.call_all().await, 0);
    let mut after = Score(0);
    for _ in 0..3 {
        (after, _) = stretch(&world, after, 6, &public).await;
        assert_eq!(world.call_all().await, 0);
    }
    stretch(&world, after, 6, &public).await;
    assert_eq!(world.call_all().await, 21);
    assert!(is_called(world.look(visitor(50)).await));
}

async fn nodes_that_interleave_die_and_repeat_draw_the_same(world: World) {
    let world = prequeue(world).await;
    crowd(&world, 0..60).await;
    until_open(&world).await;
    let (one, two) = (close(&world, 7).await, close(&world, 1_000).await);
    assert_eq!(one, two, "whatever the stretches");
    // Two nodes with stretches of their own; the first dies in the middle.
    let (mut first, mut second, mut turn) = (Score(0), Score(0), 0);
    loop {
        turn += 1;
        if turn % 2 == 0 && turn < 6 {
            (first, _) = stretch(&world, first, 8, &one).await;
        }
        let (until, is_last) = stretch(&world, second, 5, &one).await;
        // A stretch that was sent twice.
        stretch(&world, second, 5, &one).await;
        second = until;
        if is_last {
            break;
        }
        assert_eq!(world.snapshot().await.mode, Mode::Drawing);
    }
    let expected = drawn_order(&visitors(0..60), &one);
    assert_eq!(order(&world, &visitors(0..60)).await, expected);
    // A node that was asleep goes on where it was, long after: nobody comes back by it.
    world.queue.call(1).await.unwrap();
    assert!(is_inside(world.claim(expected[0]).await));
    world.queue.release(expected[0]).await.unwrap();
    stretch(&world, Score(0), 60, &one).await;
    assert_eq!(world.look(expected[0]).await, Place::None);
    assert_eq!(order(&world, &visitors(0..60)).await, expected[1..]);
}

async fn what_is_published_first_stays(world: World) {
    let world = prequeue(world).await;
    crowd(&world, 0..3).await;
    let other = Seed::new([8; 32]).commitment("nonce", None);
    let told = world.queue.seal(1, [Some(&other), None, None], None).await.unwrap();
    assert_eq!(told, [Some(seed().commitment("nonce", None)), None, None]);
    until_open(&world).await;
    let digest = close(&world, 10).await;
    for fact in ["another digest", &digest] {
        let told = world.queue.seal(1, [Some(&other), Some(fact), Some("another")], Some(3)).await.unwrap();
        assert_eq!(told, [Some(seed().commitment("nonce", None)), Some(digest.clone()), Some(digest.clone())]);
    }
    assert_eq!(facts(&world).await.digest, Some(digest));
}

async fn nothing_is_published_before_its_time(world: World) {
    let world = prequeue(world).await;
    crowd(&world, 0..3).await;
    let nothing = [Some(seed().commitment("nonce", None)), None, None];
    assert_eq!(world.queue.seal(1, [None, Some("early"), Some("early")], Some(3)).await.unwrap(), nothing);
    until_open(&world).await;
    assert_eq!(
        world.queue.seal(1, [None, None, Some("a beacon")], None).await.unwrap(),
        nothing,
        "a public value before the roster is fixed could be chosen to fit somebody"
    );
    let digest = close(&world, 10).await;
    assert_eq!(facts(&world).await.public, Some(digest));
}

async fn nobody_takes_part_before_the_commitment(world: World) {
    let world = world.configured(lottery()).await;
    assert_eq!(world.arrive(visitor(1), None, true).await, Place::NotOpen(Mode::Scheduled));
    commit(&world, 1).await;
    register(&world, visitor(1)).await;
}

/// Nodes read a roster in stretches; the digest is of one moment all the same.
async fn a_digest_of_a_roster_that_grew_meanwhile_is_not_taken(world: World) {
    let mut world = prequeue(world).await;
    let crowd = crowd(&world, 0..4).await;
    until_open(&world).await;
    world.lose_everything();
    world.queue.configure(&lottery(), Past::Unknown).await.unwrap();
    commit(&world, 1).await;
    world.queue.seen(&crowd[1..]).await.unwrap();
    world.pass(SETTLE).await;
    let read = world.queue.roster(Score(0), 10).await.unwrap();
    world.queue.seen(&crowd[..1]).await.unwrap();
    let mut digest = RosterDigest::new();
    for &(who, arrival) in &read {
        digest.add(who, arrival);
    }
    let [_, published, _] =
        world.queue.seal(1, [None, Some(&digest.finish()), None], Some(read.len() as u64)).await.unwrap();
    assert_eq!(published, None);
    close(&world, 2).await;
    assert_eq!(facts(&world).await.roster, 4);
}

async fn a_draw_of_another_epoch_is_refused(world: World) {
    let world = prequeue(world).await;
    crowd(&world, 0..3).await;
    until_open(&world).await;
    let public = close(&world, 10).await;
    for epoch in [0, 2] {
        assert!(!world.queue.draw(epoch, Score(1), true, &[(visitor(0), Score(1))]).await.unwrap());
        world.queue.seal(epoch, [Some("x"), Some("x"), Some("x")], None).await.unwrap();
    }
    let now = facts(&world).await;
    assert_eq!((now.is_done, now.public), (false, Some(public)));
    assert_eq!(world.snapshot().await.line, 0);
}

async fn a_paused_room_draws_when_it_goes_on(world: World) {
    let world = prequeue(world).await;
    world.queue.set_mode(Mode::Paused).await.unwrap();
    crowd(&world, 0..6).await;
    until_open(&world).await;
    let public = close(&world, 10).await;
    draw_all(&world, &public).await;
    let now = world.snapshot().await;
    assert_eq!((now.mode, now.line), (Mode::Paused, 6));
    assert_eq!(world.call_all().await, 0);
    world.queue.set_mode(Mode::Open).await.unwrap();
    assert_eq!(world.call_all().await, 6);
}

async fn an_opening_put_off_after_the_draw_makes_no_other(world: World) {
    let world = prequeue(world).await;
    crowd(&world, 0..5).await;
    until_open(&world).await;
    let public = close(&world, 10).await;
    draw_all(&world, &public).await;
    let mut later = lottery();
    later.schedule.opens_at_ms = Some(OPENS_MS + 60_000);
    world.queue.configure(&later, Past::Unknown).await.unwrap();
    assert_eq!(world.snapshot().await.mode, Mode::Prequeue);
    world.wait_in_line(visitor(9)).await;
    assert_eq!(world.call_all().await, 0);
    let everybody: Vec<_> = visitors(0..10);
    world.pass_while_present(Duration::from_secs(61), &everybody).await;
    let mut expected = drawn_order(&visitors(0..5), &public);
    expected.push(visitor(9));
    assert_eq!(order(&world, &everybody).await, expected);
    assert_eq!(world.call_all().await, 6);
}

async fn it_closes_by_the_stores_clock(world: World) {
    let mut closing = lottery();
    closing.schedule.closes_at_ms = Some(OPENS_MS + 5_000);
    let world = world.configured(closing).await;
    commit(&world, 1).await;
    crowd(&world, 0..2).await;
    until_open(&world).await;
    let public = close(&world, 10).await;
    draw_all(&world, &public).await;
    world.queue.call(1).await.unwrap();
    world.pass(Duration::from_millis(4_999)).await;
    assert_eq!(world.snapshot().await.mode, Mode::Open);
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(world.snapshot().await.mode, Mode::Closed);
    assert_eq!(world.arrive(visitor(9), None, true).await, Place::NotOpen(Mode::Closed));
    assert_eq!(world.call_all().await, 0);
    assert!(is_inside(world.claim(drawn_order(&visitors(0..2), &public)[0]).await), "a call is a reservation");
    world.queue.set_mode(Mode::Paused).await.unwrap();
    assert_eq!(world.snapshot().await.mode, Mode::Closed, "closed is closed");
}

/// The store forgets everything; a node that remembers what it saw sets it up again.
async fn lose(world: &mut World, remembered: bool) {
    let before = world.snapshot().await;
    world.lose_everything();
    world.clock.advance(Duration::from_secs(1));
    let past = if remembered { Past::Seen(&before) } else { Past::Unknown };
    world.queue.configure(&lottery(), past).await.unwrap();
}

async fn a_loss_in_the_pre_queue_loses_no_place_in_the_draw(world: World) {
    let mut world = prequeue(world).await;
    let crowd = crowd(&world, 0..12).await;
    lose(&mut world, true).await;
    assert_eq!(facts(&world).await.commitment, Some(seed().commitment("nonce", None)));
    let since_ms = world.snapshot().await.since_ms;
    assert_eq!(
        world.queue.seen(&crowd[..6]).await.unwrap(),
        crowd[..6].iter().map(|(_, proof)| Place::Registered { arrival: proof.score, since_ms }).collect::<Vec<_>>()
    );
    for (who, proof) in &crowd[6..] {
        let back = world.arrive(*who, Some(*proof), true).await;
        assert_eq!(back, in_roster(&world, proof.score).await);
    }
    until_open(&world).await;
    let public = close(&world, 5).await;
    draw_all(&world, &public).await;
    assert_eq!(order(&world, &visitors(0..12)).await, drawn_order(&visitors(0..12), &public));
}

async fn a_loss_between_the_digest_and_the_draw_keeps_order_and_facts(world: World) {
    let mut world = prequeue(world).await;
    let crowd = crowd(&world, 0..12).await;
    until_open(&world).await;
    let public = close(&world, 5).await;
    lose(&mut world, true).await;
    let before = facts(&world).await;
    assert_eq!((before.digest, before.public.as_deref()), (Some(public.clone()), Some(&*public)));
    for (who, proof) in &crowd {
        let back = world.arrive(*who, Some(*proof), true).await;
        assert_eq!(back, in_roster(&world, proof.score).await);
    }
    assert_eq!(world.call_all().await, 0);
    // The node draws over a roster that is gone; what everybody drew follows from seed and public value all the same.
    draw_all(&world, &public).await;
    assert!(facts(&world).await.is_done);
    let lots = seed().with(&public);
    let drawn: Vec<_> = crowd.iter().map(|(who, proof)| (*who, Proof { score: lots.of(*who), ..*proof })).collect();
    world.queue.seen(&drawn).await.unwrap();
    assert_eq!(world.call_all().await, 0, "the room settles first");
    assert_eq!(order(&world, &visitors(0..12)).await, drawn_order(&visitors(0..12), &public));
    world.pass(SETTLE).await;
    assert_eq!(world.call_all().await, 12);
}

async fn a_loss_after_the_draw_keeps_the_order(world: World) {
    let mut world = prequeue(world).await;
    let crowd = crowd(&world, 0..12).await;
    until_open(&world).await;
    let public = close(&world, 5).await;
    draw_all(&world, &public).await;
    let late = Proof { score: world.wait_in_line(visitor(30)).await, issued_at_ms: world.now_ms() };
    lose(&mut world, true).await;
    assert!(facts(&world).await.is_done);
    assert_eq!(world.arrive(visitor(30), Some(late), true).await, Place::Waiting { score: late.score, ahead: None });
    let lots = seed().with(&public);
    for (who, proof) in crowd.iter().rev() {
        // Their first token knows only when they came; the node knows what they drew.
        let drawn = Proof { score: lots.of(*who), ..*proof };
        assert_eq!(world.arrive(*who, Some(drawn), true).await, Place::Waiting { score: drawn.score, ahead: None });
    }
    world.pass(SETTLE).await;
    let mut expected = drawn_order(&visitors(0..12), &public);
    expected.push(visitor(30));
    assert!(world.clock.unix_micros() > late.score.0);
    for who in expected {
        world.queue.call(1).await.unwrap();
        assert!(is_inside(world.claim(who).await));
    }
}

/// Nobody need be seen in the pre-queue, and nobody takes part whom the published roster does not name.
async fn a_loss_in_the_pre_queue_is_made_good_until_the_opening_and_then_behind_the_drawn(world: World) {
    let mut world = prequeue(world).await;
    let crowd = crowd(&world, 0..6).await;
    lose(&mut world, true).await;
    // A grace, and more, is over before they come again: the pre-queue is not.
    let short = Policy { grace: Duration::from_secs(20), ..lottery() };
    world.queue.configure(&short, Past::Unknown).await.unwrap();
    world.pass(Duration::from_secs(25)).await;
    let since_ms = world.snapshot().await.since_ms;
    let back = world.queue.seen(&crowd[..3]).await.unwrap();
    assert_eq!(
        back,
        crowd[..3].iter().map(|(_, proof)| Place::Registered { arrival: proof.score, since_ms }).collect::<Vec<_>>()
    );
    until_open(&world).await;
    let public = close(&world, 5).await;
    let mut late = vec![world.wait_in_line(visitor(50)).await];
    // One comes between the digest and the draw, one by a promise, one after the draw; in no order.
    let behind = |at: usize| Place::Waiting { score: crowd[at].1.score, ahead: None };
    assert_eq!(world.queue.seen(&crowd[5..]).await.unwrap(), [behind(5)]);
    draw_all(&world, &public).await;
    let promise = Proof { issued_at_ms: 0, ..crowd[3].1 };
    assert_eq!(world.arrive(visitor(3), Some(promise), true).await, behind(3));
    assert_eq!(world.queue.claim(visitor(4), Some(crowd[4].1)).await.unwrap(), behind(4));
    late.push(world.wait_in_line(visitor(51)).await);
    let mut expected = drawn_order(&visitors(0..3), &public);
    expected.extend(visitors(3..6));
    expected.extend(visitors(50..52));
    let everybody: Vec<_> = visitors(0..60);
    assert_eq!(order(&world, &everybody).await, expected);
    assert_eq!(world.queue.roster(Score(0), 10).await.unwrap().len(), 3, "as published");
    // Once a grace has passed since the opening, a place is given up here as anywhere.
    world.pass(Duration::from_secs(20)).await;
    world.queue.leave(visitor(5)).await.unwrap();
    assert_eq!(world.queue.claim(visitor(5), Some(crowd[5].1)).await.unwrap(), Place::None);
}

async fn a_second_loss_after_the_digest_keeps_both_the_drawn_and_the_others(world: World) {
    let mut world = prequeue(world).await;
    let early = crowd(&world, 0..4).await;
    lose(&mut world, true).await;
    world.queue.seen(&early[..2]).await.unwrap();
    let new = crowd(&world, 10..12).await;
    until_open(&world).await;
    let public = close(&world, 5).await;
    let sealed_since_ms = facts(&world).await.sealed_since_ms;
    assert!(early.iter().all(|(_, proof)| proof.issued_at_ms < sealed_since_ms));
    assert!(new.iter().all(|(_, proof)| proof.issued_at_ms >= sealed_since_ms));
    lose(&mut world, true).await;
    assert_eq!(facts(&world).await.sealed_since_ms, sealed_since_ms, "remembered with the digest");
    // The roster is gone. These were in it for certain, those cannot prove it.
    for (who, proof) in &new {
        let back = world.arrive(*who, Some(*proof), true).await;
        assert_eq!(back, in_roster(&world, proof.score).await);
    }
    for (who, proof) in &early {
        let place = Place::Waiting { score: proof.score, ahead: None };
        assert_eq!(world.arrive(*who, Some(*proof), true).await, place);
    }
    draw_all(&world, &public).await;
    let lots = seed().with(&public);
    let drawn: Vec<_> = new.iter().map(|(who, proof)| (*who, Proof { score: lots.of(*who), ..*proof })).collect();
    world.queue.seen(&drawn).await.unwrap();
    let mut expected = drawn_order(&visitors(10..12), &public);
    expected.extend(visitors(0..4));
    assert_eq!(order(&world, &visitors(0..20)).await, expected);
}

async fn who_comes_for_the_draw_when_it_was_done_over_a_lost_roster_is_told_to_draw(world: World) {
    let mut world = prequeue(world).await;
    let crowd = crowd(&world, 0..9).await;
    until_open(&world).await;
    let public = close(&world, 5).await;
    lose(&mut world, true).await;
    draw_all(&world, &public).await;
    // By nodes that do not know yet that it is done.
    for (who, proof) in &crowd[..3] {
        assert_eq!(arrival_of(world.arrive(*who, Some(*proof), true).await), Some(proof.score));
    }
    for place in world.queue.seen(&crowd[3..6]).await.unwrap() {
        assert!(arrival_of(place).is_some(), "{place:?}");
    }
    for (who, proof) in &crowd[6..] {
        assert_eq!(arrival_of(world.queue.claim(*who, Some(*proof)).await.unwrap()), Some(proof.score));
    }
    assert_eq!(world.snapshot().await.line, 0);
    let lots = seed().with(&public);
    let drawn: Vec<_> = crowd.iter().map(|(who, proof)| (*who, Proof { score: lots.of(*who), ..*proof })).collect();
    world.queue.seen(&drawn).await.unwrap();
    assert_eq!(order(&world, &visitors(0..12)).await, drawn_order(&visitors(0..9), &public));
}

/// G3, when the roster was lost between the digest and the draw.
async fn nobody_is_called_before_the_drawn_had_time_to_come_back(world: World) {
    let mut world = prequeue(world).await;
    let crowd = crowd(&world, 0..9).await;
    until_open(&world).await;
    let public = close(&world, 5).await;
    lose(&mut world, true).await;
    world.wait_in_line(visitor(50)).await;
    world.pass(SETTLE).await;
    draw_all(&world, &public).await;
    assert!(facts(&world).await.is_done);
    assert_eq!(world.call_all().await, 0, "a newcomer is called before all who drew");
    assert!(!is_inside(world.arrive(visitor(51), None, true).await), "straight in, before those who drew");
    world.pass(SETTLE.checked_sub(Duration::from_millis(1)).unwrap()).await;
    let lots = seed().with(&public);
    let drawn: Vec<_> = crowd.iter().map(|(who, proof)| (*who, Proof { score: lots.of(*who), ..*proof })).collect();
    world.queue.seen(&drawn).await.unwrap();
    assert_eq!(world.call_all().await, 0);
    world.pass(Duration::from_millis(1)).await;
    for who in drawn_order(&visitors(0..9), &public) {
        world.queue.call(1).await.unwrap();
        assert!(is_inside(world.claim(who).await));
    }
}

async fn the_roster_counts_as_it_was_published_after_a_loss(world: World) {
    let mut world = prequeue(world).await;
    crowd(&world, 0..9).await;
    until_open(&world).await;
    let public = close(&world, 5).await;
    assert_eq!(facts(&world).await.roster, 9);
    lose(&mut world, true).await;
    assert_eq!(facts(&world).await.roster, 9);
    draw_all(&world, &public).await;
    assert_eq!(facts(&world).await.roster, 9);
    // Also where a node knew nothing at first, and another says it again.
    let known = facts(&world).await;
    lose(&mut world, false).await;
    assert_eq!(facts(&world).await.roster, 0);
    world.pass(SETTLE).await;
    world.queue.seal_again(1, &known).await.unwrap();
    assert_eq!(facts(&world).await.roster, 9);
}

/// What a node puts into the token of who was put back: since when they are in a roster.
fn given_again(who: VisitorId, place: Place) -> (VisitorId, Proof) {
    match place {
        Place::Registered { arrival, since_ms } => {
            (who, Proof { score: arrival, issued_at_ms: since_ms.max(arrival.0 / 1_000) })
        }
        other => panic!("not in the roster but {other:?}"),
    }
}

async fn who_was_put_back_proves_it_after_a_second_loss_and_nobody_else_does(world: World) {
    let mut world = prequeue(world).await;
    let first = crowd(&world, 0..6).await;
    lose(&mut world, true).await;
    let back = world.queue.seen(&first[..4]).await.unwrap();
    let back: Vec<_> = first.iter().zip(back).map(|((who, _), place)| given_again(*who, place)).collect();
    until_open(&world).await;
    let public = close(&world, 5).await;
    lose(&mut world, true).await;
    for (who, proof) in &back {
        assert_eq!(world.arrive(*who, Some(*proof), true).await, in_roster(&world, proof.score).await);
    }
    for (who, proof) in &first[4..] {
        let behind = Place::Waiting { score: proof.score, ahead: None };
        assert_eq!(world.arrive(*who, Some(*proof), true).await, behind, "was not back when it was closed");
    }
    draw_all(&world, &public).await;
    let lots = seed().with(&public);
    let drawn: Vec<_> = back.iter().map(|(who, proof)| (*who, Proof { score: lots.of(*who), ..*proof })).collect();
    world.queue.seen(&drawn).await.unwrap();
    let mut expected = drawn_order(&visitors(0..4), &public);
    expected.extend(visitors(4..6));
    assert_eq!(order(&world, &visitors(0..10)).await, expected);
}

async fn who_left_the_roster_is_not_put_back_by_a_token_of_before(world: World) {
    let mut world = prequeue(world).await;
    let first = crowd(&world, 0..2).await;
    lose(&mut world, true).await;
    let back = world.queue.seen(&first).await.unwrap();
    let (who, again) = given_again(visitor(0), back[0]);
    world.clock.advance(Duration::from_millis(1));
    assert!(world.queue.leave(who).await.unwrap());
    for proof in [again, first[0].1] {
        assert_eq!(world.arrive(who, Some(proof), true).await, Place::None);
    }
    // They come again, at the end.
    assert!(register(&world, who).await > again.score);
    assert_eq!(facts(&world).await.roster, 2);
}
