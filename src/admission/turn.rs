//! From a queue token to a visitor's standing, with as few trips to the store as that takes: none for a visitor far
//! from the front, one for a newcomer, one when called.

use std::sync::Arc;

use super::{LiveRoom, view::View};
use crate::{
    queue::{Arrival, Mode, Place, Proof, QueueError, Score, VisitorId},
    tokens::{Claims, TokenType},
};

/// Where a visitor stands, and the tokens that say so.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Where.
    pub standing: Standing,
    /// Their queue token's claims; `None` for someone who has none. It has served when they are let in.
    pub queue: Option<Claims>,
    /// Whether the visitor does not hold the token yet that goes with the standing, and must be given it: the session
    /// token when let in, else the queue token.
    pub is_new: bool,
}

/// Where a visitor stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// Nobody we know.
    NotQueued,
    /// Known, but not in the line yet: the room is not open, or the store is away. Joins by coming again.
    Promised,
    /// In the roster of the draw that is to come.
    Registered,
    /// In the line.
    Waiting,
    /// Called, but the rate lets them in only after this many milliseconds.
    Called {
        /// How long.
        wait_ms: u64,
    },
    /// Let in: the claims of their session.
    Admitted(Box<Claims>),
    /// Had a place and gave it up by absence; may join again at the end.
    Expired,
    /// The room takes nobody now.
    NotOpen(Mode),
}

/// `iat` of a token that was given without the store's word: it makes the proof older than any history of the store,
/// so that a store which comes back empty believes it, and tells us that there may be no place behind it yet.
const PROMISE: u64 = 0;

/// A promise made before the opening says nothing about the order.
const NO_SCORE: Score = Score(0);

impl LiveRoom {
    /// Where the holder of `queue` stands as far as the node knows. Changes nothing and asks nobody.
    pub fn peek(&self, queue: Option<Claims>) -> Turn {
        match queue {
            Some(claims) if claims.iat == PROMISE => Turn::held(Standing::Promised, claims),
            Some(claims) if claims.draw && self.has_left_the_pre_queue(&claims) => {
                Turn::held(Standing::Expired, claims)
            }
            Some(claims) if claims.draw => Turn::held(Standing::Registered, claims),
            Some(claims) => Turn::held(Standing::Waiting, claims),
            None => Turn::without_place(self.view().mode(self.now_ms())),
        }
    }

    /// [`LiveRoom::look_up`] for a visitor who merely waits, which takes no waiting: most polls are theirs. `None` for anybody
    /// else, and then nothing is noted.
    pub fn look_up_at_once(&self, claims: &Claims) -> Option<Turn> {
        let waits = claims.iat != PROMISE && !claims.draw && self.keeps_waiting(claims);
        waits.then(|| Turn::held(Standing::Waiting, claims.clone()))
    }

    /// Where the holder of `queue` stands. Claims when called. Someone without a token stays without a place.
    pub async fn look_up(self: &Arc<Self>, queue: Option<Claims>) -> Turn {
        match queue {
            Some(claims) => self.come_back(claims, true).await,
            None => Turn::without_place(self.view().mode(self.now_ms())),
        }
    }

    /// Like [`LiveRoom::look_up`], but a newcomer joins, and with `may_enter` goes straight in when nobody waits.
    pub async fn come(self: &Arc<Self>, queue: Option<Claims>, may_enter: bool) -> Turn {
        match queue {
            Some(claims) => self.come_back(claims, may_enter).await,
            None => self.arrive(VisitorId::random(), None, may_enter).await,
        }
    }

    /// Like [`LiveRoom::come`], but a visitor whose place expired joins anew, at the end.
    pub async fn join_again(self: &Arc<Self>, queue: Option<Claims>) -> Turn {
        let turn = self.come(queue, true).await;
        match (&turn.standing, &turn.queue) {
            (Standing::Expired, Some(claims)) => self.arrive(claims.sub, None, true).await,
            _ => turn,
        }
    }

    pub(super) async fn come_back(self: &Arc<Self>, claims: Claims, may_enter: bool) -> Turn {
        if claims.iat == PROMISE {
            return self.arrive(claims.sub, Some(claims), may_enter).await;
        }
        if claims.draw {
            return self.wait_for_the_draw(claims).await;
        }
        if self.keeps_waiting(&claims) {
            return Turn::held(Standing::Waiting, claims);
        }
        let proof = proof_of(&claims);
        self.ask(claims, Some(proof)).await
    }

    /// What the store says. Claims when called.
    pub(super) async fn ask(&self, claims: Claims, proof: Option<Proof>) -> Turn {
        let unknown = if claims.draw { Standing::Registered } else { Standing::Waiting };
        match self.queue.claim(claims.sub, proof).await {
            Ok(place) => self.found(place, claims),
            Err(QueueError::OtherEpoch(_)) => match self.look_again().await {
                Ok(()) => Turn::without_place(self.view().mode(self.now_ms())),
                Err(_) => Turn::held(unknown, claims),
            },
            Err(error) => {
                self.store_failed(&error);
                Turn::held(unknown, claims)
            }
        }
    }

