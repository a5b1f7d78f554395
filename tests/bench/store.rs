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

/// How many scripts ran so far.
pub fn script_runs(connection: &mut Connection) -> anyhow::Result<u64> {
    let info: String = redis::cmd("INFO").arg("commandstats").query(connection)?;
    let calls =
        info.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")?.split(',').next()?.parse().ok());
    Ok(calls.unwrap_or(0))
}

/// The log of slow commands, which now holds every command.
pub fn log_everything(connection: &mut Connection) -> anyhow::Result<()> {
    redis::cmd("CONFIG")
        .arg("SET")
        .arg("slowlog-log-slower-than")
        .arg(0)
        .arg("slowlog-max-len")
        .arg(4_096)
        .exec(connection)?;
    redis::cmd("SLOWLOG").arg("RESET").exec(connection)?;
    Ok(())
}

/// How long each script in that log took, in microseconds.
pub fn script_micros(connection: &mut Connection) -> anyhow::Result<Vec<f64>> {
    type Entry = (u64, u64, u32, Vec<String>, String, String);
    let log: Vec<Entry> = redis::cmd("SLOWLOG").arg("GET").arg(4_096).query(connection)?;
    let is_script = |entry: &&Entry| entry.3.first().is_some_and(|command| command.eq_ignore_ascii_case("evalsha"));
    Ok(log.iter().filter(is_script).map(|entry| f64::from(entry.2)).collect())
}

/// The text of `join`, as it is bound.
pub const JOIN: &str = concat!(include_str!("../../lua/queue.lua"), include_str!("../../lua/join-7.lua"));
