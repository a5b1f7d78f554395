//! The draw of a room, as its nodes carry it out. Every node can do every step, and a step done twice changes nothing, so
//! that any of them may fail in the middle.
//!
//! The seed is derived from the signing keys, which several nodes share anyway, and a nonce in the commitment: there is
//! nothing secret to hand around or to lose. A node whose newest key is another one finds the right key by the commitment.

use std::sync::atomic::Ordering;

use super::{LiveRoom, status::rfc3339, turn::proof_of, view::View};
use crate::{
    queue::{
        Draw, Mode, Place, Queue, QueueError, Score, Snapshot, VisitorId,
        lottery::{Commitment, Draws, Published, RosterDigest, Seed},
    },
    tokens::{Claims, Receipt},
};

/// Visitors read at once for the digest.
pub(super) const READ_AT_ONCE: u32 = 1_000;
/// Visitors drawn at once, so that no script holds the store up for long.
const DRAW_AT_ONCE: usize = 100;

impl LiveRoom {
    /// What `visitor` drew; `None` until everybody has.
    pub(super) fn draw_of(&self, visitor: VisitorId) -> Option<Score> {
        self.view().draws.as_ref().map(|draws| draws.of(visitor))
    }

    /// What everybody may know of the draw, the seed only when it is done; `None` without a lottery.
    pub fn published_draw(&self) -> Option<Published> {
        let view = self.view();
        let snapshot = &view.snapshot;
        let draw = snapshot.draw.as_ref()?;
        let schedule = &self.config.policy.schedule;
        let seed = draw.commitment.as_deref().filter(|_| draw.is_done).and_then(|it| self.seed(snapshot.epoch, it));
        Some(Published {
            room: self.name().to_string(),
            epoch: snapshot.epoch,
            method: schedule.method,
            state: view.mode(self.now_ms()),
            prequeue_at: schedule.prequeue_at_ms.and_then(rfc3339),
            opens_at: snapshot.opens_at_ms.and_then(rfc3339),
            closes_at: snapshot.closes_at_ms.and_then(rfc3339),
            commitment: draw.commitment.clone(),
            beacon: draw.beacon().map(str::to_owned),
            roster: draw.roster,
            roster_digest: draw.digest.clone(),
            public_value: draw.public.clone(),
            seed: seed.map(Seed::to_hex),
            receipt_keys: self.keyring.receipt_keys(),
        })
    }

    /// Proof, for everybody to check, that the holder of this queue token came in the pre-queue; `None` for who did not, left
    /// it, or is not in its roster.
    pub async fn receipt(&self, claims: &Claims) -> Option<Receipt> {
        let draw = self.view().snapshot.draw.clone()?;
        let arrival = match claims.arrival {
            Some(arrival) if claims.score.is_drawn() => arrival,
            _ if claims.draw => self.arrival_in_roster(claims, &draw).await?,
            _ => return None,
        };
        let commitment = draw.commitment.as_deref()?;
        Some(self.keyring.receipt(self.name().as_str(), claims.epoch, claims.sub, arrival, commitment))
    }

    /// When the holder of a pre-queue's token came, by the roster; by the token where the store cannot say.
    async fn arrival_in_roster(&self, claims: &Claims, draw: &Draw) -> Option<Score> {
        let came = claims.score;
        if self.is_away() {
            return (!self.has_left_the_pre_queue(claims)).then_some(came);
        }
        match self.queue.roster(Score(came.0.saturating_sub(1)), 1).await {
            Ok(found) if found.first() == Some(&(claims.sub, came)) => {
                (draw.is_done || !self.has_left_the_pre_queue(claims)).then_some(came)
            }
            // Lost before it was closed: there is time to come back to it.
            Ok(_) if draw.digest.is_none() => match self.queue.claim(claims.sub, Some(proof_of(claims))).await {
                Ok(Place::Registered { arrival, .. }) => Some(arrival),
                Ok(_) => None,
                Err(_) => Some(came),
            },
            // Lost after that, and they were in it.
            Ok(_) => {
                let was_lost = self.view().snapshot.since_ms != draw.sealed_since_ms;
                (was_lost && self.took_part(claims, draw)).then_some(came)
            }
            Err(error) => {
                self.store_failed(&error);
                Some(came)
            }
        }
    }