    /// Whether the store has nothing else to say of someone in the line, or cannot say it. Then they are noted as present.
    fn keeps_waiting(&self, claims: &Claims) -> bool {
        let waits = self.is_away() || !self.must_ask(claims);
        if waits {
            self.presence.note(claims.sub, proof_of(claims));
        }
        waits
    }

    /// Nobody behind the last one called can have been called; whoever is said to have no place asks for certainty.
    fn must_ask(&self, claims: &Claims) -> bool {
        let view = self.view();
        claims.score <= view.snapshot.watermark || self.expired.contains(claims.sub, view.now_ms(&*self.clock))
    }

    pub(super) fn found(&self, place: Place, claims: Claims) -> Turn {
        if place == Place::None {
            self.has_no_place(claims.sub, self.now_ms());
            return Turn::held(Standing::Expired, claims);
        }
        self.expired.remove(claims.sub);
        match place {
            Place::None => Turn::held(Standing::Expired, claims),
            Place::Waiting { score, .. } if score == claims.score && !claims.draw => {
                Turn::held(Standing::Waiting, claims)
            }
            Place::Waiting { score, .. } => {
                let arrival = claims.arrival.or(claims.draw.then_some(claims.score));
                Turn::given(Standing::Waiting, Claims { arrival, ..self.queue_claims(claims.sub, score, None) })
            }
            Place::Called { wait_ms, .. } => Turn::held(Standing::Called { wait_ms }, claims),
            Place::Registered { arrival, since_ms } => self.registered(arrival, since_ms, claims),
            Place::Inside { .. } => match self.session_claims(claims.sub, place) {
                Some(session) => Turn::let_in(session, Some(claims)),
                None => Turn::held(Standing::Expired, claims),
            },
            Place::NotOpen(mode) => Turn::held(Standing::NotOpen(mode), claims),
        }
    }

    /// A visitor without a place in the store comes, perhaps with a promise.
    async fn arrive(self: &Arc<Self>, visitor: VisitorId, promise: Option<Claims>, may_enter: bool) -> Turn {
        let mode = self.view().mode(self.now_ms());
        match mode {
            Mode::Scheduled => return self.promise(visitor, promise, NO_SCORE),
            Mode::SoldOut | Mode::Closed => return Turn { queue: promise, ..Turn::without_place(mode) },
            Mode::Open | Mode::Paused | Mode::Prequeue | Mode::Drawing => {}
        }
        let arrived = Score(self.now_ms().saturating_mul(1_000));
        if self.is_away() {
            return self.promise(visitor, promise, arrived);
        }
        let promised = promise.as_ref().map(|claims| claims.score).filter(|score| *score != NO_SCORE);
        match self.join(visitor, promised, may_enter).await {
            Some(place @ Place::Inside { .. }) => match self.session_claims(visitor, place) {
                Some(session) => Turn::let_in(session, promise),
                None => self.promise(visitor, promise, arrived),
            },
            Some(Place::Waiting { score, ahead }) => {
                self.expired.remove(visitor);
                let mut claims = self.queue_claims(visitor, score, ahead);
                claims.arrival = promised.filter(|it| *it == score && self.is_of_the_pre_queue(score));
                // The repeat of a join does not count as being seen.
                self.presence.note(visitor, proof_of(&claims));
                Turn::given(Standing::Waiting, claims)
            }
            Some(Place::Registered { arrival, since_ms }) => {
                // By the store's word: whatever of theirs was ended, this is another place.
                self.expired.remove(visitor);
                self.released.remove(visitor);
                // A promise may be older than the roster.
                let since_ms = Some(since_ms).filter(|since_ms| *since_ms > arrival.0 / 1_000);
                let receipt = Claims { draw: true, since_ms, ..self.queue_claims(visitor, arrival, None) };
                Turn::given(Standing::Registered, receipt)
            }
            // Another tab joined before, or an earlier join's answer was lost.
            Some(Place::Called { score, wait_ms, .. }) => {
                Turn::given(Standing::Called { wait_ms }, self.queue_claims(visitor, score, None))
            }
            Some(Place::NotOpen(Mode::Scheduled)) => self.promise(visitor, promise, NO_SCORE),
            Some(Place::NotOpen(mode)) => Turn { queue: promise, ..Turn::without_place(mode) },
            Some(Place::None) | None => self.promise(visitor, promise, arrived),
        }
    }

    /// One join. A promise that the store does not believe (its history is older than that) joins at the end.
    async fn join(self: &Arc<Self>, visitor: VisitorId, promised: Option<Score>, may_enter: bool) -> Option<Place> {
        let proof = promised.map(|score| Proof { score, issued_at_ms: PROMISE });
        let mut arrival = Arrival { visitor, proof, may_enter };
        loop {
            match self.join_together(arrival).await {
                Some(Place::None) if arrival.proof.is_some() => arrival.proof = None,
                place => return place,
            }
        }
    }

