//! Whoever came before the opening of a lottery: in its roster, until everybody drew.

use std::sync::Arc;

use super::{
    LiveRoom,
    turn::{Standing, Turn, proof_of},
};
use crate::{
    queue::{Arrival, Proof, Score},
    tokens::Claims,
};

impl LiveRoom {
    /// Whoever came before the opening has an order once everybody drew: any node can say which, so nobody asks the store.
    /// Only where it lost the roster in the pre-queue it must be asked who came back to it in time: a draw of anybody else
    /// could not be verified.
    pub(super) async fn wait_for_the_draw(self: &Arc<Self>, claims: Claims) -> Turn {
        let view = self.view().clone();
        // The operator called the draw off: there is no order to keep.
        let Some(draw) = &view.snapshot.draw else { return Turn::held(Standing::Expired, claims) };
        let proof = proof_of(&claims);
        let Some(score) = self.draw_of(claims.sub) else {
            if self.has_left_the_pre_queue(&claims) {
                return Turn::held(Standing::Expired, claims);
            }
            if self.expired.contains(claims.sub, self.now_ms()) && !self.is_away() {
                return self.ask(claims, Some(proof)).await;
            }
            let is_in_it = draw.digest.is_some() && self.took_part(&claims, draw);
            if proof.issued_at_ms >= view.snapshot.since_ms || is_in_it {
                return Turn::held(Standing::Registered, claims);
            }
            return self.register_again(claims, proof).await;
        };
        if !self.took_part(&claims, draw) {
            if self.is_away() {
                return Turn::held(Standing::Registered, claims);
            }
            // Their arrival is their order then. Whoever left has none, whatever the store lost.
            let proof = Some(proof).filter(|_| !self.has_left_the_pre_queue(&claims));
            return self.ask(claims, proof).await;
        }
        // Issued when the receipt was: a store that has lost the line since must believe it.
        let drawn = Claims { score, draw: false, arrival: Some(claims.score), ..claims };
        let turn = Box::pin(self.come_back(drawn, true)).await;
        Turn { is_new: turn.is_new || turn.queue.is_some(), ..turn }
    }

    /// Whoever came to a roster that the store lost comes to the next one, and is given a token that says so: should that
    /// one be lost too once it is closed, it proves that they were in it.
    async fn register_again(self: &Arc<Self>, claims: Claims, proof: Proof) -> Turn {
        if !self.is_away() {
            let arrival = Arrival { visitor: claims.sub, proof: Some(proof), may_enter: false };
            if let Some(place) = self.join_together(arrival).await {
                return self.found(place, claims);
            }
        }
        self.presence.note(claims.sub, proof);
        Turn::held(Standing::Registered, claims)
    }

    /// The holder of `claims` is in the roster, by the store's word.
    pub(super) fn registered(&self, arrival: Score, since_ms: u64, claims: Claims) -> Turn {
        let view = self.view();
        let draw = view.snapshot.draw.as_ref();
        // A store that fell back to before the closing, and has yet to be told of it, says nothing of the roster that counts.
        let counts = draw.is_some_and(|draw| draw.digest.is_none() || since_ms <= draw.sealed_since_ms);
        let is_news = arrival != claims.score || since_ms > proof_of(&claims).issued_at_ms;
        if !claims.draw || !counts || !is_news {
            return Turn::held(Standing::Registered, claims);
        }
        let (since_ms, epoch) = (Some(since_ms), view.snapshot.epoch);
        Turn::given(Standing::Registered, Claims { score: arrival, since_ms, epoch, ..claims })
    }
}
