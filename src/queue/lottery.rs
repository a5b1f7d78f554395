//! The draw: everybody who came before the opening gets a score that nobody could choose, the operator included.
//!
//! | when | what is published | as |
//! | --- | --- | --- |
//! | before anybody comes | the commitment | `nonce:hash`, the SHA-256 of the seed, and `:beacon` if one decides |
//! | when the pre-queue closes | the roster's digest | SHA-256 of the lines `visitor arrival\n`, in order of arrival |
//! | then | the public value | the output of the beacon that the commitment names, else the roster's digest |
//! | after the draw | seed and roster | |
//!
//! A draw is the first 50 bits of HMAC-SHA-256 (RFC 2104) with the key `seed ‖ public value` over the visitor's 16 bytes. All
//! values are published as lower-case hex; the public value enters as the bytes of its published text.

mod commitment;
mod published;
pub mod verify;

pub use commitment::Commitment;
pub use published::Published;

use std::fmt;

use ring::{digest, hmac};

use super::{Draw, Queue, QueueError, Score, VisitorId, lua};

/// Bits of a draw: enough that two of a million are rarely equal (the visitor's id breaks the tie, as the sorted set
/// does), few enough to stand before every arrival (microseconds since the epoch pass 2^50 in 2005).
const DRAW_BITS: u32 = 50;

impl Score {
    /// Whether it was drawn, and is not an arrival.
    pub const fn is_drawn(self) -> bool {
        self.0 < 1 << DRAW_BITS
    }
}

/// What the operator commits to before anybody comes, and publishes after the draw.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seed([u8; 32]);

impl Seed {
    /// The seed of these bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads 64 hex digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// The seed as hex, for whoever publishes it after the draw.
    pub fn to_hex(self) -> String {
        hex(&self.0)
    }

    /// What is published before anybody comes; see [`Commitment`].
    pub fn commitment(&self, nonce: &str, beacon: Option<&str>) -> String {
        let seed_hash = hex(digest::digest(&digest::SHA256, &self.0).as_ref());
        Commitment { nonce, seed_hash: &seed_hash, beacon }.to_string()
    }

    /// The draws that follow from this seed and the public value.
    pub fn with(&self, public: &str) -> Draws {
        let mut key = self.0.to_vec();
        key.extend_from_slice(public.as_bytes());
        Draws(hmac::Key::new(hmac::HMAC_SHA256, &key))
    }
}

/// Shows nothing: until the draw the seed is secret.
impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(..)")
    }
}

/// What every visitor draws.
#[derive(Clone)]
pub struct Draws(hmac::Key);

impl Draws {
    /// The score this visitor draws: from 1 to 2^50 − 1.
    pub fn of(&self, visitor: VisitorId) -> Score {
        let tag = hmac::sign(&self.0, &visitor.bits());
        let first = tag.as_ref().iter().take(8).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        Score((first >> (64 - DRAW_BITS)).max(1))
    }
}

impl fmt::Debug for Draws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Draws(..)")
    }
}

/// The digest of a roster, fed in order of arrival.
#[derive(Clone)]
pub struct RosterDigest(digest::Context);

impl RosterDigest {
    /// Of nobody yet.
    pub fn new() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }

    /// Adds the next to arrive.
    pub fn add(&mut self, visitor: VisitorId, arrival: Score) {
        self.0.update(roster_line(visitor, arrival).as_bytes());
    }

    /// The digest as it is published.
    pub fn finish(self) -> String {
        hex(self.0.finish().as_ref())
    }
}

impl Default for RosterDigest {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RosterDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RosterDigest(..)")
    }
}

/// A line of the published roster.
pub fn roster_line(visitor: VisitorId, arrival: Score) -> String {
    format!("{visitor} {}\n", arrival.0)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble & 15)).copied().unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