    /// Keeps the promise a visitor holds already: the first one decides the order.
    fn promise(&self, visitor: VisitorId, held: Option<Claims>, score: Score) -> Turn {
        match held {
            Some(claims) if claims.score != NO_SCORE || score == NO_SCORE => Turn::held(Standing::Promised, claims),
            _ => {
                let claims = Claims { iat: PROMISE, ..self.queue_claims(visitor, score, None) };
                Turn::given(Standing::Promised, claims)
            }
        }
    }

    /// Whether who came then came for a draw.
    fn is_of_the_pre_queue(&self, arrival: Score) -> bool {
        let view = self.view();
        let opens_at_ms = view.snapshot.opens_at_ms.unwrap_or(0);
        view.snapshot.draw.is_some() && arrival.0 / 1_000 < opens_at_ms
    }

    fn queue_claims(&self, visitor: VisitorId, score: Score, ahead: Option<u64>) -> Claims {
        let view = self.view();
        let now = view.now_ms(&*self.clock) / 1_000;
        Claims {
            typ: TokenType::Queue,
            room: self.name().clone(),
            sub: visitor,
            score,
            iat: now,
            exp: now.saturating_add(self.config.queue_token_ttl.as_secs()),
            epoch: view.snapshot.epoch,
            draw: false,
            arrival: None,
            since_ms: None,
            ahead,
            called_ms: None,
            admitted_ms: None,
        }
    }

    /// Remembers for one grace that the store has no place for `visitor`.
    pub(super) fn has_no_place(&self, visitor: VisitorId, now_ms: u64) {
        let grace_ms = u64::try_from(self.config.policy.grace.as_millis()).unwrap_or(u64::MAX);
        self.expired.insert(visitor, now_ms.saturating_add(grace_ms), now_ms);
    }
}

/// `iat` only knows the second, which cannot tell a token from one of a history that began in the same second. An
/// order of arrival knows the moment; and a token of who was put back into a roster, since when they are in it.
pub(super) fn proof_of(claims: &Claims) -> Proof {
    let arrived_ms = claims.arrival.unwrap_or(claims.score).0 / 1_000;
    let issued_at_ms = match claims.since_ms {
        Some(since_ms) => since_ms.max(arrived_ms),
        None if arrived_ms / 1_000 == claims.iat => arrived_ms,
        None => claims.iat.saturating_mul(1_000),
    };
    Proof { score: claims.score, issued_at_ms }
}

impl Turn {
    /// The turn of someone who holds a live session.
    pub fn admitted(session: Claims, queue: Option<Claims>) -> Self {
        Self { standing: Standing::Admitted(Box::new(session)), queue, is_new: false }
    }

    fn without_place(mode: Mode) -> Self {
        let standing = match mode {
            Mode::SoldOut | Mode::Closed => Standing::NotOpen(mode),
            Mode::Scheduled | Mode::Prequeue | Mode::Drawing | Mode::Open | Mode::Paused => Standing::NotQueued,
        };
        Self { standing, queue: None, is_new: false }
    }

    /// The visitor is let in now.
    fn let_in(session: Claims, queue: Option<Claims>) -> Self {
        Self { standing: Standing::Admitted(Box::new(session)), queue, is_new: true }
    }

    /// The visitor holds the token already.
    pub(super) fn held(standing: Standing, claims: Claims) -> Self {
        Self { standing, queue: Some(claims), is_new: false }
    }

    /// The visitor is given the token now.
    pub(super) fn given(standing: Standing, claims: Claims) -> Self {
        Self { standing, queue: Some(claims), is_new: true }
    }

    /// The visitor's order for the status document, if the token says one.
    pub(super) fn score(&self) -> Option<Score> {
        self.queue.as_ref().filter(|claims| !claims.draw).map(|claims| claims.score).filter(|score| *score != NO_SCORE)
    }

    /// Whether the visitor came in the pre-queue and is not in its roster, because the store lost it meanwhile.
    pub(super) fn is_left_out(&self) -> bool {
        self.queue.as_ref().is_some_and(|claims| claims.arrival.is_some() && !claims.draw && !claims.score.is_drawn())
    }

    /// How many wait before the visitor, if anybody knows. Never more than at joining, and never more than before: where
    /// the sketch does not reach yet, what was true at joining is not far off. A place that was given without knowing
    /// counts as the last until then.
    pub(super) fn ahead(&self, view: &View) -> Option<u64> {
        if matches!(self.standing, Standing::Called { .. }) {
            return Some(0);
        }
        // While the line is rebuilt, a position would be a guess that rises; and whoever is still to draw comes before
        // everybody who waits.
        let is_open = view.is_settling() || view.snapshot.has_draw_ahead();
        if is_open || !matches!(self.standing, Standing::Promised | Standing::Waiting) {
            return None;
        }
        let (measured, at_joining) = (view.sketch.ahead_of(self.score()?), self.queue.as_ref()?.ahead);
        let last = (self.standing == Standing::Waiting).then_some(view.snapshot.line);
        match (measured, at_joining) {
            (Some(measured), Some(at_joining)) => Some(measured.min(at_joining)),
            _ => measured.or(at_joining).or(last),
        }
    }
}
