//! Which server is the master, by the word of the Sentinels.

use futures_util::future::join_all;
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, RedisError};

use super::{
    super::{
        StoreError,
        redis_address::{RedisAddress, at},
        redis_rules::{DEADLINE, no_server},
    },
    explain,
    link::{Link, open_server},
};

/// Connects to the server that most Sentinels call the master and that calls itself so.
///
/// All are asked at once, because one that is cut off from the others, or down, must not hold us up or mislead us.
pub async fn open_master(address: &RedisAddress) -> Result<Link, StoreError> {
    let RedisAddress::Sentinel { sentinels, master, server } = address else {
        return Err(StoreError::Unusable("this address names no Sentinels".to_owned()));
    };
    let mut problem = None;
    for (host, port) in named(sentinels, master).await? {
        match open_server(&at(server, &host, port)).await {
            Ok(link) if is_master(&link).await => return Ok(link),
            Ok(link) => problem = Some(no_server(address, &format!("{} is not the master yet", link.to))),
            Err(error) => problem = Some(error),
        }
    }
    Err(problem.unwrap_or_else(|| no_server(address, "no Sentinel answers")))
}

/// Whether most Sentinels now name another master than the one at `address`. No news is no change.
pub async fn has_moved(address: &RedisAddress, to: &str) -> bool {
    let RedisAddress::Sentinel { sentinels, master, .. } = address else { return false };
    let named = named(sentinels, master).await.unwrap_or_default();
    named.first().is_some_and(|(host, port)| format!("{host}:{port}") != to)
}

/// The masters that Sentinels name, the one of most first.
async fn named(sentinels: &[ConnectionInfo], master: &str) -> Result<Vec<(String, u16)>, StoreError> {
    let answers = join_all(sentinels.iter().map(|sentinel| ask(sentinel, master))).await;
    let mut votes: Vec<((String, u16), usize)> = Vec::new();
    let (mut unknown, mut refusal) = (false, None);
    for (sentinel, answer) in sentinels.iter().zip(answers) {
        match answer {
            Ok(Some(server)) => match votes.iter_mut().find(|(named, _)| *named == server) {
                Some((_, count)) => *count += 1,
                None => votes.push((server, 1)),
            },
            Ok(None) => unknown = true,
            Err(error) => refusal = Some(explain(format_args!("the Sentinel {}", sentinel.addr()), &error)),
        }
    }
    match refusal {
        _ if !votes.is_empty() => {}
        _ if unknown => {
            return Err(StoreError::Unusable(format!(
                "no Sentinel knows a master named {master}; check the name in --redis"
            )));
        }
        Some(error) => return Err(error),
        None => {}
    }
    votes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    Ok(votes.into_iter().map(|(server, _)| server).collect())
}

async fn ask(sentinel: &ConnectionInfo, master: &str) -> Result<Option<(String, u16)>, RedisError> {
    let config =
        AsyncConnectionConfig::new().set_connection_timeout(Some(DEADLINE)).set_response_timeout(Some(DEADLINE));
    let mut connection = Client::open(sentinel.clone())?.get_multiplexed_async_connection_with_config(&config).await?;
    redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(master).query_async(&mut connection).await
}

/// By its own word. Where we may not ask, the first write will tell.
async fn is_master(link: &Link) -> bool {
    match link.ask(&redis::cmd("ROLE")).await {
        Ok(redis::Value::Array(role)) => role.first() == Some(&redis::Value::BulkString(b"master".to_vec())),
        Ok(_) => false,
        Err(error) => error.code() == Some("NOPERM"),
    }
}
