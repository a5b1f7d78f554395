//! Typed bindings of the queue's scripts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    Arrival, Draw, Method, Mode, Past, Place, Policy, Proof, QueueError, RoomName, Snapshot, VisitorId, keys, lua,
    reply,
    sketch::{Measures, Question},
};
use crate::store::{Arg, Script, SharedEngine, Value};

/// Most visitors in one run of a script, so that it holds the store up for about a millisecond.
pub const BATCH: usize = 100;

/// The line of one room. Cheap to clone.
///
/// Every method runs one script (more only where a batch is longer than 100). While the room has no state in the
/// store (it was never configured, or the store lost its data) each but [`Queue::configure`] fails with
/// [`QueueError::NotConfigured`]; configuring the room again cures that.
#[derive(Debug, Clone)]
pub struct Queue {
    engine: SharedEngine,
    room: RoomName,
    keys: Arc<[String; keys::KEY_COUNT]>,
    /// The epoch that clones go by; 0 before anybody said.
    epoch: Arc<AtomicU64>,
}

/// What one run of `call` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Called {
    /// How many were called.
    pub called: u32,
    /// How many absent visitors were passed over.
    pub skipped: u32,
}

/// What one run of `sweep` removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Claims that nobody made in time.
    pub no_shows: u32,
    /// Sessions that ended.
    pub sessions: u32,
    /// Places given up by absence beyond the grace.
    pub absent: u32,
}

impl Queue {
    /// The line of `room` in the store behind `engine`.
    pub fn new(engine: SharedEngine, room: &RoomName) -> Self {
        Self { engine, room: room.clone(), keys: Arc::new(keys::of_room(room)), epoch: Arc::default() }
    }

