//! The draw of a room, as its nodes carry it out. Every node can do every step, and a step done twice changes nothing, so
//! that any of them may fail in the middle.
//!
//! The seed is derived from the signing keys, which several nodes share anyway, and the epoch: there is nothing to hand
//! around and nothing to lose. A node whose newest key is another one finds the right key by the commitment.

use super::{LiveRoom, view::View};
use crate::{
    queue::{
        Draw, Mode, Score, Snapshot, VisitorId,
        lottery::{Draws, RosterDigest, Seed},
    },
    store::StoreError,
};

/// Visitors read at once for the digest.
const READ_AT_ONCE: u32 = 1_000;
/// Visitors drawn at once, so that no script holds the store up for long.
const DRAW_AT_ONCE: u32 = 200;

impl LiveRoom {
    /// What `visitor` drew; `None` until everybody has.
    pub(super) fn draw_of(&self, visitor: VisitorId) -> Option<Score> {
        self.view().draws.as_ref().map(|draws| draws.of(visitor))
    }

    /// The seed, for everybody to check the draw with; `None` until it is done.
    pub fn published_seed(&self) -> Option<Seed> {
        let view = self.view();
        let draw = view.snapshot.draw.as_ref().filter(|draw| draw.is_done)?;
        self.seed(view.snapshot.epoch, draw.commitment.as_deref()?)
    }

    /// Gives the draw the beacon's output. Taken once, after the pre-queue closed; whoever is second changes nothing.
    pub async fn set_beacon(&self, value: &str) -> Result<(), StoreError> {
        let epoch = self.view().snapshot.epoch;
        self.queue.seal(epoch, [None, None, Some(value)]).await
    }

    /// The next of the roster after an arrival, for whoever publishes it.
    pub async fn roster(&self, after: Score) -> Result<Vec<(VisitorId, Score)>, StoreError> {
        self.queue.roster(after, READ_AT_ONCE).await
    }

    /// The draws that follow from a snapshot; those of the last `view` where they are the same.
    pub(super) fn draws(&self, snapshot: &Snapshot, view: &View) -> Option<Draws> {
        let draw = snapshot.draw.as_ref().filter(|draw| draw.is_done)?;
        if view.draws.is_some() && view.snapshot.draw.as_ref() == Some(draw) && view.snapshot.epoch == snapshot.epoch {
            return view.draws.clone();
        }
        Some(self.seed(snapshot.epoch, draw.commitment.as_deref()?)?.with(draw.public.as_deref()?))
    }

    /// Takes the next step, if one is due.
    pub(super) async fn go_on_with_the_draw(&self) -> Result<(), StoreError> {
        let view = self.view();
        let snapshot = &view.snapshot;
        let Some(draw) = snapshot.draw.as_ref().filter(|draw| !draw.is_done) else { return Ok(()) };
        let Some(commitment) = draw.commitment.as_deref() else { return self.commit(snapshot.epoch).await };
        if snapshot.mode != Mode::Drawing || view.is_settling() {
            return Ok(());
        }
        match (draw.digest.as_deref(), draw.public.as_deref()) {
            (None, _) => self.close_the_roster(snapshot.epoch).await,
            (Some(digest), None) if self.config.beacon.is_none() => {
                self.queue.seal(snapshot.epoch, [None, None, Some(digest)]).await
            }
            // The operator has yet to say what the beacon said.
            (Some(_), None) => Ok(()),
            (Some(_), Some(public)) => match self.seed(snapshot.epoch, commitment) {
                Some(seed) => self.draw_everybody(snapshot.epoch, draw, &seed.with(public)).await,
                None => {
                    tracing::error!(room = %self.name(), "the draw hangs on a signing key this gateway does not have");
                    Ok(())
                }
            },
        }
    }

    async fn commit(&self, epoch: u64) -> Result<(), StoreError> {
        match self.seeds(epoch).first() {
            Some(seed) => self.queue.seal(epoch, [Some(&seed.commitment()), None, None]).await,
            None => Ok(()),
        }
    }

    async fn close_the_roster(&self, epoch: u64) -> Result<(), StoreError> {
        let (mut digest, mut after, mut count) = (RosterDigest::new(), Score(0), 0_u64);
        loop {
            let stretch = self.queue.roster(after, READ_AT_ONCE).await?;
            let Some(&(_, last)) = stretch.last() else { break };
            for &(visitor, arrival) in &stretch {
                digest.add(visitor, arrival);
                count += 1;
            }
            after = last;
        }
        let digest = digest.finish();
        let public = Some(digest.as_str()).filter(|_| self.config.beacon.is_none());
        self.queue.seal(epoch, [None, Some(&digest), public]).await?;
        tracing::info!(room = %self.name(), visitors = count, digest, "the pre-queue is closed");
        Ok(())
    }

    async fn draw_everybody(&self, epoch: u64, draw: &Draw, draws: &Draws) -> Result<(), StoreError> {
        let mut after = Score(draw.drawn_to);
        loop {
            let stretch = self.queue.roster(after, DRAW_AT_ONCE).await?;
            let is_last = stretch.len() < DRAW_AT_ONCE as usize;
            after = stretch.last().map_or(after, |&(_, last)| last);
            let drawn: Vec<_> = stretch.into_iter().map(|(visitor, _)| (visitor, draws.of(visitor))).collect();
            let goes_on = self.queue.draw(epoch, after, is_last, &drawn).await?;
            if is_last && goes_on {
                tracing::info!(room = %self.name(), visitors = draw.roster, "everybody drew: export the roster to publish it");
            }
            if is_last || !goes_on {
                return Ok(());
            }
        }
    }

    /// The seed behind a commitment, if one of our keys made it.
    fn seed(&self, epoch: u64, commitment: &str) -> Option<Seed> {
        self.seeds(epoch).into_iter().find(|seed| seed.commitment() == commitment)
    }

    /// What our keys would commit to, the newest first.
    fn seeds(&self, epoch: u64) -> Vec<Seed> {
        let purpose = format!("draw of room {} in epoch {epoch}", self.name());
        self.keyring.derive(&purpose).into_iter().map(Seed::new).collect()
    }
}
