//! Inside: picks seats, holds them, pays, and follows the order to its end.

use std::{sync::atomic::Ordering, time::Duration};

use rand::{Rng as _, RngExt as _};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use super::{
    client::{Answer, Ask},
    now_ms,
    personality::{Personality, around, between},
    plan::RehearseError,
    record::{Order, Outcome},
    shop::{Choice, Event, Hold, OrderDocument},
    tally::{Counted, Kind},
    visitor::{Visitor, is_queued},
};

/// How being inside ended.
#[derive(Debug)]
pub(super) enum Shopping {
    /// The visit is over.
    Over(Outcome),
    /// The session is over and nothing was bought.
    PutOut,
}

/// Odd answers in a row before somebody gives up.
const PATIENCE: u32 = 10;
/// How often somebody looks whether a seat came back.
const HOPE: Duration = Duration::from_secs(2);

/// What a step came to, when it did not give what was asked for.
enum Stopped {
    End(Shopping),
    /// Somebody else was faster.
    TryAgain,
    /// Nothing is free just now, but seats that are held may come back.
    AllHeld,
    /// An answer nobody expects, already noted.
    Odd,
}

impl Visitor {
    /// Buys one or two tickets. `path` is the shop page that opened.
    pub(super) async fn shop(&mut self, path: &str) -> Shopping {
        if self.personality == Personality::LeavesEarly {
            self.leave().await;
            return Shopping::Over(Outcome::LeftEarly);
        }
        let event = self.event_of(path);
        loop {
            let (hold, asked) = match self.take_seats(&event).await {
                Ok(held) => held,
                Err(end) => return end,
            };
            let lapses = asked + Duration::from_secs(hold.expires_in_seconds);
            let (from, to) = self.world.plan.think.clone().into_inner();
            sleep(between(&mut self.dice, from, to)).await;
            if let Some(end) = self.settle(&hold.hold).await {
                return end;
            }
            // A second of doubt: the seconds told are whole ones.
            if Instant::now() + Duration::from_secs(1) < lapses {
                self.world.tally.unexpected("order: the hold was over before its time");
            }
        }
    }

    /// Does with the hold what this person does. `None` when it ran out before it was paid.
    async fn settle(&mut self, hold: &str) -> Option<Shopping> {
        match self.personality {
            Personality::CancelsHold => {
                let answer = self.ask(&Ask::delete(Kind::CancelHold, &format!("/holds/{hold}"))).await;
                if let Some(odd) = answer.ok().filter(|answer| answer.status != 204) {
                    self.world.tally.unexpected(&format!("cancel hold: {}", odd.describe()));
                }
                self.leave().await;
                Some(Shopping::Over(Outcome::AbandonedHold))
            }
            Personality::ForgetsHold => {
                self.leave().await;
                Some(Shopping::Over(Outcome::AbandonedHold))
            }
            _ => self.pay(hold).await,
        }
    }

    fn event_of(&self, path: &str) -> String {
        let named = path.strip_prefix("/events/").and_then(|rest| rest.split(['/', '?']).next());
        self.world.plan.event.as_deref().or(named.filter(|event| !event.is_empty())).unwrap_or("demo").to_owned()
    }

    /// Looks at the map and asks for seats until some are held. Also returns when they were asked for.
    async fn take_seats(&mut self, event: &str) -> Result<(Hold, Instant), Shopping> {
        let wanted = self.dice.random_range(1..=2);
        let (mut odd, mut pause) = (0, Duration::from_millis(150));
        let mut hoping = None;
        loop {
            let stopped = match self.choose(event, wanted).await {
                Ok(choice) => match self.hold(event, &choice).await {
                    Ok(hold) => {
                        self.world.tally.hold_seconds.fetch_max(hold.0.expires_in_seconds, Ordering::Relaxed);
                        self.tab.person().record.took_seats = true;
                        return Ok(hold);
                    }
                    Err(stopped) => stopped,
                },
                Err(stopped) => stopped,
            };
            hoping = match &stopped {
                Stopped::AllHeld => hoping.or_else(|| Some(Counted::among(&self.world.tally.hoping))),
                _ => None,
            };
            match stopped {
                Stopped::End(end) => return Err(end),
                Stopped::TryAgain | Stopped::AllHeld => odd = 0,
                Stopped::Odd => odd += 1,
            }
            if odd >= PATIENCE {
                self.leave().await;
                return Err(Shopping::Over(Outcome::Failed));
            }
            sleep(around(&mut self.dice, pause)).await;
            pause = (pause * 2).min(HOPE);
        }
    }

