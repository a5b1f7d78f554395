//! What a node knows of a room between two looks at the store.

use super::{Mode, QueueError, Score, VisitorId, lottery::Commitment, reply::Reply};

/// A room at one instant.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The store's time, milliseconds since the epoch.
    pub now_ms: u64,
    /// When the store's present history of this room began. Changes when the store lost its data.
    pub since_ms: u64,
    /// Nobody is called before this.
    pub settle_until_ms: u64,
    /// The room's epoch: a reset starts a new one, and tokens of older ones are void.
    pub epoch: u64,
    /// What the room does at `now_ms` (a schedule that has come is already `Open`).
    pub mode: Mode,
    /// When it opens, if that is set.
    pub opens_at_ms: Option<u64>,
    /// When it closes, if that is set.
    pub closes_at_ms: Option<u64>,
    /// Most visitors inside, called ones counted.
    pub capacity: u32,
    /// Most admissions per second.
    pub rate: f64,
    /// How many wait.
    pub line: u64,
    /// How many are called and have not shown up yet.
    pub called: u64,
    /// How many hold a live session.
    pub inside: u64,
    /// The highest score called so far: nobody behind it needs to ask the store whether it is their turn.
    pub watermark: Score,
    /// Visitors who ever joined the line, in this history.
    pub joined_total: u64,
    /// Visitors ever called, in this history.
    pub called_total: u64,
    /// Visitors ever let in, in this history.
    pub admitted_total: u64,
    /// Calls nobody answered, in this history.
    pub no_shows_total: u64,
    /// The draw of whoever came before the opening; `None` for a room that has none.
    pub draw: Option<Draw>,
    /// Whose place or session somebody ended since the last look, and when, microseconds by the store's clock.
    pub ended: Vec<(VisitorId, u64)>,
    /// Up to where that is known, microseconds by the store's clock: the next look begins there.
    pub ended_until: u64,
}

/// How far the draw is. The facts are published one after the other, and then stay.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Draw {
    /// How many take part; from the digest on how many it names, also when the store lost them since.
    pub roster: u64,
    /// Before anybody came: what binds the operator, see [`Commitment`].
    pub commitment: Option<String>,
    /// When the pre-queue closed: the digest of the roster, hex.
    pub digest: Option<String>,
    /// Then: what nobody could know before.
    pub public: Option<String>,
    /// Whether everybody drew.
    pub is_done: bool,
    /// The arrival up to which they drew.
    pub drawn_to: u64,
    /// When the history of the store began in which the roster was closed, milliseconds: whoever came in it and stayed is in
    /// the roster, whoever came before only if they came back in time. 0 before that.
    pub sealed_since_ms: u64,
    /// When the last of that roster came, microseconds; 0 before it was closed. Whoever came later is not in it, also where the opening was
    /// put off since.
    pub sealed_until: u64,
}

impl Snapshot {
    /// Whether places and sessions of a lost history are still registering.
    pub fn is_settling(&self) -> bool {
        self.now_ms < self.settle_until_ms
    }

    /// Whether there is a draw that is not done: whoever takes part comes before everybody who waits.
    pub fn has_draw_ahead(&self) -> bool {
        self.draw.as_ref().is_some_and(|draw| !draw.is_done)
    }

    /// Reads the reply to a look that knew who was ended until then.
    pub(super) fn read(mut reply: Reply, ended_until: u64) -> Result<Self, QueueError> {
        let mut snapshot = Self {
            now_ms: reply.number()?,
            since_ms: reply.number()?,
            settle_until_ms: reply.number()?,
            epoch: reply.number()?,
            mode: reply.mode()?,
            opens_at_ms: Some(reply.number()?).filter(|&at| at > 0),
            capacity: reply.small()?,
            rate: reply.fraction()?,
            line: reply.number()?,
            called: reply.number()?,
            inside: reply.number()?,
            watermark: Score(reply.number()?),
            joined_total: reply.number()?,
            called_total: reply.number()?,
            admitted_total: reply.number()?,
            no_shows_total: reply.number()?,
            closes_at_ms: Some(reply.number()?).filter(|&at| at > 0),
            draw: Draw::read(&mut reply)?,
            ended: ended(&reply.text()?),
            ended_until,
        };
        if let Some(&(_, at)) = snapshot.ended.last() {
            snapshot.ended_until = at;
        }
        Ok(snapshot)
    }
}

impl Draw {
    /// The beacon whose output is the public value, as it was committed to; `None` where the roster's digest is.
    pub fn beacon(&self) -> Option<&str> {
        Commitment::read(self.commitment.as_deref()?)?.beacon
    }

    fn read(reply: &mut Reply) -> Result<Option<Self>, QueueError> {
        let has_one = reply.number()? == 1;
        let (roster, is_done) = (reply.number()?, reply.number()? == 1);
        let (drawn_to, sealed_since_ms, sealed_until) = (reply.number()?, reply.number()?, reply.number()?);
        let [commitment, digest, public] = reply.facts()?;
        Ok(has_one.then_some(Self {
            roster,
            commitment,
            digest,
            public,
            is_done,
            drawn_to,
            sealed_since_ms,
            sealed_until,
        }))
    }
}

fn ended(text: &str) -> Vec<(VisitorId, u64)> {
    let mut words = text.split_ascii_whitespace();
    let mut ended = Vec::new();
    while let (Some(visitor), Some(at)) = (words.next(), words.next()) {
        if let (Ok(visitor), Ok(at)) = (visitor.parse(), at.parse()) {
            ended.push((visitor, at));
        }
    }
    ended
}
