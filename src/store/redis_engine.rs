//! The engine on Redis 7 or Valkey.
//!
//! One multiplexed connection that reconnects by itself. Every call has its own deadline, because the client makes
//! calls wait while it reconnects and never drops one that has no answer.

mod reply;

use std::{fmt, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use redis::{
    Client, Cmd, ConnectionInfo, ErrorKind, IntoConnectionInfo as _, RedisError, ServerErrorKind,
    aio::{ConnectionManager, ConnectionManagerConfig},
    io::tcp::TcpSettings,
};
use tokio::time::timeout;

use super::{Arg, Engine, Script, StoreError, Value};

/// Longest a call may take, reconnecting and reloading the script included.
const DEADLINE: Duration = Duration::from_millis(500);
/// Longest the first connection may take.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// How long the peer may leave what we sent unacknowledged before the connection counts as dead; without it, one that
/// a firewall dropped silently would be used for a quarter of an hour.
#[cfg(target_os = "linux")]
const PEER_DEADLINE: Duration = Duration::from_secs(5);
/// Calls that may be under way at once; more wait, and meet their deadline if Redis is stuck.
const CONCURRENT_CALLS: usize = 4096;

/// Error codes that say "not now" rather than "never".
const TRANSIENT: [&str; 10] = [
    "LOADING",
    "READONLY",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "MASTERDOWN",
    "OOM",
    "BUSY",
    "MISCONF",
    "NOREPLICAS",
    "UNKILLABLE",
];

/// An engine whose data lives in a Redis server.
#[derive(Clone)]
pub struct RedisEngine {
    connection: ConnectionManager,
    address: String,
}

impl RedisEngine {
    /// Connects to `redis://[user:password@]host[:port][/database]` and checks that the server will do.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let info = url.into_connection_info().map_err(|error| {
            StoreError::Unusable(format!(
                "the Redis address is not understood ({error}); it looks like redis://user:password@host:6379/0"
            ))
        })?;
        let address = info.addr().to_string();
        let connecting = async {
            let connection = open(info).await.map_err(|error| explain(&address, &error))?;
            check_server(&address, connection.clone()).await?;
            Ok(connection)
        };
        let late = || {
            let seconds = CONNECT_DEADLINE.as_secs();
            no_server(&address, &format!("no answer within {seconds} s"))
        };
        let connection = timeout(CONNECT_DEADLINE, connecting).await.unwrap_or_else(|_| Err(late()))?;
        Ok(Self { connection, address })
    }

    async fn evaluate(&self, script: &'static Script, keys: &[String], args: &[Bytes]) -> Result<Value, StoreError> {
        let by_hash = command("EVALSHA", script.sha1(), keys, args);
        let answer = match self.ask(&by_hash).await {
            // The server was restarted or flushed. EVAL loads the script on the way.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.ask(&command("EVAL", script.source(), keys, args)).await
            }
            answer => answer,
        };
        answer.and_then(reply::convert).map_err(|error| classify(script, &error))
    }

    async fn ask(&self, command: &Cmd) -> Result<redis::Value, RedisError> {
        command.query_async(&mut self.connection.clone()).await
    }
}

impl Engine for RedisEngine {
    fn run<'a>(
        &'a self,
        script: &'static Script,
        keys: &'a [String],
        args: Vec<Arg>,
    ) -> BoxFuture<'a, Result<Value, StoreError>> {
        Box::pin(async move {
            let args: Vec<_> = args.into_iter().map(Arg::into_bytes).collect();
            timeout(DEADLINE, self.evaluate(script, keys, &args)).await.unwrap_or_else(|_| {
                let millis = DEADLINE.as_millis();
                Err(StoreError::Unavailable(format!("no answer from {} within {millis} ms", self.address)))
            })
        })
    }
}

impl fmt::Debug for RedisEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisEngine").field("address", &self.address).finish_non_exhaustive()
    }
}

async fn open(info: ConnectionInfo) -> Result<ConnectionManager, RedisError> {
    let tcp = TcpSettings::default().set_nodelay(true);
    #[cfg(target_os = "linux")]
    let tcp = tcp.set_user_timeout(PEER_DEADLINE);
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(DEADLINE))
        .set_response_timeout(Some(DEADLINE))
        // The next call starts the next attempt, so few retries here are not few in all.
        .set_number_of_retries(1)
        .set_min_delay(Duration::from_millis(50))
        .set_max_delay(DEADLINE)
        .set_pipeline_buffer_size(CONCURRENT_CALLS)
        .set_concurrency_limit(CONCURRENT_CALLS);
    ConnectionManager::new_with_config(Client::open(info.set_tcp_settings(tcp))?, config).await
}

/// Refuses servers before version 7 and warns of those that may throw our keys away.
async fn check_server(address: &str, mut connection: ConnectionManager) -> Result<(), StoreError> {
    // Without naming sections: servers before 7 take only one.
    let info: String = redis::cmd("INFO").query_async(&mut connection).await.map_err(|e| explain(address, &e))?;
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
        tracing::warn!(
            address,
            policy,
            "this Redis evicts keys when memory runs out, and with them places in line and held seats; \
             run `redis-cli config set maxmemory-policy noeviction`"
        );
    }
    Ok(())
}

fn command(name: &str, script: &str, keys: &[String], args: &[Bytes]) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(script).arg(keys.len()).arg(keys);
    for arg in args {
        command.arg(&arg[..]);
    }
    command
}

/// A failed call's error.
fn classify(script: &'static Script, error: &RedisError) -> StoreError {
    let server_said_no = matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension);
    let defect = server_said_no || error.kind() == ErrorKind::UnexpectedReturnType;
    if !defect || error.code().is_some_and(|code| TRANSIENT.contains(&code)) {
        return StoreError::Unavailable(text(error));
    }
    StoreError::Script { script: script.file(), message: text(error) }
}

/// A failed connection attempt's error.
fn explain(address: &str, error: &RedisError) -> StoreError {
    match error.kind() {
        ErrorKind::AuthenticationFailed
        | ErrorKind::InvalidClientConfig
        | ErrorKind::Server(_)
        | ErrorKind::Extension
            if !error.code().is_some_and(|code| TRANSIENT.contains(&code)) =>
        {
            StoreError::Unusable(format!("the Redis at {address} refused us: {}; check --redis", text(error)))
        }
        _ => no_server(address, &text(error)),
    }
}

fn no_server(address: &str, cause: &str) -> StoreError {
    StoreError::Unavailable(format!("no Redis at {address} ({cause}); start redis-server or check --redis"))
}

/// The server's own words, `CODE text`, or the client's.
fn text(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    }
}