    async fn choose(&mut self, event: &str, wanted: u32) -> Result<serde_json::Value, Stopped> {
        let ask = Ask::get(Kind::Event, &format!("/events/{event}"));
        let answer = self.inside(&ask, &[200, 404]).await?;
        if answer.status == 404 {
            self.doubt_the_shop(&ask, answer.describe());
            self.world.tally.unexpected(&format!("event: {}", answer.describe()));
            return Err(Stopped::Odd);
        }
        let Ok(document) = serde_json::from_slice::<Event<'_>>(&answer.body) else {
            self.doubt_the_shop(&ask, "something that is not its JSON document".to_owned());
            return Err(self.not_json(Kind::Event));
        };
        let choice = document.choose(wanted, &mut self.dice);
        self.world.tally.event_understood.store(true, Ordering::Relaxed);
        match choice {
            Choice::Take(body) => Ok(body),
            Choice::ComeBack => Err(Stopped::AllHeld),
            Choice::NothingLeft => {
                self.leave().await;
                Err(Stopped::End(Shopping::Over(Outcome::SoldOut)))
            }
        }
    }

    /// Ends the rehearsal when nobody was ever given the event: this is not the reference box office, and everybody else
    /// would fail alike. Once somebody was, such an answer is only odd.
    fn doubt_the_shop(&self, ask: &Ask, answer: String) {
        if !self.world.tally.event_understood.load(Ordering::Relaxed) {
            // The first who notices is enough.
            let _ = self.world.hopeless.set(RehearseError::NotTheBoxOffice { path: ask.path.clone(), answer });
            self.world.stop.cancel();
        }
    }

    async fn hold(&mut self, event: &str, body: &serde_json::Value) -> Result<(Hold, Instant), Stopped> {
        let ask = Ask::post(Kind::Hold, &format!("/events/{event}/holds"), Some(body));
        let asked = Instant::now();
        let answer = self.inside(&ask, &[201, 409]).await?;
        if answer.status == 409 {
            return Err(Stopped::TryAgain);
        }
        Ok((self.document::<Hold>(Kind::Hold, &answer)?, asked))
    }

    async fn pay(&mut self, hold: &str) -> Option<Shopping> {
        let key = format!("{:016x}{:016x}", self.dice.next_u64(), self.dice.next_u64());
        let ask = Ask::post(Kind::Order, "/orders", Some(&serde_json::json!({ "hold": hold }))).with_key(&key);
        match self.until_final(ask).await {
            Ok(order) => {
                let bought = order.status == "confirmed";
                self.note(order);
                if bought {
                    self.world.tally.bought.fetch_add(1, Ordering::Relaxed);
                }
                if self.tab.person().is_inside() {
                    self.leave().await;
                }
                Some(Shopping::Over(if bought { Outcome::Bought } else { Outcome::Refused }))
            }
            Err(end) => end,
        }
    }

    /// Orders with `ask` and looks again until the order is settled. `Err(None)` when the hold ran out first.
    async fn until_final(&mut self, mut ask: Ask) -> Result<OrderDocument, Option<Shopping>> {
        let (mut odd, mut pause) = (0, Duration::from_millis(400));
        loop {
            // 409 says that the same key is being worked on just now, 410 that the hold ran out.
            let expected: &[u16] = if ask.kind == Kind::Order { &[202, 409, 410] } else { &[200] };
            let step = match self.inside(&ask, expected).await {
                Ok(answer) if answer.status == 409 => Err(Stopped::TryAgain),
                Ok(answer) if answer.status == 410 => return Err(None),
                Ok(answer) => self.document::<OrderDocument>(ask.kind, &answer),
                Err(stopped) => Err(stopped),
            };
            match step {
                Ok(order) if order.status != "pending" => return Ok(order),
                Ok(order) => {
                    ask = Ask::get(Kind::OrderStatus, &format!("/orders/{}", order.order));
                    self.note(order);
                    odd = 0;
                }
                Err(Stopped::End(end)) => {
                    self.world.tally.unexpected("put out of the shop while paying");
                    return Err(Some(end));
                }
                Err(Stopped::TryAgain | Stopped::AllHeld) => odd = 0,
                Err(Stopped::Odd) => odd += 1,
            }
            if odd >= PATIENCE {
                self.leave().await;
                return Err(Some(Shopping::Over(Outcome::Failed)));
            }
            sleep(around(&mut self.dice, pause)).await;
            pause = (pause * 2).min(HOPE);
        }
    }

    /// Keeps the latest that is known of an order.
    fn note(&self, document: OrderDocument) {
        let order =
            Order { id: document.order, status: document.status, seats: document.seats, quantity: document.quantity };
        let orders = &mut self.tab.person().record.orders;
        orders.retain(|known| known.id != order.id);
        orders.push(order);
    }

    /// Asks the shop for something that only visitors inside get.
    async fn inside(&mut self, ask: &Ask, expected: &[u16]) -> Result<Answer, Stopped> {
        let Ok(answer) = self.ask(ask).await else { return Err(Stopped::Odd) };
        if expected.contains(&answer.status) {
            return Ok(answer);
        }
        if is_queued(&answer) {
            let mut person = self.tab.person();
            let now = now_ms();
            // A second of doubt: the server's clock need not be ours.
            if person.record.sessions.last().is_some_and(|session| now + 1_000 < session.expires_ms) {
                person.record.cut_short += 1;
            }
            person.record.end_session(answer.sent_ms);
            return Err(Stopped::End(Shopping::PutOut));
        }
        self.world.tally.unexpected(&format!("{}: {}", ask.kind.name(), answer.describe()));
        Err(Stopped::Odd)
    }

    fn document<T: DeserializeOwned>(&self, kind: Kind, answer: &Answer) -> Result<T, Stopped> {
        serde_json::from_slice(&answer.body).map_err(|_| self.not_json(kind))
    }

    fn not_json(&self, kind: Kind) -> Stopped {
        self.world.tally.unexpected(&format!("{}: not the JSON document promised", kind.name()));
        Stopped::Odd
    }
}
