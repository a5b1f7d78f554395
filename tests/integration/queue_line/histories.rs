//! G1 to G4 under random histories: many nodes that call, visitors who come, poll, vanish, claim and leave.

use std::{collections::BTreeMap, time::Duration};

use proptest::prelude::*;
use stanchion::{
    clock::Clock as _,
    queue::{Method, NodeId, Pace, Past, Place, Policy, Schedule, Score, VisitorId},
};

use super::{
    draws::next_step_of_a_node,
    pacing::LEASE,
    world::{START_US, World, policy, visitor, visitors},
};

const VISITORS: u32 = 25;

#[derive(Debug, Clone, Copy)]
pub enum Step {
    Come(u32, bool),
    Poll(u32),
    Claim(u32),
    Renew(u32),
    Release(u32),
    Leave(u32),
    /// This many nodes call at once.
    Call(u8),
    Sweep,
    Wait(u32),
    Capacity(u32),
    /// This node reports; if it holds the lease it decides on a rate, in tenths, and a capacity.
    Decide(u8, u32, u32),
    /// A node takes the next step of the draw, this many at once.
    Draw(u32),
    Reset,
    Revoke(u32),
    /// They were ended so many milliseconds ago, says a node.
    End(u32, u32),
}

pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let who = 0..VISITORS;
    let step = prop_oneof![
        6 => (who.clone(), any::<bool>()).prop_map(|(who, may_enter)| Step::Come(who, may_enter)),
        4 => who.clone().prop_map(Step::Poll),
        4 => who.clone().prop_map(Step::Claim),
        1 => who.clone().prop_map(Step::Renew),
        2 => who.clone().prop_map(Step::Release),
        1 => who.clone().prop_map(Step::Leave),
        1 => who.clone().prop_map(Step::Revoke),
        1 => (who, 0_u32..9_000).prop_map(|(who, ago)| Step::End(who, ago)),
        3 => (1_u32..6).prop_map(Step::Draw),
        1 => (0_u32..8).prop_map(|rare| if rare == 0 { Step::Reset } else { Step::Draw(20) }),
        6 => (1_u8..5).prop_map(Step::Call),
        2 => Just(Step::Sweep),
        6 => (1_u32..4_000).prop_map(Step::Wait),
        1 => (0_u32..10).prop_map(Step::Capacity),
        2 => (1_u8..4, 0_u32..40, 0_u32..12).prop_map(|(node, rate, capacity)| Step::Decide(node, rate, capacity)),
    ];
    prop::collection::vec(step, 1..most)
}

/// A policy so tight that every rule is met often.
pub fn tight() -> Policy {
    Policy {
        capacity: 8,
        rate: 1.0,
        burst: 2,
        claim_window: Duration::from_secs(8),
        session_ttl: Duration::from_secs(12),
        absent_after: Duration::from_secs(6),
        grace: Duration::from_secs(15),
        settle: Duration::from_secs(10),
        schedule: Schedule::default(),
    }
}

/// One node's report, and its decision if it holds the lease. Returns whether that came into force.
pub async fn decide(world: &World, node: u8, rate: u32, capacity: u32) -> bool {
    let node = NodeId::from_bits(u64::from(node));
    let reported = world.queue.report(node, &format!("{node} said"), LEASE).await.unwrap();
    let rate = f64::from(rate) / 10.0;
    let pace = Pace { capacity, rate, call_rate: rate * 1.5, reason: 4 };
    let in_force = world.queue.decide(node, reported.configured_us, pace).await.unwrap();
    assert_eq!(in_force, reported.holds_lease);
    in_force
}

/// The same with a lottery that opens after a while.
pub fn tight_lottery() -> Policy {
    let schedule = Schedule {
        prequeue_at_ms: Some(START_US / 1_000 - 1),
        opens_at_ms: Some(START_US / 1_000 + 10_000),
        closes_at_ms: None,
        method: Method::Lottery,
    };
    Policy { schedule, ..tight() }
}

/// What the test itself knows of the line.
struct Witness {
    world: World,
    policy: Policy,
    last_seen_ms: BTreeMap<VisitorId, u64>,
    admissions_us: Vec<u64>,
    /// Each rate in force, and since when.
    rates: Vec<(u64, f64)>,
    occupied: u64,
}

