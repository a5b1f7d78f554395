//! Commands on ranges of sorted sets, by rank or by score. A range of scores is one of ranks, found in O(log n).

use std::ops::Range;

use bytes::Bytes;

use super::{Reply, count, integer};
use crate::store::{
    Value,
    in_process::{
        error::CommandError,
        keyspace::Keyspace,
        number::{format_float, parse_float},
        sorted_set::{Member, SortedSet},
    },
};

pub fn zcount(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let scores = Scores::parse(&args[1], &args[2])?;
    Ok(count(keyspace.read::<SortedSet>(&args[0])?.map_or(0, |set| scores.ranks(set).len())))
}

pub fn zremrangebyscore(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let scores = Scores::parse(&args[1], &args[2])?;
    let removed =
        keyspace.update(&args[0], |set: &mut SortedSet| set.remove_range(&scores.ranks(set)).len())?.unwrap_or(0);
    Ok(count(removed))
}

pub fn zrangebyscore(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let options = RangeOptions { by_score: true, ..RangeOptions::parse(&args[3..], false)? };
    range(keyspace, args, &options)
}

pub fn zrange(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let options = RangeOptions::parse(&args[3..], true)?;
    // Redis takes a count of -1, which means all, for no limit.
    if options.limit.is_some_and(|(_, most)| most != -1) && !options.by_score {
        return Err(CommandError::LimitWithoutScore);
    }
    range(keyspace, args, &options)
}

fn range(keyspace: &mut Keyspace, args: &[Bytes], options: &RangeOptions) -> Reply {
    let (first, last) = (&args[1], &args[2]);
    let bounds = if options.by_score {
        let (min, max) = if options.reverse { (last, first) } else { (first, last) };
        Bounds::Scores(Scores::parse(min, max)?)
    } else {
        Bounds::Ranks(integer(first)?, integer(last)?)
    };
    let Some(set) = keyspace.read::<SortedSet>(&args[0])? else { return Ok(Value::Array(Vec::new())) };
    let ranks = match bounds {
        Bounds::Scores(scores) => options.limited(scores.ranks(set)),
        Bounds::Ranks(first, last) => {
            let ranks = counted_from_either_end(first, last, set.len());
            if options.reverse { set.len() - ranks.end..set.len() - ranks.start } else { ranks }
        }
    };
    if options.reverse {
        let members: Vec<_> = set.range(&ranks).collect();
        return Ok(flatten(members.into_iter().rev(), options.with_scores));
    }
    Ok(flatten(set.range(&ranks), options.with_scores))
}

enum Bounds {
    Scores(Scores),
    Ranks(i64, i64),
}

/// ZRANGE's indexes as ranks: negative ones count from the end, and none goes past it.
fn counted_from_either_end(first: i64, last: i64, len: usize) -> Range<usize> {
    let signed = i64::try_from(len).unwrap_or(i64::MAX);
    let rank = |index: i64| if index < 0 { index.saturating_add(signed) } else { index };
    let start = usize::try_from(rank(first).max(0)).unwrap_or(len);
    let end = usize::try_from(rank(last).saturating_add(1).max(0)).unwrap_or(len).min(len);
    if start < end { start..end } else { 0..0 }
}

/// A range of scores, its ends included or not.
struct Scores {
    min: f64,
    max: f64,
    above_min: bool,
    below_max: bool,
}

impl Scores {
    fn parse(min: &[u8], max: &[u8]) -> Result<Self, CommandError> {
        let bound = |text: &[u8]| {
            let (exclusive, number) = text.strip_prefix(b"(").map_or((false, text), |rest| (true, rest));
            parse_float(number).map(|score| (score, exclusive)).ok_or(CommandError::NotARange)
        };
        let ((min, above_min), (max, below_max)) = (bound(min)?, bound(max)?);
        Ok(Self { min, max, above_min, below_max })
    }

    fn ranks(&self, set: &SortedSet) -> Range<usize> {
        let start = if self.above_min { set.count_up_to(self.min) } else { set.count_below(self.min) };
        let end = if self.below_max { set.count_below(self.max) } else { set.count_up_to(self.max) };
        start..end.max(start)
    }
}

#[derive(Default)]
struct RangeOptions {
    by_score: bool,
    reverse: bool,
    with_scores: bool,
    /// Offset and count; a negative count means all.
    limit: Option<(i64, i64)>,
}

impl RangeOptions {
    /// `any_kind` for ZRANGE, whose words also choose the kind of range and the direction.
    fn parse(mut words: &[Bytes], any_kind: bool) -> Result<Self, CommandError> {
        let mut options = Self::default();
        while let [word, rest @ ..] = words {
            words = rest;
            match (&word.to_ascii_lowercase()[..], words) {
                (b"withscores", _) => options.with_scores = true,
                (b"limit", [offset, count, rest @ ..]) => {
                    options.limit = Some((integer(offset)?, integer(count)?));
                    words = rest;
                }
                (b"byscore", _) if any_kind && !options.by_score => options.by_score = true,
                (b"rev", _) if any_kind && !options.reverse => options.reverse = true,
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(options)
    }

    fn limited(&self, ranks: Range<usize>) -> Range<usize> {
        let Some((offset, most)) = self.limit else { return ranks };
        let Ok(offset) = usize::try_from(offset) else { return 0..0 };
        let skipped = offset.min(ranks.len());
        let taken = usize::try_from(most).unwrap_or(usize::MAX).min(ranks.len() - skipped);
        if self.reverse {
            ranks.end - skipped - taken..ranks.end - skipped
        } else {
            ranks.start + skipped..ranks.start + skipped + taken
        }
    }
}

/// Members, each followed by its score if asked for.
pub fn flatten<'a>(members: impl Iterator<Item = (&'a Member, f64)>, with_scores: bool) -> Value {
    let mut reply = Vec::new();
    for (member, score) in members {
        reply.push(Value::Bulk(Bytes::copy_from_slice(member)));
        if with_scores {
            reply.push(Value::Bulk(format_float(score).into()));
        }
    }
    Value::Array(reply)
}