    /// Whether the holder of a pre-queue's token is in the roster for certain, as far as anybody knows who did not leave it:
    /// the store had it from their coming to its closing.
    pub(super) fn took_part(&self, claims: &Claims, draw: &Draw) -> bool {
        proof_of(claims).issued_at_ms >= draw.sealed_since_ms && !self.has_left_the_pre_queue(claims)
    }

    /// Whether whoever came in the pre-queue gave it up since, or was sent away.
    pub(super) fn has_left_the_pre_queue(&self, claims: &Claims) -> bool {
        // Rounded up: who comes again is behind their leaving, also within its millisecond.
        self.has_ended(claims.sub, claims.score.0.div_ceil(1_000))
    }

    /// Gives the draw the beacon's output. Taken once, after the pre-queue closed; whoever is second changes nothing.
    /// Returns the public value as it is now.
    pub async fn set_beacon(&self, value: &str) -> Result<Option<String>, QueueError> {
        let epoch = self.view().snapshot.epoch;
        let [_, _, public] = self.queue.seal(epoch, [None, None, Some(value)], None).await?;
        Ok(public)
    }

    /// The next of the roster after an arrival, for whoever publishes it.
    pub async fn roster(&self, after: Score) -> Result<Vec<(VisitorId, Score)>, QueueError> {
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
    pub(super) async fn go_on_with_the_draw(&self) -> Result<(), QueueError> {
        let view = self.view();
        let snapshot = &view.snapshot;
        let Some(draw) = snapshot.draw.as_ref() else { return Ok(()) };
        self.copy_the_roster(snapshot.epoch, draw).await?;
        if draw.is_done {
            return Ok(());
        }
        let Some(commitment) = draw.commitment.as_deref() else { return self.commit(snapshot.epoch).await };
        if snapshot.mode != Mode::Drawing || view.is_settling() {
            return Ok(());
        }
        match (draw.digest.as_deref(), draw.public.as_deref()) {
            (None, _) => self.close_the_roster(snapshot.epoch, draw).await,
            (Some(digest), None) if draw.beacon().is_none() => {
                self.queue.seal(snapshot.epoch, [None, None, Some(digest)], None).await.map(drop)
            }
            // The operator has yet to say what the beacon said.
            (Some(_), None) => Ok(()),
            (Some(_), Some(public)) => {
                if let Some(seed) = self.seed(snapshot.epoch, commitment) {
                    return self.draw_everybody(snapshot.epoch, draw, &seed.with(public)).await;
                }
                if self.keyless_epoch.swap(snapshot.epoch, Ordering::Relaxed) != snapshot.epoch {
                    tracing::error!(room = %self.name(), "the draw hangs on a signing key this gateway does not have");
                }
                Ok(())
            }
        }
    }

    /// Publishes what the newest key would draw with, and by which beacon if any; unless another node did before.
    pub(super) async fn commit(&self, epoch: u64) -> Result<(), QueueError> {
        // A seed is published once. The epoch begins anew with every new store, so it alone would give the next sale the
        // seed of the last one.
        let nonce = format!("{:032x}", rand::random::<u128>());
        match self.seeds(epoch, &nonce).first() {
            Some(seed) => {
                let commitment = seed.commitment(&nonce, self.config.beacon.as_deref());
                self.queue.seal(epoch, [Some(&commitment), None, None], None).await.map(drop)
            }
            None => Ok(()),
        }
    }

    async fn close_the_roster(&self, epoch: u64, draw: &Draw) -> Result<(), QueueError> {
        let (mut digest, mut after, mut count) = (RosterDigest::new(), Score(0), 0_u64);
        let mut page = self.begin_roster(epoch).await;
        loop {
            let stretch = self.queue.roster(after, READ_AT_ONCE).await?;
            let Some(&(_, last)) = stretch.last() else { break };
            page.add(&stretch).await;
            for &(visitor, arrival) in &stretch {
                digest.add(visitor, arrival);
                count += 1;
            }
            after = last;
        }
        // Before its digest is public: without it nobody could check the draw.
        page.keep().await;
        let digest = digest.finish();
        let [_, digest, public] = self.queue.seal(epoch, [None, Some(&digest), None], Some(count)).await?;
        // Else somebody came back to it meanwhile, after a loss: the next time it will be whole.
        if let Some(digest) = digest {
            tracing::info!(room = %self.name(), visitors = count, digest, "the pre-queue is closed");
            if public.is_none() && draw.beacon().is_none() {
                self.queue.seal(epoch, [None, None, Some(&digest)], None).await?;
            }
            // The next step begins with what is known now, and this one is not taken again.
            self.look_again().await?;
        }
        Ok(())
    }

    async fn draw_everybody(&self, epoch: u64, draw: &Draw, draws: &Draws) -> Result<(), QueueError> {
        let mut after = Score(draw.drawn_to);
        loop {
            let page = self.queue.roster(after, READ_AT_ONCE).await?;
            let is_last_page = page.len() < READ_AT_ONCE as usize;
            after = page.last().map_or(after, |&(_, last)| last);
            let scores: Vec<_> = page.iter().map(|&(visitor, _)| (visitor, draws.of(visitor))).collect();
            let mut stretches = scores.chunks(DRAW_AT_ONCE).zip(page.chunks(DRAW_AT_ONCE)).peekable();
            // One after the other: `drawn_to` must not pass somebody whose stretch got lost.
            while let Some((scores, stretch)) = stretches.next() {
                let until = stretch.last().map_or(after, |&(_, arrival)| arrival);
                let is_last = is_last_page && stretches.peek().is_none();
                if !self.queue.draw(epoch, until, is_last, scores).await? {
                    return Ok(());
                }
            }
            if page.is_empty() {
                self.queue.draw(epoch, after, true, &[]).await?;
            }
            if is_last_page {
                if self.drawn_epoch.swap(epoch, Ordering::Relaxed) != epoch {
                    tracing::info!(room = %self.name(), visitors = draw.roster, "everybody drew: export the roster to publish it");
                }
                return Ok(());
            }
        }
    }

    /// The seed behind a commitment, if one of our keys made it.
    fn seed(&self, epoch: u64, commitment: &str) -> Option<Seed> {
        let Commitment { nonce, beacon, .. } = Commitment::read(commitment)?;
        self.seeds(epoch, nonce).into_iter().find(|seed| seed.commitment(nonce, beacon) == commitment)
    }

    /// What our keys would commit to, the newest first.
    fn seeds(&self, epoch: u64, nonce: &str) -> Vec<Seed> {
        let purpose = format!("draw {nonce} of room {} in epoch {epoch}", self.name());
        self.keyring.derive(&purpose).into_iter().map(Seed::new).collect()
    }
}

/// What was published in `epoch` stays, also when the store lost it: else whoever can roll a store back could draw again.
/// Puts it into the snapshot too, until the store takes it.
pub(super) async fn publish_again(
    queue: &Queue,
    snapshot: &mut Snapshot,
    epoch: u64,
    known: &Draw,
) -> Result<(), QueueError> {
    let Some(draw) = snapshot.draw.as_mut().filter(|_| snapshot.epoch == epoch) else { return Ok(()) };
    let is_lost = |fact: &Option<String>, known: &Option<String>| fact.is_none() && known.is_some();
    let lost = is_lost(&draw.commitment, &known.commitment)
        || is_lost(&draw.digest, &known.digest)
        || is_lost(&draw.public, &known.public);
    if !lost {
        return Ok(());
    }
    let [commitment, digest, public] = queue.seal_again(epoch, known).await?;
    draw.commitment = commitment.or_else(|| known.commitment.clone());
    draw.digest = digest.or_else(|| known.digest.clone());
    draw.public = public.or_else(|| known.public.clone());
    draw.sealed_since_ms = known.sealed_since_ms;
    if known.digest.is_some() {
        draw.roster = known.roster;
        draw.sealed_until = known.sealed_until;
    }
    Ok(())
}
