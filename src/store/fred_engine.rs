//! The engine on Redis 7 or Valkey by the other client, `fred`: the same addresses, deadlines and errors.
//!
//! What fred 10.1 does less well: while one master of a cluster is down it serves none of the others, and it does not ask
//! Sentinels again before the old master itself says that it was demoted.

mod reply;

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use fred::{
    clients::Client,
    error::{Error, ErrorKind},
    interfaces::{ClientLike as _, ClusterInterface as _},
    types::{
        Builder, ClusterHash, CustomCommand,
        config::{ClusterDiscoveryPolicy, Config, Options, ReconnectError, ReconnectPolicy, Server, ServerConfig},
    },
};
use futures_util::future::BoxFuture;
use redis::{ConnectionAddr, ConnectionInfo};
use tokio::time::timeout;

use super::{
    Arg, Engine, Script, StoreError, Value,
    redis_address::RedisAddress,
    redis_rules::{self as rules, CONCURRENT_CALLS, CONNECT_DEADLINE, DEADLINE, LONGEST_PAUSE, SILENCE},
};

/// How often a cluster may send one call elsewhere.
const REDIRECTIONS: u32 = 3;
const FIRST_PAUSE_MILLIS: u32 = 50;

/// An engine whose data lives in Redis, by `fred`.
pub struct FredEngine {
    client: Client,
    address: RedisAddress,
    started: Instant,
    /// When an answer last came, or the client was told to connect anew, in milliseconds after `started`.
    heard: AtomicU64,
}

impl FredEngine {
    /// Connects to a URL as [`RedisAddress`] knows them and checks that every server will do.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let address = RedisAddress::parse(url)?;
        let client = build(&address).map_err(|error| explain(&address, &error))?;
        let engine = Self { client, address, started: Instant::now(), heard: AtomicU64::new(0) };
        let connecting = async {
            engine.client.init().await.map_err(|error| explain(&engine.address, &error))?;
            engine.check().await
        };
        let late = |_| Err(rules::no_server_in_time(&engine.address));
        timeout(CONNECT_DEADLINE, connecting).await.unwrap_or_else(late)?;
        Ok(engine)
    }

    /// Refuses servers that will not do, each master of a cluster included.
    async fn check(&self) -> Result<(), StoreError> {
        let nodes = match &self.address {
            RedisAddress::Cluster(_) => {
                self.client.cached_cluster_state().map(|state| state.unique_primary_nodes()).unwrap_or_default()
            }
            _ => self.client.active_connections(),
        };
        for node in nodes {
            let options = Options {
                cluster_node: matches!(self.address, RedisAddress::Cluster(_)).then(|| node.clone()),
                ..Options::default()
            };
            let info = CustomCommand::new_static("INFO", ClusterHash::Random, false);
            let frame = self.client.with_options(&options).custom_raw(info, Vec::<fred::types::Value>::new()).await;
            match reply::convert(frame.map_err(|error| explain(&node, &error))?) {
                Ok(Value::Bulk(text)) => rules::check_info(&node, &String::from_utf8_lossy(&text))?,
                Ok(other) => return Err(rules::no_server(&node, &format!("INFO is answered with {other:?}"))),
                Err(refusal) if refusal.starts_with("NOPERM") => rules::warn_unchecked(&node),
                Err(refusal) => return Err(rules::unwelcome(&node, &refusal)),
            }
        }
        Ok(())
    }

    /// Takes note of an answer, whatever it says. In a cluster one node's answers say nothing of another.
    fn answered(&self) {
        if !matches!(self.address, RedisAddress::Cluster(_)) {
            self.heard.fetch_max(self.now(), Ordering::Relaxed);
        }
    }

    /// Takes note of a call without an answer. Fred's own watch for silent connections counts from the last write,
    /// so as long as there are calls it sees nothing.
    fn note_silence(&self) {
        let (now, heard) = (self.now(), self.heard.load(Ordering::Relaxed));
        let too_long = now.saturating_sub(heard) >= u64::try_from(SILENCE.as_millis()).unwrap_or(u64::MAX);
        if too_long && self.heard.compare_exchange(heard, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            tracing::warn!(address = %self.address, "the store falls silent; connecting anew");
            let client = self.client.clone();
            tokio::spawn(async move { timeout(CONNECT_DEADLINE, client.force_reconnection()).await });
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn evaluate(&self, script: &'static Script, keys: &[String], args: Vec<Arg>) -> Result<Value, StoreError> {
        let args: Vec<_> = args.into_iter().map(Arg::into_bytes).collect();
        let words = |script: &'static str| {
            let mut words = Vec::with_capacity(2 + keys.len() + args.len());
            words.push(fred::types::Value::from_static_str(script));
            words.push(fred::types::Value::from(keys.len().to_string()));
            words.extend(keys.iter().map(|key| fred::types::Value::from(key.as_str())));
            words.extend(args.iter().map(|arg| fred::types::Value::Bytes(arg.clone())));
            words
        };
        let options = Options {
            // The first key decides where a cluster runs it.
            cluster_hash: Some(if keys.is_empty() { ClusterHash::Random } else { ClusterHash::Offset(2) }),
            // Nobody waits for a connection that is down: calls would pile up.
            fail_fast: true,
            ..Options::default()
        };
        let client = self.client.with_options(&options);
        let ask = |name, words| client.custom_raw(CustomCommand::new_static(name, ClusterHash::FirstKey, false), words);
        let mut answer = ask("EVALSHA", words(script.sha1())).await.map(reply::convert);
        // The server was restarted or flushed, or another took over. EVAL loads the script on the way.
        if matches!(&answer, Ok(Err(refusal)) if refusal.starts_with("NOSCRIPT")) {
            answer = ask("EVAL", words(script.source())).await.map(reply::convert);
        }
        match answer {
            Ok(reply) => {
                self.answered();
                reply.map_err(|refusal| rules::refused(script, refusal))
            }
            Err(error) => {
                if *error.kind() == ErrorKind::Timeout {
                    self.note_silence();
                }
                Err(StoreError::Unavailable(error.to_string()))
            }
        }
    }
}

