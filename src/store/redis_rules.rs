//! What the engines on Redis have in common: deadlines, what an error means, which servers will do.

use std::{fmt::Display, time::Duration};

use super::{Script, StoreError};

/// Longest a call may take, waiting for a connection and reloading the script included.
pub const DEADLINE: Duration = Duration::from_millis(500);
/// Longest the first connection may take.
pub const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// A connection on which calls go unanswered for this long is given up: the server is frozen or out of reach, and what
/// was sent to it piles up.
pub const SILENCE: Duration = Duration::from_secs(2);
/// Longest pause between two attempts to connect.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Calls that may be under way at once; more wait, and meet their deadline if Redis is stuck.
pub const CONCURRENT_CALLS: usize = 4096;

/// Error codes that say "not now" rather than "never".
const TRANSIENT: [&str; 12] = [
    "LOADING",
    "READONLY",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "MOVED",
    "ASK",
    "MASTERDOWN",
    "OOM",
    "BUSY",
    "MISCONF",
    "NOREPLICAS",
    "UNKILLABLE",
];
/// Error codes of a server that is not the master any more.
const DEMOTED: [&str; 2] = ["READONLY", "MASTERDOWN"];

/// Whether waiting may cure an error of this code.
pub fn is_transient(code: &str) -> bool {
    TRANSIENT.contains(&code)
}

/// Whether the master has to be looked for again.
pub fn is_demoted(code: &str) -> bool {
    DEMOTED.contains(&code)
}

/// What a server's refusal, `CODE text`, means for the call.
pub fn refused(script: &'static Script, text: String) -> StoreError {
    match text.split(' ').next() {
        Some(code) if is_transient(code) => StoreError::Unavailable(text),
        _ => StoreError::Script { script: script.file(), message: text },
    }
}

/// What a server's refusal, `CODE text`, means for a connection attempt.
pub fn unwelcome(address: impl Display, text: &str) -> StoreError {
    match text.split(' ').next() {
        Some(code) if is_transient(code) => no_server(address, text),
        _ => StoreError::Unusable(format!("the Redis at {address} refused us: {text}; check --redis")),
    }
}

/// Nobody there.
pub fn no_server(address: impl Display, cause: &str) -> StoreError {
    StoreError::Unavailable(format!("no Redis at {address} ({cause}); start redis-server or check --redis"))
}

/// Nobody there who connects in time.
pub fn no_server_in_time(address: impl Display) -> StoreError {
    no_server(address, &format!("no answer within {} s", CONNECT_DEADLINE.as_secs()))
}

/// A call's deadline passed.
pub fn no_answer(address: impl Display) -> StoreError {
    StoreError::Unavailable(format!("no answer from {address} within {} ms", DEADLINE.as_millis()))
}

/// Refuses servers before version 7, and those that throw keys away when memory runs out: with them would go places
/// in line and held seats. `info` is the server's answer to INFO.
pub fn check_info(address: impl Display, info: &str) -> Result<(), StoreError> {
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let version = field("redis_version").unwrap_or("unknown");
    let major: Option<u32> = version.split('.').next().and_then(|major| major.parse().ok());
    if major.is_none_or(|major| major < 7) {
        return Err(StoreError::Unusable(format!(
            "the server at {address} is Redis version {version}; Redis 7 or later, or Valkey, is needed"
        )));
    }
    let policy = field("maxmemory_policy").unwrap_or("noeviction");
    if policy != "noeviction" {
        return Err(StoreError::Unusable(format!(
            "the Redis at {address} has maxmemory-policy {policy}: when memory runs out it would evict places in line \
             and held seats; run `redis-cli CONFIG SET maxmemory-policy noeviction` and set the same in redis.conf"
        )));
    }
    Ok(())
}

/// Says that [`check_info`] could not look, because the server does not let this user.
pub fn warn_unchecked(address: impl Display) {
    tracing::warn!(
        %address,
        "this Redis user may not run INFO, so nobody checked that the server is version 7 or later and that its \
         maxmemory-policy is noeviction; make sure, or allow it: ACL SETUSER NAME +info"
    );
}