impl Queue {
    /// Publishes facts of the draw of `epoch`, each of which the first caller decides; `None` leaves one open. The
    /// commitment is taken at any time, the digest once the pre-queue closed, then the public value. With `roster` the
    /// digest is only taken while that many are in the roster. Returns the facts as they are published now.
    pub async fn seal(
        &self,
        epoch: u64,
        facts: [Option<&str>; 3],
        roster: Option<u64>,
    ) -> Result<[Option<String>; 3], QueueError> {
        let mut args = vec![epoch.into()];
        args.extend(facts.map(|fact| fact.unwrap_or_default().into()));
        args.extend([roster.map_or("".into(), Into::into), "".into(), "".into(), "".into()]);
        self.run(&lua::SEAL, args).await?.facts()
    }

    /// Publishes again what the store lost of a draw that a node remembers. Returns the facts as they are published now.
    pub async fn seal_again(&self, epoch: u64, known: &Draw) -> Result<[Option<String>; 3], QueueError> {
        let facts = [&known.commitment, &known.digest, &known.public];
        let mut args = vec![epoch.into()];
        args.extend(facts.map(|fact| fact.as_deref().unwrap_or_default().into()));
        args.extend(["".into(), known.sealed_since_ms.into(), known.roster.into(), known.sealed_until.into()]);
        self.run(&lua::SEAL, args).await?.facts()
    }

    /// The next of the roster after an arrival, in order of arrival, at most 1,000. Empty at its end.
    pub async fn roster(&self, after: Score, most: u32) -> Result<Vec<(VisitorId, Score)>, QueueError> {
        self.run(&lua::ROSTER, vec![after.0.into(), most.into()]).await?.visitors()
    }

    /// Puts a stretch of the roster into the line, at most 200 with the score each drew. `until` is the arrival of the last
    /// of them, `is_last` whether the roster ends there. False when there is no draw under way.
    pub async fn draw(
        &self,
        epoch: u64,
        until: Score,
        is_last: bool,
        draws: &[(VisitorId, Score)],
    ) -> Result<bool, QueueError> {
        let mut args = vec![epoch.into(), until.0.into(), u32::from(is_last).into()];
        for (visitor, draw) in draws {
            args.extend([visitor.to_string().into(), draw.0.into()]);
        }
        Ok(self.run(&lua::DRAW, args).await?.number()? == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_standards() {
        // SHA-256 of 32 zero bytes; and HMAC-SHA-256 by another implementation (Python's hmac).
        let seed = Seed::new([0; 32]);
        assert_eq!(seed.commitment("n", None), "n:66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925");
        assert_eq!(seed.with("abc").of(VisitorId::from_bits(1)), Score(167_520_591_158_517));
        assert_eq!(Seed::from_hex(&seed.to_hex()), Some(seed));
        assert_eq!(Seed::from_hex("00"), None);
    }

    #[test]
    fn draws_stand_before_every_arrival_and_differ() {
        let draws = Seed::new([7; 32]).with("public");
        let mut all: Vec<_> = (0..10_000).map(|visitor| draws.of(VisitorId::from_bits(visitor))).collect();
        assert!(all.iter().all(|draw| (1..1 << DRAW_BITS).contains(&draw.0)));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 10_000);
        assert_ne!(draws.of(VisitorId::from_bits(1)), Seed::new([7; 32]).with("other").of(VisitorId::from_bits(1)));
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn the_order_of_draws_has_nothing_to_do_with_the_order_of_arrival() {
        // Spearman's rank correlation of n independent pairs has a standard deviation of 1/sqrt(n - 1).
        let draws = Seed::new([3; 32]).with("beacon");
        let mut order: Vec<u128> = (0..2_000).collect();
        order.sort_by_key(|&visitor| draws.of(VisitorId::from_bits(visitor)));
        let n = 2_000.0_f64;
        let squares: f64 =
            order.iter().enumerate().map(|(rank, &arrival)| (rank as f64 - arrival as f64).powi(2)).sum();
        let correlation = 1.0 - 6.0 * squares / (n * (n * n - 1.0));
        assert!(correlation.abs() < 4.0 / (n - 1.0).sqrt(), "{correlation}");
    }
}
