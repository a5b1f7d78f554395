//! Checks a published draw, without anybody's help.

use std::io::{self, BufRead};

use ring::digest;

use super::{Commitment, Draws, Published, Seed, hex};
use crate::queue::{Score, VisitorId};

/// Longest line of a roster that is read: a line of ours has at most 40 bytes.
const LONGEST_LINE: u64 = 200;

/// What is wrong with a draw.
#[derive(Debug, thiserror::Error)]
pub enum Flaw {
    /// The draw is not done, or the document is not all of it.
    #[error("the draw is not done yet: draw.json says no {0}")]
    Unfinished(&'static str),
    /// The seed is not hex of the right length.
    #[error("the seed is not 64 hex digits")]
    BadSeed,
    /// The operator published another seed than the one committed to.
    #[error("the seed is not the one that was committed to: with its SHA-256 it would be {found}, it is {committed}")]
    Commitment {
        /// SHA-256 of the seed.
        found: String,
        /// What was published before anybody came.
        committed: String,
    },
    /// The beacon was named, exchanged or dropped after the commitment.
    #[error("the beacon is {}, but {} was committed to", named(published.as_deref()), named(committed.as_deref()))]
    OtherBeacon {
        /// As the document says it.
        published: Option<String>,
        /// As the commitment does.
        committed: Option<String>,
    },
    /// Without a beacon nothing but the roster's digest may be the public value.
    #[error("the public value is not the roster's digest, and no beacon was named before the draw")]
    PublicValue,
    /// The public value is not what the beacon said.
    #[error("the public value is {public:?}, but the beacon said {beacon:?}")]
    Beacon {
        /// The value that decided the draw.
        public: String,
        /// What the verifier read from the beacon.
        beacon: String,
    },
    /// A value was given for a beacon that was not named.
    #[error("no beacon was named for this draw, so there is no beacon value to compare")]
    NoBeacon,
    /// A line of the roster cannot be read.
    #[error("line {0} of the roster is not `visitor arrival`")]
    BadLine(u64),
    /// A line of the roster is out of order.
    #[error("line {0} of the roster is not in order of arrival")]
    OutOfOrder(u64),
    /// A visitor is twice in the roster.
    #[error("visitor {0} is in the roster twice")]
    Twice(VisitorId),
    /// The roster is not the one whose digest was published.
    #[error(
        "the roster is not the one that was fixed before the draw: its digest is {found}, the published one {published}"
    )]
    RosterDigest {
        /// Of the file.
        found: String,
        /// When the pre-queue closed.
        published: String,
    },
    /// The roster cannot be read.
    #[error("the roster cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

/// What decides, in words.
fn named(beacon: Option<&str>) -> String {
    beacon.map_or_else(|| "none (the roster's digest decides)".to_owned(), |beacon| format!("{beacon:?}"))
}

/// What a visitor drew, who they are, and when they came.
type Drawn = (Score, VisitorId, Score);

/// A draw that is as published.
#[derive(Debug)]
pub struct Order {
    /// Everybody, the first to be called first, with what they drew and when they came.
    places: Vec<Drawn>,
}

impl Order {
    /// How many drew.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether nobody drew.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Everybody in order, with what they drew.
    pub fn iter(&self) -> impl Iterator<Item = (VisitorId, Score)> {
        self.places.iter().map(|&(draw, visitor, _)| (visitor, draw))
    }

    /// A visitor's place, from 1, and when they came; `None` for who did not take part.
    pub fn place_of(&self, visitor: VisitorId) -> Option<(usize, Score)> {
        let at = self.places.iter().position(|&(_, other, _)| other == visitor)?;
        self.places.get(at).map(|&(_, _, arrival)| (at + 1, arrival))
    }
}

/// Checks commitment, beacon, public value and roster, and works out the order. `beacon_value` is what the verifier read from the
/// beacon that was named.
///
/// Takes a few seconds and 50 bytes of memory a visitor for a million.
///
/// # Errors
/// The first thing that is not as published.
pub fn verify(draw: &Published, roster: impl BufRead, beacon_value: Option<&str>) -> Result<Order, Flaw> {
    let committed = draw.commitment.as_deref().ok_or(Flaw::Unfinished("commitment"))?;
    let published = draw.roster_digest.as_deref().ok_or(Flaw::Unfinished("roster_digest"))?;
    let public = draw.public_value.as_deref().ok_or(Flaw::Unfinished("public_value"))?;
    let seed = draw.seed.as_deref().ok_or(Flaw::Unfinished("seed"))?;
    let seed = Seed::from_hex(seed).ok_or(Flaw::BadSeed)?;
    let (nonce, beacon) = Commitment::read(committed).map(|it| (it.nonce, it.beacon)).unwrap_or_default();
    let found = seed.commitment(nonce, beacon);
    if found != committed {
        return Err(Flaw::Commitment { found, committed: committed.to_owned() });
    }
    if draw.beacon.as_deref() != beacon {
        return Err(Flaw::OtherBeacon { published: draw.beacon.clone(), committed: beacon.map(str::to_owned) });
    }
    match (&draw.beacon, beacon_value) {
        (None, Some(_)) => return Err(Flaw::NoBeacon),
        (None, None) if public != published => return Err(Flaw::PublicValue),
        (Some(_), Some(said)) if said != public => {
            return Err(Flaw::Beacon { public: public.to_owned(), beacon: said.to_owned() });
        }
        _ => {}
    }
    let (places, found) = read(roster, &seed.with(public))?;
    if found != published {
        return Err(Flaw::RosterDigest { found, published: published.to_owned() });
    }
    in_order(places)
}

/// The roster with what everybody drew, and its digest.
fn read(mut roster: impl BufRead, draws: &Draws) -> Result<(Vec<Drawn>, String), Flaw> {
    let (mut places, mut context) = (Vec::new(), digest::Context::new(&digest::SHA256));
    let (mut line, mut number, mut last) = (Vec::new(), 0, Score(0));
    loop {
        line.clear();
        if io::Read::take(&mut roster, LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        number += 1;
        context.update(&line);
        let (visitor, arrival) = parse(&line).ok_or(Flaw::BadLine(number))?;
        if arrival <= last {
            return Err(Flaw::OutOfOrder(number));
        }
        last = arrival;
        places.push((draws.of(visitor), visitor, arrival));
    }
    Ok((places, hex(context.finish().as_ref())))
}

fn parse(line: &[u8]) -> Option<(VisitorId, Score)> {
    let (visitor, arrival) = str::from_utf8(line.strip_suffix(b"\n")?).ok()?.split_once(' ')?;
    Some((visitor.parse().ok()?, Score(arrival.parse().ok()?)))
}

/// Equal draws are in the order of the visitors' names as text, as a sorted set has them.
fn in_order(mut places: Vec<Drawn>) -> Result<Order, Flaw> {
    places.sort_unstable_by(|one, other| one.0.cmp(&other.0).then_with(|| one.1.to_string().cmp(&other.1.to_string())));
    // Whoever is there twice drew the same twice.
    let twice = places.windows(2).find(|pair| matches!(pair, [one, other] if one.1 == other.1));
    match twice.and_then(|pair| pair.first()) {
        Some(&(_, visitor, _)) => Err(Flaw::Twice(visitor)),
        None => Ok(Order { places }),
    }
}

#[cfg(test)]
mod tests;
