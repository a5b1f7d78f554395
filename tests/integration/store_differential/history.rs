//! Random commands over few keys and members, so that they meet; most are right, some wrong in every way.

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use super::Command;

pub const KEYS: [&str; 4] = ["one", "two", "three", "four"];
const FIELDS: [&str; 6] = ["a", "b", "c", "B", "", "a\0\u{ff}"];
const VALUES: [&str; 10] = ["0", "1", "-7", "10", "text", "", "3.5", "01", " 1", "9223372036854775807"];
const NUMBERS: [&str; 10] =
    ["0", "1", "-1", "2", "5", "100", "-9223372036854775808", "9223372036854775807", "9223372036854775808", "x"];
const SCORES: [&str; 13] =
    ["0", "1", "1", "2", "-3", "0.5", "1.25", "1e3", "1700000000123456", "inf", "-inf", "nan", "x"];
const BOUNDS: [&str; 11] = ["-inf", "+inf", "0", "1", "(1", "(2", "2", "(0.5", "(-inf", "1700000000123456", "x"];
const INDEXES: [&str; 8] = ["0", "0", "1", "2", "-1", "-1", "-3", "100"];
/// Far ahead or past, since nothing may expire between asking one engine and the other.
const EXPIRIES: [&str; 7] = ["1000", "5000000", "4102444800000", "0", "-1", "9223372036854775807", "x"];
const RIGHT_EXPIRIES: [&str; 3] = ["1000000", "5000000", "4102444800000"];

/// A word of a command's pattern, to be filled in.
const PATTERNS: [&str; 44] = [
    "GET k",
    "MGET k k k",
    "SET k v",
    "SET k v set* set*",
    "SET k v EX e",
    "SET k v PXAT e",
    "INCR k",
    "INCRBY k n",
    "DECR k",
    "DECRBY k n",
    "DEL k",
    "UNLINK k k",
    "EXISTS k k k",
    "TYPE k",
    "EXPIRE k e",
    "PEXPIRE k e",
    "PEXPIREAT k e",
    "TTL k",
    "PTTL k",
    "PERSIST k",
    "HSET k f v",
    "HSET k f v f v",
    "HSETNX k f v",
    "HGET k f",
    "HMGET k f f f",
    "HGETALL k",
    "HDEL k f f",
    "HEXISTS k f",
    "HINCRBY k f n",
    "HLEN k",
    "ZADD k s f",
    "ZADD k s f s f s f",
    "ZADD k zadd* zadd* s f",
    "ZADD k zadd* s f s f",
    "ZREM k f f",
    "ZSCORE k f",
    "ZMSCORE k f f f",
    "ZRANK k f",
    "ZREVRANK k f",
    "ZCOUNT k b b",
    "ZRANGE k i i zrange* zrange*",
    "ZRANGE k b b BYSCORE zrange* zrange*",
    "ZRANGEBYSCORE k b b zrangebyscore* zrangebyscore*",
    "ZPOPMIN k i",
];
const RARE: [&str; 5] = ["ZREMRANGEBYSCORE k b b", "ZPOPMIN k", "ZCARD k", "HGETALL k", "NO-SUCH-COMMAND k"];

pub fn random_history(seed: u64) -> Vec<Command> {
    let mut random = StdRng::seed_from_u64(seed);
    // A history leans to one type, or nearly every command would meet the wrong one.
    let homes: Vec<&str> = KEYS.iter().map(|_| *["text", "hash", "zset"].choose(&mut random).unwrap()).collect();
    (0..40).map(|_| random_command(&mut random, &homes)).collect()
}

fn random_command(random: &mut StdRng, homes: &[&str]) -> Command {
    let pattern = if random.random_ratio(1, 12) { pick(random, &RARE) } else { pick(random, &PATTERNS) };
    let mut words: Vec<String> = Vec::new();
    for word in pattern.split(' ') {
        match word {
            "k" => words.push(random_key(random, homes, pattern).to_owned()),
            "f" => words.push(pick(random, &FIELDS).to_owned()),
            "v" => words.push(pick(random, &VALUES).to_owned()),
            "n" => words.push(pick(random, &NUMBERS).to_owned()),
            "s" => words.push(pick(random, &SCORES).to_owned()),
            "b" => words.push(pick(random, &BOUNDS).to_owned()),
            "i" => words.push(pick(random, &INDEXES).to_owned()),
            "e" if random.random_ratio(2, 3) => words.push(pick(random, &RIGHT_EXPIRIES).to_owned()),
            "e" => words.push(pick(random, &EXPIRIES).to_owned()),
            optional if optional.ends_with('*') => words.extend(random_option(random, optional)),
            literal => words.push(literal.to_owned()),
        }
    }
    spoil(random, &mut words);
    words.into_iter().map(String::into_bytes).collect()
}

/// Mostly a key that is meant for the command's type.
fn random_key(random: &mut StdRng, homes: &[&str], pattern: &str) -> &'static str {
    let home = match pattern.as_bytes()[0] {
        b'H' => "hash",
        b'Z' => "zset",
        _ => "text",
    };
    let fitting: Vec<_> = KEYS.iter().zip(homes).filter(|(_, h)| **h == home).map(|(key, _)| *key).collect();
    match fitting.choose(random) {
        Some(key) if random.random_ratio(9, 10) => key,
        _ => pick(random, &KEYS),
    }
}

fn random_option(random: &mut StdRng, of: &str) -> Vec<String> {
    let limit = format!("LIMIT {} {}", pick(random, &INDEXES), pick(random, &INDEXES));
    let expiry = format!("{} {}", pick(random, &["EX", "PX", "EXAT", "PXAT"]), pick(random, &RIGHT_EXPIRIES));
    let option = match of {
        "set*" => pick(random, &["", "NX", "XX", "GET", "KEEPTTL", &expiry]).to_owned(),
        "zadd*" => pick(random, &["", "NX", "XX", "GT", "LT", "CH", "INCR"]).to_owned(),
        "zrange*" => pick(random, &["", "REV", "WITHSCORES", &limit]).to_owned(),
        _ => pick(random, &["", "WITHSCORES", &limit, "REV"]).to_owned(),
    };
    option.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn spoil(random: &mut StdRng, words: &mut Vec<String>) {
    match random.random_range(0..60) {
        0 => words.push("extra".to_owned()),
        1 => drop(words.pop()),
        2..8 => words[0] = words[0].to_ascii_lowercase(),
        _ => {}
    }
    if words.is_empty() {
        words.push("GET".to_owned());
    }
}

fn pick<'a>(random: &mut StdRng, from: &[&'a str]) -> &'a str {
    from.choose(random).unwrap()
}
