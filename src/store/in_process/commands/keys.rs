//! Commands on keys of any type, the time, and what the server says of itself.
#![expect(clippy::unnecessary_wraps, reason = "the command table has one signature")]

use bytes::Bytes;

use super::{Reply, count, flag, integer};
use crate::store::{
    Value,
    in_process::{
        error::CommandError,
        keyspace::{Data, Keyspace},
    },
};

pub fn time(keyspace: &mut Keyspace, _: &[Bytes]) -> Reply {
    let micros = keyspace.now_micros();
    let text = |number: u64| Value::Bulk(number.to_string().into());
    Ok(Value::Array(vec![text(micros / 1_000_000), text(micros % 1_000_000)]))
}

/// Of what Redis tells, only the section `server`, and of that only the line by which a restart shows.
pub fn info(keyspace: &mut Keyspace, sections: &[Bytes]) -> Reply {
    let covers_server =
        |section: &Bytes| matches!(&section.to_ascii_lowercase()[..], b"server" | b"default" | b"all" | b"everything");
    let text = if sections.is_empty() || sections.iter().any(covers_server) {
        format!("# Server\r\nrun_id:{}\r\n", keyspace.run_id())
    } else {
        String::new()
    };
    Ok(Value::Bulk(text.into()))
}

pub fn del(keyspace: &mut Keyspace, keys: &[Bytes]) -> Reply {
    Ok(count(keys.iter().filter(|key| keyspace.remove(key)).count()))
}

pub fn exists(keyspace: &mut Keyspace, keys: &[Bytes]) -> Reply {
    Ok(count(keys.iter().filter(|key| keyspace.data(key).is_some()).count()))
}

pub fn type_of(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let name = match keyspace.data(&args[0]) {
        None => "none",
        Some(Data::Text(_)) => "string",
        Some(Data::Hash(_)) => "hash",
        Some(Data::SortedSet(_)) => "zset",
    };
    Ok(Value::Status(name.to_owned()))
}

pub fn expire(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let now = keyspace.now_millis();
    expire_at(keyspace, args, |seconds| seconds.checked_mul(1_000)?.checked_add(now), "expire")
}

pub fn pexpire(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let now = keyspace.now_millis();
    expire_at(keyspace, args, |millis| millis.checked_add(now), "pexpire")
}

pub fn pexpireat(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    expire_at(keyspace, args, Some, "pexpireat")
}

fn expire_at(
    keyspace: &mut Keyspace,
    args: &[Bytes],
    to_unix_millis: impl Fn(i64) -> Option<i64>,
    command: &'static str,
) -> Reply {
    if let Some(option) = args.get(2) {
        return Err(CommandError::UnsupportedOption(String::from_utf8_lossy(option).into_owned()));
    }
    let at = to_unix_millis(integer(&args[1])?).ok_or(CommandError::InvalidExpiry(command))?;
    let there = keyspace.data(&args[0]).is_some();
    if there {
        keyspace.set_expiry(&args[0], Some(at));
    }
    Ok(flag(there))
}

pub fn ttl(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    Ok(Value::Int(left(keyspace, &args[0]).map_or_else(|none| none, |millis| (millis + 500) / 1_000)))
}

pub fn pttl(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    Ok(Value::Int(left(keyspace, &args[0]).unwrap_or_else(|none| none)))
}

/// Milliseconds left, or Redis' code for "no key" and "no expiry".
fn left(keyspace: &mut Keyspace, key: &[u8]) -> Result<i64, i64> {
    keyspace.data(key).ok_or(-2)?;
    let at = keyspace.expiry(key).ok_or(-1)?;
    Ok((at - keyspace.now_millis()).max(0))
}

pub fn persist(keyspace: &mut Keyspace, args: &[Bytes]) -> Reply {
    let expires = keyspace.expiry(&args[0]).is_some();
    if expires {
        keyspace.set_expiry(&args[0], None);
    }
    Ok(flag(expires))
}