    /// Goes by this epoch from now on, and so do all clones: a join, claim, renewal or report that meets another one fails
    /// with [`QueueError::OtherEpoch`], because the tokens it speaks of are void.
    pub fn go_by(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Relaxed);
    }

    fn epoch(&self) -> Arg {
        self.epoch.load(Ordering::Relaxed).into()
    }

    /// Writes the policy. Creates the room's state when it is missing, from what is known of its past; unless that is
    /// blank, nobody is called or let straight in for [`Policy::settle`].
    ///
    /// A rate that is negative or not finite lets nobody in. A lower capacity ejects nobody. The epoch only rises: a
    /// state of an older one is a state from before a reset, and is given up.
    pub async fn configure(&self, policy: &Policy, past: Past<'_>) -> Result<(), QueueError> {
        let rate = if policy.rate.is_finite() { policy.rate.max(0.0) } else { 0.0 };
        let schedule = &policy.schedule;
        let mut args = vec![
            policy.capacity.into(),
            rate.to_string().into(),
            policy.burst.max(1).into(),
            millis(policy.claim_window),
            millis(policy.session_ttl),
            millis(policy.absent_after),
            millis(policy.grace),
            schedule.opens_at_ms.unwrap_or(0).into(),
            millis(policy.settle),
            schedule.prequeue_at_ms.unwrap_or(0).into(),
            schedule.closes_at_ms.unwrap_or(0).into(),
            u32::from(schedule.method == Method::Lottery).into(),
        ];
        args.extend(past_args(policy, past));
        self.run(&lua::CONFIGURE, args).await.map(drop)
    }

    /// Sets what the room does. `Mode::Open` and `Mode::Scheduled` both clear any other mode; which of the two holds is for the clock to say.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), QueueError> {
        self.run(&lua::MODE, vec![reply::stored_code(mode).into()]).await.map(drop)
    }

    /// One place per arrival, in order. Idempotent; the repeat of a join only reads, so it does not mark the visitor
    /// as present ([`Queue::seen`] does).
    pub async fn join(&self, arrivals: &[Arrival]) -> Result<Vec<Place>, QueueError> {
        let mut places = Vec::with_capacity(arrivals.len());
        for batch in arrivals.chunks(BATCH) {
            let mut args = Vec::with_capacity(batch.len() * 4);
            for arrival in batch {
                args.push(arrival.visitor.to_string().into());
                args.extend(proof_args(arrival.proof));
                args.push(u32::from(arrival.may_enter).into());
            }
            args.push(self.epoch());
            places.extend(self.run(&lua::JOIN, args).await?.places(batch.len())?);
        }
        Ok(places)
    }

    /// Calls at most `most` visitors (at most 50 a run).
    pub async fn call(&self, most: u32) -> Result<Called, QueueError> {
        let mut reply = self.run(&lua::CALL, vec![most.into()]).await?;
        Ok(Called { called: reply.small()?, skipped: reply.small()? })
    }

    /// Exchanges a call for a session. Idempotent. A visitor still waiting is marked present.
    /// With a proof, a lost place is restored first, as by join.
    ///
    /// A claim that the rate holds back keeps the slot: its deadline moves to a whole claim window after its turn.
    pub async fn claim(&self, visitor: VisitorId, proof: Option<Proof>) -> Result<Place, QueueError> {
        let [score, issued] = proof_args(proof);
        self.run(&lua::CLAIM, vec![visitor.to_string().into(), score, issued, self.epoch()]).await?.place()
    }

    /// Moves a session's end to now + `ttl`, never past `not_after_ms`, never backwards. Registers a session that
    /// a lost store forgot when `issued_at_ms` is before the store's present history.
    pub async fn renew(
        &self,
        visitor: VisitorId,
        issued_at_ms: u64,
        expires_ms: u64,
        ttl: Duration,
        not_after_ms: u64,
    ) -> Result<Place, QueueError> {
        let args = vec![
            visitor.to_string().into(),
            issued_at_ms.into(),
            expires_ms.into(),
            millis(ttl),
            not_after_ms.into(),
            self.epoch(),
        ];
        self.run(&lua::RENEW, args).await?.place()
    }

    /// Ends a session and frees its slot, once. Returns whether this call did.
    pub async fn release(&self, visitor: VisitorId) -> Result<bool, QueueError> {
        Ok(self.run(&lua::RELEASE, vec![visitor.to_string().into()]).await?.number()? == 1)
    }

    /// Gives up place, call and session. Returns whether there was one.
    pub async fn leave(&self, visitor: VisitorId) -> Result<bool, QueueError> {
        Ok(self.run(&lua::LEAVE, vec![visitor.to_string().into(), 0_u32.into()]).await?.number()? == 1)
    }

    /// Takes away place, call and session, also those that the store does not know (any more): every node learns it with
    /// its next snapshot. Returns whether the store knew one.
    pub async fn revoke(&self, visitor: VisitorId) -> Result<bool, QueueError> {
        Ok(self.run(&lua::LEAVE, vec![visitor.to_string().into(), 1_u32.into()]).await?.number()? == 1)
    }

    /// Ends what each visitor held up to a moment, in microseconds by the store's clock: it was away then, or forgot it since.
    /// What they came back for later stays. Returns how many held something that ended.
    pub async fn end(&self, ended: &[(VisitorId, u64)]) -> Result<u64, QueueError> {
        let mut sum = 0;
        for batch in ended.chunks(BATCH) {
            let pairs = batch.iter().flat_map(|&(visitor, at_us)| [visitor.to_string().into(), at_us.into()]);
            sum += self.run(&lua::END, pairs.chain([self.epoch()]).collect()).await?.number()?;
        }
        Ok(sum)
    }

    /// Marks waiting visitors as present; restores proven places that a lost store forgot. One place per entry.
    pub async fn seen(&self, visitors: &[(VisitorId, Proof)]) -> Result<Vec<Place>, QueueError> {
        let mut places = Vec::with_capacity(visitors.len());
        for batch in visitors.chunks(BATCH) {
            let mut args = Vec::with_capacity(batch.len() * 3);
            for (visitor, proof) in batch {
                args.push(visitor.to_string().into());
                args.extend(proof_args(Some(*proof)));
            }
            args.push(self.epoch());
            places.extend(self.run(&lua::SEEN, args).await?.places(batch.len())?);
        }
        Ok(places)
    }

    /// Removes what ran out, a bounded number a run.
    ///
    /// When neither this nor [`Queue::call`] ran for 5 s, nobody could be seen: absence and claim windows then count
    /// from the first run after. So a test on virtual time has to step, sweeping, rather than jump.
    pub async fn sweep(&self) -> Result<Swept, QueueError> {
        let mut reply = self.run(&lua::SWEEP, Vec::new()).await?;
        Ok(Swept { no_shows: reply.small()?, sessions: reply.small()?, absent: reply.small()? })
    }

    /// The room as it stands, with whoever was ended after [`Snapshot::ended_until`] of the last look, or 0.
    pub async fn snapshot(&self, ended_until: u64) -> Result<Snapshot, QueueError> {
        Snapshot::read(self.run(&lua::SNAPSHOT, vec![ended_until.into()]).await?, ended_until)
    }

    /// Begins a new epoch after `epoch`: nobody waits, nobody is inside, no token of before counts. Returns the epoch that
    /// holds now; a repeat changes nothing.
    pub async fn reset(&self, epoch: u64) -> Result<u64, QueueError> {
        self.run(&lua::RESET, vec![epoch.into()]).await?.number()
    }

    /// Measures the line where a [`SketchKeeper`](super::SketchKeeper) asks.
    pub async fn sketch(&self, question: &Question) -> Result<Measures, QueueError> {
        let mut args = Vec::new();
        for walk in &question.0 {
            args.extend([walk.from.into(), Arg::Int(i64::try_from(walk.distances.len()).unwrap_or(0))]);
            args.extend(walk.distances.iter().map(|&distance| Arg::from(distance)));
        }
        Measures::read(self.run(&lua::SKETCH, args).await?)
    }

    pub(super) async fn run(&self, script: &'static Script, args: Vec<Arg>) -> Result<reply::Reply, QueueError> {
        let keys = self.keys.get(..script.key_count().unwrap_or(0)).unwrap_or_default();
        let value: Value = self.engine.run(script, keys, args).await?;
        if value == reply::NOT_CONFIGURED {
            return Err(QueueError::NotConfigured(self.room.clone()));
        }
        if value == reply::OTHER_EPOCH {
            return Err(QueueError::OtherEpoch(self.room.clone()));
        }
        Ok(reply::Reply::new(script, value))
    }
}

