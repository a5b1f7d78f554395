//! The words of the line as types.

use std::{fmt, str::FromStr, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use super::{Draw, Snapshot};

/// A visitor: 128 random bits, written as 22 characters of URL-safe base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VisitorId([u8; 16]);

/// The text is not 22 characters of URL-safe base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a visitor id")]
pub struct InvalidVisitorId;

impl VisitorId {
    /// A new visitor.
    pub fn random() -> Self {
        Self(rand::random())
    }

    /// The 128 bits.
    pub const fn bits(self) -> [u8; 16] {
        self.0
    }

    /// A visitor with these bits, for tests and simulations that must be repeatable.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits.to_be_bytes())
    }
}

impl fmt::Display for VisitorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl FromStr for VisitorId {
    type Err = InvalidVisitorId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bits = [0_u8; 16];
        match URL_SAFE_NO_PAD.decode_slice(text, &mut bits) {
            Ok(16) => Ok(Self(bits)),
            _ => Err(InvalidVisitorId),
        }
    }
}

/// A visitor's order in the line: arrival in microseconds by the store's clock, strictly increasing, or a lottery
/// draw, which is below 2^50 and so before every arrival. Below 2^53, so that Lua and Redis hold it exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Score(pub u64);

/// A room's name: 1 to 32 of `a-z`, `0-9`, `-`, starting with a letter. Part of cookie names, paths and keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoomName(String);

/// The text is not a room name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("room name {0:?}: use 1 to 32 of a-z, 0-9 and '-', starting with a letter")]
pub struct InvalidRoomName(pub String);

impl RoomName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RoomName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RoomName {
    type Err = InvalidRoomName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=32).contains(&text.len())
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidRoomName(text.to_owned())) }
    }
}

/// How a room admits: what the operator sets, written to the store by `configure`.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Most visitors inside, called ones counted (G1).
    pub capacity: u32,
    /// Most admissions per second (G2).
    pub rate: f64,
    /// Admissions that may come at once beyond an even flow; at least 1.
    pub burst: u32,
    /// How long a called visitor has to show up.
    pub claim_window: Duration,
    /// How long a session lasts without renewal.
    pub session_ttl: Duration,
    /// A waiting visitor not seen for longer than this is skipped, but keeps the place.
    pub absent_after: Duration,
    /// A waiting visitor not seen for longer than this loses the place.
    pub grace: Duration,
    /// After the store lost its history, or may have, nobody is called for this long, so that places and sessions of
    /// before register again.
    pub settle: Duration,
    /// When what happens by itself.
    pub schedule: Schedule,
}

/// When a room opens and closes by itself. Times are milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Schedule {
    /// From when on visitors may come and wait for the opening; `None`: not before it.
    pub prequeue_at_ms: Option<u64>,
    /// When the sale opens; `None` opens at once.
    pub opens_at_ms: Option<u64>,
    /// When the room closes; `None`: when the operator says so.
    pub closes_at_ms: Option<u64>,
    /// How whoever came before the opening is ordered.
    pub method: Method,
}

/// How whoever came before the opening is ordered. Whoever comes later follows in order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// By arrival.
    #[default]
    Fifo,
    /// By a draw when it opens, the same chance for everybody who came in the pre-queue.
    Lottery,
}

/// What is remembered of a room whose state the store does not have.
#[derive(Debug, Clone, Copy)]
pub enum Past<'a> {
    /// There was none: no token can exist, so there is nothing to wait for.
    Blank,
    /// There may have been one, which nobody here remembers.
    Unknown,
    /// What a node that was stopped had written down.
    Kept {
        /// The epoch it was in.
        epoch: u64,
        /// Its draw.
        draw: &'a Draw,
    },
    /// What this node saw last.
    Seen(&'a Snapshot),
}

/// What a room is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Before the pre-queue or, without one, before the opening: nobody has a place yet.
    Scheduled,
    /// Taking visitors before the opening.
    Prequeue,
    /// Open, but the draw of those who came before is not done yet: taking visitors behind them.
    Drawing,
    /// Taking visitors and calling them.
    Open,
    /// Taking visitors, calling nobody.
    Paused,
    /// Nothing left to sell: nobody joins, nobody is called.
    SoldOut,
    /// Over: nobody joins, nobody is called.
    Closed,
}

impl Mode {
    /// The mode as documents and logs spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Prequeue => "prequeue",
            Self::Drawing => "drawing",
            Self::Open => "open",
            Self::Paused => "paused",
            Self::SoldOut => "sold_out",
            Self::Closed => "closed",
        }
    }
}

/// A place that a queue token proves, so that a line lost by the store can be rebuilt in its old order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    /// The score the token carries.
    pub score: Score,
    /// When the token was issued, in milliseconds since the Unix epoch. A proof from before the store's present
    /// history is believed for one grace after that history began; a later one means the place expired.
    pub issued_at_ms: u64,
}

/// One visitor who comes to the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Who.
    pub visitor: VisitorId,
    /// The place their token proves; `None` for a newcomer.
    pub proof: Option<Proof>,
    /// Whether an idle room may let them straight in (design: step 4 of a request).
    pub may_enter: bool,
}

/// Where a visitor stands, as a script answers it. All times are the store's clock, milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// No place: never joined, or given up (absent too long, claim window missed, left, released).
    None,
    /// In the line.
    Waiting {
        /// Their order.
        score: Score,
        /// How many wait before them, where the script knows it at no cost: when they just joined, at the end.
        ahead: Option<u64>,
    },
    /// At the front: the slot is theirs until the deadline.
    Called {
        /// The order they had in the line.
        score: Score,
        /// When the slot goes to the next.
        deadline_ms: u64,
        /// Zero, or how long until the rate lets them in (a claim came before its turn).
        wait_ms: u64,
    },
    /// Admitted.
    Inside {
        /// The order they had in the line; zero for a session that came back after the store lost its data.
        score: Score,
        /// When the session ends unless renewed.
        expires_ms: u64,
        /// When they were called; equals `admitted_ms` for direct entry. Approximate when `fresh` is false.
        called_ms: u64,
        /// When they were let in. Approximate when `fresh` is false.
        admitted_ms: u64,
        /// Whether this very call let them in, rather than a parallel or earlier one.
        fresh: bool,
    },
    /// In the roster of the draw.
    Registered {
        /// When they came, microseconds by the store's clock.
        arrival: Score,
        /// When the history of the store began in whose roster they are, milliseconds: the present one until the roster is
        /// closed, then the one in which it was.
        since_ms: u64,
    },
    /// The room takes nobody now.
    NotOpen(Mode),
}
