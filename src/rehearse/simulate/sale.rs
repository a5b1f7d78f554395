//! The sale itself: one step of virtual time after the other.

use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

use super::{
    Scenario, SimulateError,
    book::{Book, People, Whereabouts},
    checks::Checks,
    crowd::{Crowd, Nth, micros},
    figures::Tape,
    helm::{Gauges, Helm, Limits},
    room::Room,
};
use crate::{
    admission::cadence::{CALL_EVERY, SWEEP_EVERY},
    queue::{Arrival, Place, Policy},
    rehearse::{Progress, Standing, verdict::Row},
};

/// Most people in one join.
const JOIN_AT_ONCE: usize = 100;
/// How often the store's own counts are compared with the book, and progress is shown.
const AUDIT_EVERY: Duration = Duration::from_mins(1);
/// As the page does it: a claim that the rate holds back is made again so much after its turn, at the soonest this late.
const RETRY_AFTER_MS: u64 = 100;
const RETRY_AT_LEAST_MS: u64 = 250;

/// What happens to somebody at a moment of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Their patience ends.
    GivesUp(Nth),
    /// They notice that they are called.
    Claims(Nth),
    /// Their claim window ends.
    Misses(Nth),
    /// They are done in the shop.
    Goes(Nth),
}

/// How a sale ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The last ticket was sold.
    SoldOut,
    /// Everybody who came was served.
    EverybodyServed,
    /// It was not over when the deadline passed.
    Deadline,
}

/// A sale that is over.
#[derive(Debug)]
pub struct Played {
    /// How it ended, and when.
    pub end: End,
    pub ended_us: u64,
    /// What became of everybody.
    pub people: People,
    /// Tickets sold.
    pub sold: u32,
    /// The most called and inside at once.
    pub peak: u32,
    /// What was measured on the way.
    pub tape: Tape,
    /// Whether the guarantees held.
    pub verdict: Vec<Row>,
}

/// A sale under way. Times are microseconds since the opening.
pub struct Sale<'a> {
    scenario: &'a Scenario,
    policy: Policy,
    crowd: Crowd<'a>,
    room: Room,
    book: Book,
    checks: Checks,
    tape: Tape,
    now_us: u64,
    /// The next to arrive.
    next: Nth,
    /// By time, then by the order in which they were planned.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    planned: u64,
    last_score: u64,
    sold: u32,
}

impl<'a> Sale<'a> {
    /// Plays a sale to its end.
    pub fn play(scenario: &'a Scenario, helm: Helm<'_>, progress: &dyn Progress) -> Result<Played, SimulateError> {
        let policy = scenario.policy();
        let mut sale = Self {
            scenario,
            crowd: Crowd::of(scenario),
            room: Room::open(&policy)?,
            book: Book::of(scenario.users),
            checks: Checks::new(policy.capacity, policy.rate, policy.burst),
            policy,
            tape: Tape::of(scenario.users),
            now_us: 0,
            next: 0,
            events: BinaryHeap::new(),
            planned: 0,
            last_score: 0,
            sold: 0,
        };
        let end = sale.run(helm, progress)?;
        sale.audit()?;
        progress.show(&sale.standing());
        progress.finish();
        let people = sale.book.people();
        Ok(Played {
            end,
            ended_us: sale.now_us,
            sold: sale.sold,
            peak: sale.checks.peak(),
            tape: sale.tape,
            verdict: sale.checks.verdict(people.lost),
            people,
        })
    }

    fn run(&mut self, helm: Helm<'_>, progress: &dyn Progress) -> Result<End, SimulateError> {
        let mut round = 0_u64;
        loop {
            let tick_us = round * micros(CALL_EVERY);
            if self.until(tick_us)? {
                return Ok(End::SoldOut);
            }
            if tick_us.is_multiple_of(1_000_000) {
                self.steer(helm)?;
            }
            self.arrive()?;
            self.call()?;
            if tick_us.is_multiple_of(micros(SWEEP_EVERY)) {
                self.room.sweep()?;
            }
            if tick_us.is_multiple_of(micros(AUDIT_EVERY)) {
                self.audit()?;
                progress.show(&self.standing());
            }
            if self.book.is_empty() && self.crowd.arrival_us(self.next).is_none() {
                return Ok(End::EverybodyServed);
            }
            if tick_us >= micros(self.scenario.deadline) {
                return Ok(End::Deadline);
            }
            round += 1;
        }
    }