impl Witness {
    fn new(world: World, policy: Policy) -> Self {
        let rates = vec![(world.clock.unix_micros(), policy.rate)];
        Self { world, policy, last_seen_ms: BTreeMap::new(), admissions_us: Vec::new(), rates, occupied: 0 }
    }

    async fn play(&mut self, step: Step) {
        let (queue, now_ms) = (self.world.queue.clone(), self.world.now_ms());
        match step {
            Step::Come(who, may_enter) => {
                let known = !matches!(self.world.look(visitor(who)).await, Place::None);
                let place = self.world.arrive(visitor(who), None, may_enter).await;
                if !known {
                    self.last_seen_ms.insert(visitor(who), now_ms);
                    self.nobody_was_overtaken(&[], place).await;
                }
                self.note(place);
            }
            Step::Poll(who) => {
                queue.seen(&[(visitor(who), super::world::never_believed())]).await.unwrap();
                self.last_seen_ms.insert(visitor(who), now_ms);
            }
            Step::Claim(who) => {
                let place = self.world.claim(visitor(who)).await;
                self.last_seen_ms.insert(visitor(who), now_ms);
                self.note(place);
            }
            Step::Renew(who) => {
                let ttl = self.policy.session_ttl;
                queue.renew(visitor(who), now_ms, now_ms + 9_000, ttl, now_ms + 9_000).await.unwrap();
            }
            Step::Release(who) => drop(queue.release(visitor(who)).await.unwrap()),
            Step::Leave(who) => drop(queue.leave(visitor(who)).await.unwrap()),
            Step::Revoke(who) => drop(queue.revoke(visitor(who)).await.unwrap()),
            Step::End(who, ago_ms) => {
                let at_us = self.world.clock.unix_micros() - u64::from(ago_ms) * 1_000;
                queue.end(&[(visitor(who), at_us)]).await.unwrap();
            }
            Step::Draw(most) => drop(next_step_of_a_node(&self.world, most).await),
            Step::Reset => {
                queue.reset(self.world.snapshot().await.epoch).await.unwrap();
                self.last_seen_ms.clear();
            }
            Step::Call(nodes) => {
                let waiting = self.waiting().await;
                futures_util::future::join_all((0..nodes).map(|_| queue.call(2))).await;
                self.nobody_was_overtaken(&waiting, Place::None).await;
            }
            Step::Sweep => drop(queue.sweep().await.unwrap()),
            Step::Wait(millis) => self.world.clock.advance(Duration::from_millis(u64::from(millis))),
            Step::Capacity(capacity) => {
                self.policy.capacity = capacity;
                queue.configure(&self.policy, Past::Blank).await.unwrap();
            }
            Step::Decide(node, rate, capacity) => {
                if decide(&self.world, node, rate, capacity).await {
                    self.rates.push((self.world.clock.unix_micros(), f64::from(rate) / 10.0));
                }
            }
        }
        self.capacity_holds().await;
    }

    fn note(&mut self, place: Place) {
        if let Place::Inside { fresh: true, admitted_ms, called_ms, .. } = place {
            assert!(called_ms <= admitted_ms && admitted_ms == self.world.now_ms());
            self.admissions_us.push(self.world.clock.unix_micros());
        }
    }

    async fn everybody(&self) -> Vec<(VisitorId, Place)> {
        let everybody = visitors(0..VISITORS);
        let places = self.world.look_at(&everybody).await;
        everybody.into_iter().zip(places).collect()
    }

    async fn waiting(&self) -> Vec<(VisitorId, Score)> {
        let score = |place| if let Place::Waiting { score, .. } = place { Some(score) } else { None };
        self.everybody().await.into_iter().filter_map(|(who, place)| Some((who, score(place)?))).collect()
    }

    /// G3: whoever of `before` was called came before everyone who is present and still waits, and nobody who went
    /// straight in left a present one waiting.
    async fn nobody_was_overtaken(&self, before: &[(VisitorId, Score)], entered: Place) {
        let after = self.waiting().await;
        let called = before.iter().filter(|entry| !after.contains(entry));
        let last_called = called.filter(|(who, _)| self.is_present(*who)).map(|(_, score)| *score).max();
        let limit =
            if matches!(entered, Place::Inside { fresh: true, .. }) { Some(Score(u64::MAX)) } else { last_called };
        for (who, score) in after {
            assert!(!self.is_present(who) || Some(score) > limit, "{who} at {score:?} was overtaken by {limit:?}");
        }
    }

