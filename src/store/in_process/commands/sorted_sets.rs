//! Commands on the members of sorted sets.

use bytes::Bytes;

use super::{Reply, count, ranges::flatten};
use crate::store::{
    Value,
    in_process::{
        error::CommandError,
        keyspace::Keyspace,
        number::{format_float, parse_float, parse_integer},
        sorted_set::SortedSet,
    },
};

pub fn zadd(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let [key, words @ ..] = args else { return Err(CommandError::Arity) };
    let (rule, words) = AddRule::parse(words);
    let (pairs, []) = words.as_chunks::<2>() else { return Err(CommandError::Syntax) };
    rule.check(pairs.len())?;
    let pairs = pairs
        .iter()
        .map(|[score, member]| Ok((parse_float(score).ok_or(CommandError::NotAFloat)?, member)))
        .collect::<Result<Vec<_>, _>>()?;
    keyspace.upsert(key, |set: &mut SortedSet| {
        let (mut added, mut changed, mut last) = (0, 0, None);
        for (score, member) in pairs {
            let old = set.score(member);
            last = rule.new_score(old, score)?;
            let Some(new) = last else { continue };
            set.insert(member, new);
            added += usize::from(old.is_none());
            changed += usize::from(old != last);
        }
        Ok(match (rule.incr, rule.ch) {
            (true, _) => score_reply(last),
            (false, true) => count(changed),
            (false, false) => count(added),
        })
    })?
}

/// ZADD's options.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "they mirror the command's words")]
struct AddRule {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
    ch: bool,
    incr: bool,
}

impl AddRule {
    fn parse(mut words: &[Bytes]) -> (Self, &[Bytes]) {
        let mut rule = Self::default();
        while let [word, rest @ ..] = words {
            match &word.to_ascii_lowercase()[..] {
                b"nx" => rule.nx = true,
                b"xx" => rule.xx = true,
                b"gt" => rule.gt = true,
                b"lt" => rule.lt = true,
                b"ch" => rule.ch = true,
                b"incr" => rule.incr = true,
                _ => break,
            }
            words = rest;
        }
        (rule, words)
    }

    fn check(&self, pairs: usize) -> Result<(), CommandError> {
        if pairs == 0 {
            Err(CommandError::Syntax)
        } else if self.nx && self.xx {
            Err(CommandError::ExistsConflict)
        } else if [self.nx, self.gt, self.lt].into_iter().filter(|on| *on).count() > 1 {
            Err(CommandError::CompareConflict)
        } else if self.incr && pairs > 1 {
            Err(CommandError::SingleIncrement)
        } else {
            Ok(())
        }
    }

    /// The score the member gets, or `None` to leave it as it is.
    fn new_score(&self, old: Option<f64>, given: f64) -> Result<Option<f64>, CommandError> {
        let Some(old) = old else { return Ok((!self.xx).then_some(given)) };
        if self.nx {
            return Ok(None);
        }
        let new = if self.incr { old + given } else { given };
        if new.is_nan() {
            return Err(CommandError::NotANumber);
        }
        let refused = (self.gt && new <= old) || (self.lt && new >= old);
        Ok((!refused).then_some(new))
    }
}

pub fn zrem(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let removed = keyspace
        .update(&args[0], |set: &mut SortedSet| args[1..].iter().filter(|member| set.remove(member)).count())?
        .unwrap_or(0);
    Ok(count(removed))
}

pub fn zscore(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let set = keyspace.read::<SortedSet>(&args[0])?;
    Ok(score_reply(set.and_then(|set| set.score(&args[1]))))
}

pub fn zmscore(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let set = keyspace.read::<SortedSet>(&args[0])?;
    let score = |member: &Bytes| score_reply(set.and_then(|set| set.score(member)));
    Ok(Value::Array(args[1..].iter().map(score).collect()))
}

pub fn zrank(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let set = keyspace.read::<SortedSet>(&args[0])?;
    Ok(set.and_then(|set| set.rank(&args[1])).map_or(Value::Nil, count))
}

pub fn zrevrank(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let set = keyspace.read::<SortedSet>(&args[0])?;
    Ok(set.and_then(|set| Some(set.len() - 1 - set.rank(&args[1])?)).map_or(Value::Nil, count))
}

pub fn zcard(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    Ok(count(keyspace.read::<SortedSet>(&args[0])?.map_or(0, SortedSet::len)))
}

pub fn zpopmin(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let most = match args {
        [_] => 1,
        [_, text] => {
            parse_integer(text).and_then(|most| usize::try_from(most).ok()).ok_or(CommandError::NotPositive)?
        }
        _ => return Err(CommandError::Syntax),
    };
    let popped = keyspace
        .update(&args[0], |set: &mut SortedSet| set.remove_range(&(0..most.min(set.len()))))?
        .unwrap_or_default();
    Ok(flatten(popped.iter().map(|(member, score)| (member, *score)), true))
}

fn score_reply(score: Option<f64>) -> Value {
    score.map_or(Value::Nil, |score| Value::Bulk(format_float(score).into()))
}
