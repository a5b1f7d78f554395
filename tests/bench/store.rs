//! Redis from outside: fills a line, reads what was called.

use std::time::{Duration, SystemTime};

use redis::Connection;

use super::{servers::Server, visitors};

pub fn connect(server: &Server) -> anyhow::Result<Connection> {
    Ok(redis::Client::open(("127.0.0.1", server.port))?.get_connection()?)
}

/// Puts the first `waiting` visitors in the line of the room `main`, present for as long as this runs.
pub fn fill(connection: &mut Connection, waiting: u32) -> anyhow::Result<()> {
    let all: Vec<_> = (0..waiting).map(|index| (visitors::id(index).to_string(), visitors::score(index).0)).collect();
    add(connection, &all)?;
    redis::cmd("HSET").arg(key("state")).arg("joined_total").arg(waiting).exec(connection)?;
    Ok(())
}

/// Puts these in the line, with their scores.
pub fn add(connection: &mut Connection, visitors: &[(String, u64)]) -> anyhow::Result<()> {
    let tomorrow = SystemTime::now() + Duration::from_hours(24);
    let seen = u64::try_from(tomorrow.duration_since(SystemTime::UNIX_EPOCH)?.as_millis())?;
    for some in visitors.chunks(10_000) {
        let (mut line, mut present) = (redis::cmd("ZADD"), redis::cmd("ZADD"));
        line.arg(key("line"));
        present.arg(key("seen"));
        for (visitor, score) in some {
            line.arg(score).arg(visitor);
            present.arg(seen).arg(visitor);
        }
        redis::pipe().add_command(line).add_command(present).exec(connection)?;
    }
    Ok(())
}

fn key(part: &str) -> String {
    format!("stanchion:{{main}}:{part}")
}

/// What the scripts did so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scripts {
    pub runs: u64,
    /// How long they took, in microseconds.
    pub micros: f64,
}

/// By the server's own count.
pub fn scripts(connection: &mut Connection) -> anyhow::Result<Scripts> {
    let info: String = redis::cmd("INFO").arg("commandstats").query(connection)?;
    let line = info.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:")).unwrap_or_default();
    let field = |name| line.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('=')).unwrap_or("0");
    Ok(Scripts { runs: field("calls").parse()?, micros: field("usec").parse()? })
}

/// The text of `join`, as it is bound.
pub const JOIN: &str = concat!(
    include_str!("../../lua/queue.lua"),
    include_str!("../../lua/queue_slots.lua"),
    include_str!("../../lua/queue_places.lua"),
    include_str!("../../lua/join-8.lua")
);