    /// Lets everything happen that is due by `tick_us`. True when the last ticket is sold.
    fn until(&mut self, tick_us: u64) -> Result<bool, SimulateError> {
        while let Some(&Reverse((at_us, _, event))) = self.events.peek()
            && at_us <= tick_us
        {
            self.events.pop();
            self.set_time(at_us);
            match event {
                Event::GivesUp(nth) => self.gives_up(nth)?,
                Event::Claims(nth) => self.claims(nth)?,
                Event::Misses(nth) => self.book.moves(nth, Whereabouts::NoShow),
                Event::Goes(nth) => self.goes(nth)?,
            }
            if self.scenario.tickets == Some(self.sold) {
                return Ok(true);
            }
        }
        self.set_time(tick_us);
        Ok(false)
    }

    fn set_time(&mut self, now_us: u64) {
        self.now_us = now_us;
        self.room.set_time(now_us);
    }

    fn plan(&mut self, at_us: u64, event: Event) {
        self.planned += 1;
        self.events.push(Reverse((at_us, self.planned, event)));
    }

    /// A full second: what it looked like is noted, and what holds for the next one is set.
    fn steer(&mut self, helm: Helm<'_>) -> Result<(), SimulateError> {
        let Book { waiting, called, inside, .. } = self.book;
        self.tape.second(waiting, inside);
        let gauges =
            Gauges { second: self.now_us / 1_000_000, waiting, called, inside, admitted: self.tape.admissions() };
        let Limits { capacity, rate } = helm(&gauges);
        let policy = Policy { capacity, rate, ..self.policy.clone() };
        if policy != self.policy {
            self.room.configure(&policy)?;
            self.checks.limits(self.now_us, capacity, rate);
            self.policy = policy;
        }
        Ok(())
    }

    /// Everybody who came since the last time joins.
    fn arrive(&mut self) -> Result<(), SimulateError> {
        loop {
            let due = |nth: &Nth| self.crowd.arrival_us(*nth).is_some_and(|at| at <= self.now_us);
            let batch: Vec<Nth> = (self.next..).take_while(due).take(JOIN_AT_ONCE).collect();
            let Some(last) = batch.last() else { return Ok(()) };
            self.next = last + 1;
            let arrival = |nth: &Nth| Arrival { visitor: Crowd::visitor(*nth), proof: None, may_enter: true };
            let places = self.room.join(&batch.iter().map(arrival).collect::<Vec<_>>())?;
            for (nth, place) in batch.into_iter().zip(places) {
                self.joins(nth, place);
            }
        }
    }

    fn joins(&mut self, nth: Nth, place: Place) {
        let (Place::Waiting { score, .. } | Place::Inside { score, fresh: true, .. }) = place else {
            return self.is_lost(nth, place);
        };
        let (last, nobody_waits) = (self.last_score, self.book.waiting == 0);
        self.checks.agree(score.0 > last, || format!("arrival {nth} has score {}, after {last}", score.0));
        self.last_score = score.0;
        if let Place::Inside { .. } = place {
            self.checks.turn(nobody_waits, || format!("arrival {nth} went straight in past others"));
            self.goes_in(nth);
            self.checks.taken(self.book.occupied());
            return;
        }
        self.book.joins(nth, score.0);
        let person = self.crowd.person(nth);
        if let Some(patience_us) = person.patience_us {
            self.plan(self.now_us.max(person.arrives_us.saturating_add(patience_us)), Event::GivesUp(nth));
        }
    }

    fn call(&mut self) -> Result<(), SimulateError> {
        if self.book.waiting == 0 {
            return Ok(());
        }
        let called = self.room.call()?;
        for _ in 0..called {
            let Some(nth) = self.book.calls_next() else {
                self.checks.agree(false, || "somebody is called and nobody waits".to_owned());
                break;
            };
            self.tape.called(nth);
            // The store counts in whole milliseconds.
            let ends_us = self.now_us / 1_000 * 1_000 + micros(self.policy.claim_window);
            match self.crowd.person(nth).notices_us.map(|after_us| self.now_us.saturating_add(after_us)) {
                Some(at_us) if at_us < ends_us => self.plan(at_us, Event::Claims(nth)),
                _ => self.plan(ends_us, Event::Misses(nth)),
            }
        }
        if called > 0 {
            self.checks.taken(self.book.occupied());
        }
        Ok(())
    }

