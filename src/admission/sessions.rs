//! Sessions: checked without the store, renewed with it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::LiveRoom;
use crate::{
    queue::{Mode, Place, QueueError, VisitorId},
    tokens::{Claims, TokenType},
};

/// What became of a renewal.
#[derive(Debug, Clone, PartialEq)]
pub enum Renewal {
    /// The session goes on with these claims; a new token is due when they differ.
    Kept(Claims),
    /// The store says the session ended.
    Ended,
    /// The store could not be asked: the session goes on as it is.
    Unknown,
}

/// A renewal asked for by parallel requests is made once in this time.
const RENEW_AGAIN_MS: u64 = 2_000;
/// Every answer of a sold-out shop says so; the store is told no more often than this.
const TELL_AGAIN_MS: u64 = 2_000;

impl LiveRoom {
    /// The claims of a session that the store granted; `None` for any other place, and for a session whose release
    /// is still on its way to the store.
    pub(super) fn session_claims(&self, visitor: VisitorId, place: Place) -> Option<Claims> {
        let Place::Inside { score, expires_ms, called_ms, admitted_ms, fresh } = place else { return None };
        if fresh {
            self.released.remove(visitor);
        } else if self.has_ended(visitor, admitted_ms) {
            return None;
        }
        Some(Claims {
            typ: TokenType::Session,
            room: self.name().clone(),
            sub: visitor,
            score,
            iat: admitted_ms / 1_000,
            // Rounded down: the token ends before the slot goes to someone else.
            exp: expires_ms / 1_000,
            epoch: self.view().snapshot.epoch,
            draw: false,
            arrival: None,
            since_ms: None,
            ahead: None,
            called_ms: Some(called_ms),
            admitted_ms: Some(admitted_ms),
        })
    }

    /// What a request with a valid session brings about: a check of one that is older than this node or the store's
    /// history, in the background, and renewal when less than half of it is left. Returns the claims as they are
    /// afterwards, `None` when the session turns out to have ended.
    pub async fn touch(self: &Arc<Self>, session: Claims) -> Option<Claims> {
        let now_ms = self.now_ms();
        self.check_once(&session, now_ms);
        if !self.is_due(&session, now_ms) || !self.renewing.insert(session.sub, now_ms + RENEW_AGAIN_MS, now_ms) {
            return Some(session);
        }
        match self.renew(&session, self.config.policy.session_ttl).await {
            Renewal::Kept(renewed) => Some(renewed),
            Renewal::Unknown => Some(session),
            Renewal::Ended => None,
        }
    }

    /// Moves the session's end to `ttl` from now, within the cap. The store is asked first, so the token never
    /// outlives the slot.
    pub async fn renew(&self, session: &Claims, ttl: Duration) -> Renewal {
        if self.is_away() {
            return Renewal::Unknown;
        }
        let place = self
            .queue
            .renew(
                session.sub,
                admitted_ms(session),
                session.exp.saturating_mul(1_000),
                ttl,
                self.not_after_ms(session),
            )
            .await;
        match place {
            Ok(Place::Inside { expires_ms, .. }) => {
                Renewal::Kept(Claims { exp: session.exp.max(expires_ms / 1_000), ..session.clone() })
            }
            Ok(_) => {
                self.forget(session);
                Renewal::Ended
            }
            Err(QueueError::OtherEpoch(_)) => self.renew_in_another_epoch(session).await,
            Err(error) => {
                self.store_failed(&error);
                Renewal::Unknown
            }
        }
    }

    /// What this node knew of the epoch was wrong: the session is of one that ended, or of the present one.
    async fn renew_in_another_epoch(&self, session: &Claims) -> Renewal {
        if let Err(error) = self.look_again().await {
            self.store_failed(&error);
            return Renewal::Unknown;
        }
        if session.epoch >= self.view().snapshot.epoch {
            return Renewal::Unknown;
        }
        self.forget(session);
        Renewal::Ended
    }

    /// Nothing is left to sell: tells the store once per change, in the background.
    pub fn sold_out(self: &Arc<Self>) {
        let now_ms = self.now_ms();
        let told_ms = self.sold_out_told_ms.load(Ordering::Relaxed);
        if matches!(self.view().snapshot.mode, Mode::SoldOut | Mode::Closed)
            || now_ms < told_ms.saturating_add(TELL_AGAIN_MS)
            || self.sold_out_told_ms.compare_exchange(told_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return;
        }
        let room = Arc::clone(self);
        self.beside(async move {
            if let Err(error) = room.queue.set_mode(Mode::SoldOut).await {
                room.store_failed(&error);
            }
        });
    }

    /// A session older than the store's present history is unknown to it, and its slot must count (G1, G5). One older
    /// than this node may have ended while nobody could tell the node. Asking the store once settles both.
    fn check_once(self: &Arc<Self>, session: &Claims, now_ms: u64) {
        let admitted_ms = admitted_ms(session);
        let is_settled = admitted_ms >= self.view().snapshot.since_ms && admitted_ms > self.opened_ms;
        if is_settled
            || self.is_away()
            || !self.registered.insert(session.sub, session.exp.saturating_mul(1_000), now_ms)
        {
            return;
        }
        let (room, session) = (Arc::clone(self), session.clone());
        self.beside(async move {
            if room.renew(&session, Duration::ZERO).await == Renewal::Unknown {
                room.registered.remove(session.sub);
            }
        });
    }

    fn is_due(&self, session: &Claims, now_ms: u64) -> bool {
        let ends_ms = session.exp.saturating_mul(1_000);
        let half_ms = millis(self.config.policy.session_ttl) / 2;
        ends_ms.saturating_sub(now_ms) < half_ms && ends_ms.saturating_add(1_000) <= self.not_after_ms(session)
    }

    fn not_after_ms(&self, session: &Claims) -> u64 {
        admitted_ms(session).saturating_add(millis(self.config.session_cap))
    }
}

pub(super) fn admitted_ms(session: &Claims) -> u64 {
    session.admitted_ms.unwrap_or_else(|| session.iat.saturating_mul(1_000))
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
