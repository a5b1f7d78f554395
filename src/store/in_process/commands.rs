//! The Redis commands that scripts may call. Each takes the arguments after its name and checks them in Redis' order,
//! so that a wrong call gets the same complaint.

mod hashes;
mod keys;
mod ranges;
mod sorted_sets;
mod strings;

use bytes::Bytes;

use super::{error::CommandError, keyspace::Keyspace, number::parse_integer};
use crate::store::Value;

type Reply = Result<Value, CommandError>;
type Handler = fn(&mut Keyspace, &[Bytes]) -> Reply;

/// Runs one command, its name first.
pub fn execute(keyspace: &mut Keyspace, command: &[Bytes]) -> Reply {
    let [name, args @ ..] = command else { return Err(CommandError::Arity) };
    let (arity, handler) = find(&name.to_ascii_lowercase()).ok_or(CommandError::UnknownCommand)?;
    let fits = if arity < 0 { command.len() >= arity.unsigned_abs() } else { command.len() == arity.unsigned_abs() };
    if fits { handler(keyspace, args) } else { Err(CommandError::Arity) }
}

/// A command with its arity as Redis counts it: the name included, negative for "at least".
fn find(name: &[u8]) -> Option<(isize, Handler)> {
    Some(match name {
        b"time" => (1, keys::time),
        b"info" => (-1, keys::info),
        b"del" | b"unlink" => (-2, keys::del),
        b"exists" => (-2, keys::exists),
        b"type" => (2, keys::type_of),
        b"expire" => (-3, keys::expire),
        b"pexpire" => (-3, keys::pexpire),
        b"pexpireat" => (-3, keys::pexpireat),
        b"ttl" => (2, keys::ttl),
        b"pttl" => (2, keys::pttl),
        b"persist" => (2, keys::persist),

        b"get" => (2, strings::get),
        b"mget" => (-2, strings::mget),
        b"set" => (-3, strings::set),
        b"incr" => (2, strings::incr),
        b"decr" => (2, strings::decr),
        b"incrby" => (3, strings::incrby),
        b"decrby" => (3, strings::decrby),

        b"hset" => (-4, hashes::hset),
        b"hsetnx" => (4, hashes::hsetnx),
        b"hget" => (3, hashes::hget),
        b"hmget" => (-3, hashes::hmget),
        b"hgetall" => (2, hashes::hgetall),
        b"hdel" => (-3, hashes::hdel),
        b"hexists" => (3, hashes::hexists),
        b"hincrby" => (4, hashes::hincrby),
        b"hlen" => (2, hashes::hlen),
        b"hscan" => (-3, hashes::hscan),

        b"zadd" => (-4, sorted_sets::zadd),
        b"zrem" => (-3, sorted_sets::zrem),
        b"zscore" => (3, sorted_sets::zscore),
        b"zmscore" => (-3, sorted_sets::zmscore),
        b"zrank" => (3, sorted_sets::zrank),
        b"zrevrank" => (3, sorted_sets::zrevrank),
        b"zcard" => (2, sorted_sets::zcard),
        b"zpopmin" => (-2, sorted_sets::zpopmin),
        b"zcount" => (4, ranges::zcount),
        b"zrange" => (-4, ranges::zrange),
        b"zrangebyscore" => (-4, ranges::zrangebyscore),
        b"zremrangebyscore" => (4, ranges::zremrangebyscore),
        _ => return None,
    })
}

const OK: &str = "OK";

fn ok() -> Value {
    Value::Status(OK.to_owned())
}

fn flag(yes: bool) -> Value {
    Value::Int(i64::from(yes))
}

fn count(number: usize) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn bulk(value: Option<Bytes>) -> Value {
    value.map_or(Value::Nil, Value::Bulk)
}

fn integer(text: &[u8]) -> Result<i64, CommandError> {
    parse_integer(text).ok_or(CommandError::NotAnInteger)
}