fn millis(duration: Duration) -> Arg {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into()
}

/// What a new state begins with.
fn past_args(policy: &Policy, past: Past<'_>) -> [Arg; 10] {
    let settle = match past {
        Past::Blank => Duration::ZERO,
        Past::Unknown | Past::Kept { .. } | Past::Seen(_) => policy.settle,
    };
    let seen = match past {
        Past::Seen(snapshot) => Some(snapshot),
        Past::Blank | Past::Unknown | Past::Kept { .. } => None,
    };
    let draw = match past {
        Past::Kept { draw, .. } => draw.clone(),
        Past::Seen(snapshot) => snapshot.draw.clone().unwrap_or_default(),
        Past::Blank | Past::Unknown => Draw::default(),
    };
    let epoch = match past {
        Past::Kept { epoch, .. } => epoch,
        Past::Seen(snapshot) => snapshot.epoch,
        Past::Blank | Past::Unknown => 1,
    };
    // Before that they come back, or do not.
    let sealed_count = draw.digest.as_ref().map_or(0, |_| draw.roster);
    let fact = |fact: Option<String>| fact.unwrap_or_default().into();
    [
        epoch.into(),
        millis(settle),
        reply::stored_code(seen.map_or(Mode::Open, |snapshot| snapshot.mode)).into(),
        u32::from(draw.is_done).into(),
        fact(draw.commitment),
        fact(draw.digest),
        fact(draw.public),
        draw.sealed_since_ms.into(),
        sealed_count.into(),
        draw.sealed_until.into(),
    ]
}

fn proof_args(proof: Option<Proof>) -> [Arg; 2] {
    match proof {
        Some(proof) => [proof.score.0.into(), proof.issued_at_ms.into()],
        None => ["".into(), "".into()],
    }
}