    fn is_present(&self, who: VisitorId) -> bool {
        let absence = self.world.now_ms() - self.last_seen_ms.get(&who).copied().unwrap_or(0);
        u128::from(absence) <= self.policy.absent_after.as_millis()
    }

    /// G1: full is full, and a lower capacity only ever empties the room.
    async fn capacity_holds(&mut self) {
        let now = self.world.snapshot().await;
        let occupied = now.called + now.inside;
        assert!(now.capacity <= self.policy.capacity, "{} in force", now.capacity);
        assert!(occupied <= u64::from(now.capacity).max(self.occupied), "{occupied} of {}", now.capacity);
        self.occupied = occupied;
        let (mut line, mut inside, mut called) = (0, 0, 0);
        for (_, place) in self.everybody().await {
            match place {
                Place::Waiting { .. } => line += 1,
                Place::Inside { .. } => inside += 1,
                Place::Called { .. } => called += 1,
                _ => {}
            }
        }
        if now.draw.is_some_and(|draw| !draw.is_done) {
            assert_eq!(now.called_total, 0, "somebody was called before everybody drew");
        }
        assert!(line == now.line && called <= now.called && inside <= now.inside, "two places for one visitor");
    }

    /// G2: in any window, by the rates that were in force in it.
    fn rate_holds(&self) {
        for (first, start) in self.admissions_us.iter().enumerate() {
            for (count, end) in (1_u32..).zip(&self.admissions_us[first..]) {
                let allowed = self.flow(*start, *end) + f64::from(self.policy.burst);
                assert!(f64::from(count) <= allowed + 1e-6, "{count} from {start} to {end}, {allowed} allowed");
            }
        }
    }

    /// How many the rates let through between two moments.
    fn flow(&self, start: u64, end: u64) -> f64 {
        let until = self.rates.iter().skip(1).map(|(since, _)| *since).chain([u64::MAX]);
        let pieces = self.rates.iter().zip(until).map(|((since, rate), until)| {
            let overlap = until.min(end).saturating_sub(start.max(*since));
            rate * Duration::from_micros(overlap).as_secs_f64()
        });
        pieces.sum()
    }
}

fn play(steps: &[Step], policy: Policy, on_redis: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let world = if on_redis { World::on_redis().await } else { World::in_process() };
        let world = world.configured(policy.clone()).await;
        let mut witness = Witness::new(world, policy);
        for step in steps {
            witness.play(*step).await;
        }
        witness.rate_holds();
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn guarantees_hold_in_process(steps in steps(80), lottery in any::<bool>()) {
        play(&steps, if lottery { tight_lottery() } else { tight() }, false);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8) })]

    #[test]
    fn guarantees_hold_on_redis(steps in steps(80), lottery in any::<bool>()) {
        play(&steps, if lottery { tight_lottery() } else { tight() }, true);
    }
}

/// G2 over a long evening: an opening, an idle spell, a second wave; polls at random, rates below and above.
async fn admissions_never_outrun_the_rate(world: World) {
    let policy = Policy { rate: 7.0, burst: 5, capacity: 40, ..policy() };
    let world = world.configured(policy.clone()).await;
    let mut witness = Witness::new(world, policy);
    let mut next = 0;
    for tick in 0_u32..300 {
        // Two waves, the second after a minute in which nothing happened.
        if tick == 150 {
            witness.world.pass(Duration::from_mins(1)).await;
        }
        if tick % 150 < 40 {
            for _ in 0..4 {
                let place = witness.world.arrive(visitor(next), None, true).await;
                witness.note(place);
                next += 1;
            }
        }
        witness.world.queue.call(50).await.unwrap();
        for number in (0..next).filter(|number| (number * 7 + tick * 13) % 11 == 0) {
            let place = witness.world.claim(visitor(number)).await;
            witness.note(place);
            if matches!(place, Place::Inside { .. }) && (number + tick) % 3 == 0 {
                witness.world.queue.release(visitor(number)).await.unwrap();
            }
        }
        witness.world.clock.advance(Duration::from_millis(100));
    }
    witness.rate_holds();
    assert!(witness.admissions_us.len() > 100, "only {} admitted", witness.admissions_us.len());
}

super::on_both_engines!(admissions_never_outrun_the_rate);