impl Engine for FredEngine {
    fn run<'a>(
        &'a self,
        script: &'static Script,
        keys: &'a [String],
        args: Vec<Arg>,
    ) -> BoxFuture<'a, Result<Value, StoreError>> {
        Box::pin(async move {
            let answer = timeout(DEADLINE, self.evaluate(script, keys, args)).await;
            answer.unwrap_or_else(|_| {
                self.note_silence();
                Err(rules::no_answer(&self.address))
            })
        })
    }
}

impl fmt::Debug for FredEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FredEngine").field("address", &self.address).finish_non_exhaustive()
    }
}

fn build(address: &RedisAddress) -> Result<Client, Error> {
    let (login, server) = match address {
        RedisAddress::Single(one) => (one, single(one)?),
        RedisAddress::Sentinel { sentinels, master, server } => (server, sentinel(sentinels, master)),
        RedisAddress::Cluster(nodes) => {
            let hosts = nodes.iter().filter_map(host).collect();
            let first = nodes.first().ok_or_else(|| Error::new(ErrorKind::Config, "a cluster without nodes"))?;
            (first, ServerConfig::Clustered { hosts, policy: ClusterDiscoveryPolicy::UseCache })
        }
    };
    let login = login.redis_settings();
    let config = Config {
        fail_fast: true,
        server,
        username: login.username().map(str::to_owned),
        password: login.password().map(str::to_owned),
        database: u8::try_from(login.db()).ok().filter(|database| *database > 0),
        ..Config::default()
    };
    let longest_pause = u32::try_from(LONGEST_PAUSE.as_millis()).unwrap_or(u32::MAX);
    let mut policy = ReconnectPolicy::new_exponential(0, FIRST_PAUSE_MILLIS, longest_pause, 2);
    policy.set_jitter(FIRST_PAUSE_MILLIS);
    Builder::from_config(config)
        .with_performance_config(|performance| performance.default_command_timeout = DEADLINE)
        .with_connection_config(|connection| {
            connection.connection_timeout = DEADLINE;
            connection.internal_command_timeout = DEADLINE;
            // Each redirection in a cluster is one.
            connection.max_command_attempts = REDIRECTIONS;
            connection.max_redirections = REDIRECTIONS;
            connection.max_command_buffer_len = CONCURRENT_CALLS;
            connection.tcp.nodelay = Some(true);
            // Not while it loads: the server is the right one and needs no new connection.
            connection.reconnect_errors =
                vec![ReconnectError::ReadOnly, ReconnectError::MasterDown, ReconnectError::ClusterDown];
        })
        .set_policy(policy)
        .build()
}

fn single(server: &ConnectionInfo) -> Result<ServerConfig, Error> {
    match (server.addr(), host(server)) {
        (ConnectionAddr::Unix(path), _) => Ok(ServerConfig::Unix { path: path.clone() }),
        (_, Some(server)) => Ok(ServerConfig::Centralized { server }),
        (other, None) => Err(Error::new(ErrorKind::Config, format!("{other} is not an address that fred can use"))),
    }
}

fn sentinel(sentinels: &[ConnectionInfo], master: &str) -> ServerConfig {
    let login = sentinels.first().map(ConnectionInfo::redis_settings);
    ServerConfig::Sentinel {
        hosts: sentinels.iter().filter_map(host).collect(),
        service_name: master.to_owned(),
        username: login.and_then(|login| login.username()).map(str::to_owned),
        password: login.and_then(|login| login.password()).map(str::to_owned),
    }
}

fn host(server: &ConnectionInfo) -> Option<Server> {
    match server.addr() {
        ConnectionAddr::Tcp(host, port) => Some(Server::new(host.as_str(), *port)),
        _ => None,
    }
}

/// A failed connection attempt's error.
fn explain(address: impl fmt::Display, error: &Error) -> StoreError {
    match error.kind() {
        ErrorKind::Auth | ErrorKind::Config | ErrorKind::InvalidArgument => rules::unwelcome(address, error.details()),
        _ => rules::no_server(address, &error.to_string()),
    }
}
