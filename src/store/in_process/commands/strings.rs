//! Commands on strings.

use bytes::Bytes;

use super::{Reply, bulk, integer, ok};
use crate::store::{
    Value,
    in_process::{
        error::CommandError,
        keyspace::{Data, Keyspace},
    },
};

pub fn get(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    Ok(bulk(keyspace.read::<Bytes>(&args[0])?.cloned()))
}

#[expect(clippy::unnecessary_wraps, reason = "the command table has one signature")]
pub fn mget(keyspace: &mut Keyspace, keys: &[Bytes]) -> Reply {
    let value = |key: &Bytes| match keyspace.data(key) {
        Some(Data::Text(text)) => Value::Bulk(text.clone()),
        _ => Value::Nil,
    };
    Ok(Value::Array(keys.iter().map(value).collect()))
}

pub fn set(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let [key, value, options @ ..] = args else { return Err(CommandError::Arity) };
    let options = SetOptions::parse(options)?;
    let expiry = options.expiry.map(|(unit, text)| unit.unix_millis(text, keyspace.now_millis())).transpose()?;
    let old = if options.get { bulk(keyspace.read::<Bytes>(key)?.cloned()) } else { Value::Nil };
    if options.only_if.is_some_and(|there| there != keyspace.data(key).is_some()) {
        return Ok(old);
    }
    keyspace.put(key, value.clone());
    if !options.keep_ttl {
        keyspace.set_expiry(key, expiry);
    }
    Ok(if options.get { old } else { ok() })
}

#[derive(Default)]
struct SetOptions<'a> {
    /// `Some(true)` for XX, `Some(false)` for NX.
    only_if: Option<bool>,
    get: bool,
    keep_ttl: bool,
    expiry: Option<(ExpiryUnit, &'a [u8])>,
}

impl<'a> SetOptions<'a> {
    fn parse(mut words: &'a [Bytes]) -> Result<Self, CommandError> {
        let mut options = Self::default();
        while let [word, rest @ ..] = words {
            words = rest;
            match (&word.to_ascii_lowercase()[..], words) {
                (b"nx", _) if options.only_if != Some(true) => options.only_if = Some(false),
                (b"xx", _) if options.only_if != Some(false) => options.only_if = Some(true),
                (b"get", _) => options.get = true,
                (b"keepttl", _) if options.expiry.is_none() => options.keep_ttl = true,
                (unit, [number, rest @ ..]) if !options.keep_ttl => {
                    let unit = ExpiryUnit::parse(unit)?;
                    if options.expiry.is_some_and(|(other, _)| other != unit) {
                        return Err(CommandError::Syntax);
                    }
                    options.expiry = Some((unit, number));
                    words = rest;
                }
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(options)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct ExpiryUnit {
    millis: i64,
    relative: bool,
}

impl ExpiryUnit {
    fn parse(word: &[u8]) -> Result<Self, CommandError> {
        let (millis, relative) = match word {
            b"ex" => (1_000, true),
            b"px" => (1, true),
            b"exat" => (1_000, false),
            b"pxat" => (1, false),
            _ => return Err(CommandError::Syntax),
        };
        Ok(Self { millis, relative })
    }

    fn unix_millis(self, text: &[u8], now_millis: i64) -> Result<i64, CommandError> {
        let invalid = CommandError::InvalidExpiry("set");
        let number = integer(text)?;
        if number <= 0 {
            return Err(invalid);
        }
        let start = if self.relative { now_millis } else { 0 };
        number.checked_mul(self.millis).and_then(|millis| millis.checked_add(start)).ok_or(invalid)
    }
}

pub fn incr(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    add(keyspace, &args[0], 1)
}

pub fn decr(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    add(keyspace, &args[0], -1)
}

pub fn incrby(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    add(keyspace, &args[0], integer(&args[1])?)
}

pub fn decrby(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let by = integer(&args[1])?.checked_neg().ok_or(CommandError::DecrementOverflow)?;
    add(keyspace, &args[0], by)
}

fn add(keyspace: &mut Keyspace, key: &Bytes, by: i64) -> Reply {
    let old = keyspace.read::<Bytes>(key)?.map_or(Ok(0), |text| integer(text))?;
    let new = old.checked_add(by).ok_or(CommandError::Overflow)?;
    keyspace.put(key, new.to_string().into());
    Ok(Value::Int(new))
}