    fn claims(&mut self, nth: Nth) -> Result<(), SimulateError> {
        match self.room.claim(Crowd::visitor(nth))? {
            Place::Inside { score, fresh: true, .. } => {
                let expected = self.book.score(nth);
                self.checks.turn(score.0 == expected, || format!("arrival {nth} came in with another's place"));
                self.goes_in(nth);
            }
            Place::Called { wait_ms, .. } if wait_ms > 0 => {
                let again_ms = (wait_ms + RETRY_AFTER_MS).max(RETRY_AT_LEAST_MS);
                self.plan(self.now_us + again_ms * 1_000, Event::Claims(nth));
            }
            Place::Waiting { .. } => {
                self.checks.turn(false, || format!("it was the turn of arrival {nth}, and somebody else was called"));
                self.book.moves(nth, Whereabouts::Lost);
            }
            place => self.is_lost(nth, place),
        }
        Ok(())
    }

    fn goes_in(&mut self, nth: Nth) {
        let person = self.crowd.person(nth);
        self.book.moves(nth, Whereabouts::Inside);
        self.checks.admitted(self.now_us);
        self.tape.admitted(nth, self.now_us, self.now_us.saturating_sub(person.arrives_us));
        self.plan(self.now_us.saturating_add(person.visit_us), Event::Goes(nth));
    }

    /// A visit ends: a buyer's slot is freed by the shop, anybody else's by the page that is closed.
    fn goes(&mut self, nth: Nth) -> Result<(), SimulateError> {
        let left = self.scenario.tickets.map_or(u32::MAX, |tickets| tickets - self.sold);
        let bought = self.crowd.person(nth).wants.min(left);
        self.sold = self.sold.saturating_add(bought);
        let (place, ended) = if bought > 0 {
            (Whereabouts::Bought, self.room.release(Crowd::visitor(nth))?)
        } else {
            (Whereabouts::Browsed, self.room.leave(Crowd::visitor(nth))?)
        };
        self.checks.agree(ended, || format!("the session of arrival {nth} was over already"));
        self.book.moves(nth, place);
        Ok(())
    }

    fn gives_up(&mut self, nth: Nth) -> Result<(), SimulateError> {
        if self.book.place(nth) == Whereabouts::Waiting {
            let left = self.room.leave(Crowd::visitor(nth))?;
            self.checks.agree(left, || format!("arrival {nth} had no place to leave"));
            self.book.moves(nth, Whereabouts::GaveUp);
        }
        Ok(())
    }

    fn is_lost(&mut self, nth: Nth, place: Place) {
        self.checks.agree(false, || format!("arrival {nth} is told {place:?}"));
        self.book.moves(nth, Whereabouts::Lost);
    }

    /// Compares the store's own counts with the book.
    fn audit(&mut self) -> Result<(), SimulateError> {
        let store = self.room.snapshot()?;
        let told = (store.line, store.inside, store.admitted_total);
        let kept = (u64::from(self.book.waiting), u64::from(self.book.inside), self.tape.admissions());
        self.checks
            .agree(told == kept, || format!("the store counts {told:?} waiting, inside, let in; the book {kept:?}"));
        // Claims that ran out count until the next run finds them.
        let occupied = u64::from(self.book.occupied())..=u64::from(self.policy.capacity);
        let counted = store.called + store.inside;
        self.checks.agree(occupied.contains(&counted), || {
            format!("the store counts {counted} called and inside, not {occupied:?}")
        });
        Ok(())
    }

    fn standing(&self) -> Standing {
        let people = self.book.people();
        Standing {
            users: u64::from(self.scenario.users),
            arrived: u64::from(self.next),
            waiting: u64::from(self.book.waiting),
            inside: u64::from(self.book.inside),
            bought: people.bought,
            gone: people.browsed + people.no_shows + people.gave_up,
            requests: self.room.runs,
            ..Standing::default()
        }
    }
}
