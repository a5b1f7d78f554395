//! Commands on hashes.

use bytes::Bytes;

use super::{Reply, bulk, count, flag, integer};
use crate::store::{
    Value,
    in_process::{error::CommandError, hash::Hash, keyspace::Keyspace, number::parse_integer},
};

pub fn hset(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let [key, pairs @ ..] = args else { return Err(CommandError::Arity) };
    let (pairs, []) = pairs.as_chunks::<2>() else { return Err(CommandError::Pairs("hset")) };
    keyspace.upsert(key, |hash: &mut Hash| {
        count(pairs.iter().filter(|[field, value]| hash.insert(field.clone(), value.clone())).count())
    })
}

pub fn hsetnx(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    keyspace.upsert(&args[0], |hash: &mut Hash| {
        flag(hash.get(&args[1]).is_none() && hash.insert(args[1].clone(), args[2].clone()))
    })
}

pub fn hget(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let hash = keyspace.read::<Hash>(&args[0])?;
    Ok(bulk(hash.and_then(|hash| hash.get(&args[1])).cloned()))
}

pub fn hmget(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let hash = keyspace.read::<Hash>(&args[0])?;
    let value = |field: &Bytes| bulk(hash.and_then(|hash| hash.get(field)).cloned());
    Ok(Value::Array(args[1..].iter().map(value).collect()))
}

pub fn hgetall(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let fields = keyspace.read::<Hash>(&args[0])?.into_iter().flat_map(Hash::iter);
    Ok(Value::Array(fields.flat_map(|(field, value)| [field, value]).cloned().map(Value::Bulk).collect()))
}

pub fn hdel(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let removed = keyspace
        .update(&args[0], |hash: &mut Hash| args[1..].iter().filter(|field| hash.remove(field)).count())?
        .unwrap_or(0);
    Ok(count(removed))
}

pub fn hexists(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    Ok(flag(keyspace.read::<Hash>(&args[0])?.is_some_and(|hash| hash.get(&args[1]).is_some())))
}

pub fn hincrby(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let by = integer(&args[2])?;
    keyspace.upsert(&args[0], |hash: &mut Hash| {
        let old = match hash.get(&args[1]) {
            Some(text) => parse_integer(text).ok_or(CommandError::HashNotAnInteger)?,
            None => 0,
        };
        let new = old.checked_add(by).ok_or(CommandError::Overflow)?;
        hash.insert(args[1].clone(), new.to_string().into());
        Ok(Value::Int(new))
    })?
}

pub fn hlen(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    Ok(count(keyspace.read::<Hash>(&args[0])?.map_or(0, Hash::len)))
}

/// The cursor is the place of the next field. Of the options only `COUNT` is there.
pub fn hscan(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let from = parse_integer(&args[1]).and_then(|from| u64::try_from(from).ok()).ok_or(CommandError::Cursor)?;
    let most = match &args[2..] {
        [] => 10,
        [word, most] if word.eq_ignore_ascii_case(b"count") => integer(most)?,
        _ => return Err(CommandError::Syntax),
    };
    let most = usize::try_from(most).ok().filter(|most| *most > 0).ok_or(CommandError::Syntax)?;
    let (next, fields) = keyspace.read::<Hash>(&args[0])?.map(|hash| hash.page(from, most)).unwrap_or_default();
    let fields = fields.into_iter().flat_map(|(field, value)| [field, value]).map(Value::Bulk).collect();
    Ok(Value::Array(vec![Value::Bulk(next.to_string().into()), Value::Array(fields)]))
}
