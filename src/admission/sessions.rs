//! Sessions: checked without the store, renewed with it, ended in it.

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
/// How often ending a session is tried while the store is away; after that it ends by itself.
const RELEASE_TRIES: u32 = 5;
const RELEASE_PAUSE: Duration = Duration::from_secs(1);
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

    /// Whether a session whose token is genuine still counts on this node.
    pub fn is_live(&self, session: &Claims) -> bool {
        !self.has_ended(session.sub, admitted_ms(session))
    }

    /// Takes in whose place or session somebody ended, on whatever node: their tokens are refused here too. What they were
    /// granted after that is another session. The same news may come again.
    pub fn sessions_ended(&self, ended: &[(VisitorId, u64)]) {
        // A token may be good for as long as a session can last.
        let ends_ms = self.now_ms().saturating_add(millis(self.config.session_cap));
        for &(visitor, at_micros) in ended {
            let ended_ms = at_micros / 1_000;
            self.released.insert_since(visitor, ends_ms, ended_ms, ended_ms);
        }
    }

    /// Whether the session that `visitor` was granted at `admitted_ms` ended before its token does.
    pub(super) fn has_ended(&self, visitor: VisitorId, admitted_ms: u64) -> bool {
        self.released.since(visitor, self.now_ms()).is_some_and(|ended_ms| admitted_ms <= ended_ms)
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
            Ok(_) | Err(QueueError::OtherEpoch(_)) => {
                self.forget(session);
                Renewal::Ended
            }
            Err(error) => {
                self.store_failed(&error);
                Renewal::Unknown
            }
        }
    }

    /// Ends the session: at once on this node, with the store in the background.
    pub fn release(self: &Arc<Self>, session: &Claims) {
        // Whatever does not fit into memory is still told to the store.
        if !self.forget(session) && !self.is_live(session) {
            return;
        }
        let (room, visitor) = (Arc::clone(self), session.sub);
        self.beside(async move {
            for _ in 0..RELEASE_TRIES {
                match room.queue.release(visitor).await {
                    Ok(_) => return,
                    Err(error) => room.store_failed(&error),
                }
                tokio::time::sleep(RELEASE_PAUSE).await;
            }
        });
    }

    /// Gives up place and session. With the store away the session ends on this node, and the place lapses.
    pub async fn leave(&self, visitor: VisitorId, session: Option<&Claims>) {
        if let Some(session) = session {
            self.forget(session);
        }
        match self.queue.leave(visitor).await {
            Ok(_) => self.has_no_place(visitor, self.now_ms()),
            Err(error) => self.store_failed(&error),
        }
    }

    /// Takes away place and session: at once on this node, on every other with its next look at the store.
    pub async fn revoke(&self, visitor: VisitorId) -> Result<bool, QueueError> {
        let was_known = self.queue.revoke(visitor).await?;
        let now_ms = self.now_ms();
        self.released.insert_since(visitor, now_ms, now_ms.saturating_add(millis(self.config.session_cap)), now_ms);
        self.has_no_place(visitor, now_ms);
        Ok(was_known)
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

    /// Refuses the session's token on this node from now on. Returns whether that is news.
    fn forget(&self, session: &Claims) -> bool {
        let ends_ms = session.exp.saturating_mul(1_000);
        let admitted_ms = admitted_ms(session);
        self.released.insert_since(session.sub, ends_ms, self.now_ms().max(admitted_ms), admitted_ms)
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

fn admitted_ms(session: &Claims) -> u64 {
    session.admitted_ms.unwrap_or_else(|| session.iat.saturating_mul(1_000))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
