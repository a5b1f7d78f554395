//! The engine on Redis 7 or Valkey: one server, a master that Sentinels name, or a cluster.
//!
//! One multiplexed connection (a cluster has one per node), watched by a [`keeper`] that replaces it when it breaks,
//! falls silent or leads to a server that is not the master any more. Every call has its own deadline, because the
//! client makes calls wait while it reconnects and never drops one that has no answer.

mod expirations;
mod keeper;
mod link;
mod reply;
mod sentinel;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream::BoxStream};
use keeper::{Held, Keeper};
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind};
use tokio::time::{timeout, timeout_at};

use super::{
    Arg, Engine, Script, StoreError, Value,
    redis_address::RedisAddress,
    redis_rules::{self as rules, CONNECT_DEADLINE, DEADLINE},
};

/// An engine whose data lives in Redis. Cheap to clone.
#[derive(Clone)]
pub struct RedisEngine {
    address: Arc<RedisAddress>,
    keeper: Arc<Keeper>,
}

impl RedisEngine {
    /// Connects to a URL as [`RedisAddress`] knows them and checks that every server will do.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let address = Arc::new(RedisAddress::parse(url)?);
        let connecting = async {
            let link = link::open(&address).await?;
            link.check().await?;
            Ok(link)
        };
        let late = |_| Err(rules::no_server_in_time(&address));
        let link = timeout(CONNECT_DEADLINE, connecting).await.unwrap_or_else(late)?;
        Ok(Self { keeper: Arc::new(Keeper::new(Arc::clone(&address), link)), address })
    }

    async fn run_within_deadline(
        &self,
        script: &'static Script,
        keys: &[String],
        args: &[Bytes],
    ) -> Result<Value, StoreError> {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        let late = || rules::no_answer(&self.address);
        let held = timeout_at(deadline, self.keeper.get()).await.map_err(|_| late())??;
        let answer = timeout_at(deadline, evaluate(&held, script, keys, args)).await;
        match answer {
            Ok(Ok(reply)) => {
                held.answered();
                Ok(reply)
            }
            Ok(Err(error)) if !error.is_timeout() => {
                self.keeper.note(&held, &error);
                Err(classify(script, &error))
            }
            _ => {
                self.keeper.note_silence(&held);
                Err(late())
            }
        }
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
            self.run_within_deadline(script, keys, &args).await
        })
    }

    /// Of one server only: which one has a key may change among several.
    fn expirations(&self, key: &str) -> Option<BoxStream<'static, ()>> {
        match &*self.address {
            RedisAddress::Single(server) => Some(expirations::of(server.clone(), key)),
            RedisAddress::Sentinel { .. } | RedisAddress::Cluster(_) => None,
        }
    }
}

impl fmt::Debug for RedisEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisEngine").field("address", &self.address).finish_non_exhaustive()
    }
}

async fn evaluate(held: &Held, script: &'static Script, keys: &[String], args: &[Bytes]) -> Result<Value, RedisError> {
    let answer = match held.link.ask(&command("EVALSHA", script.sha1(), keys, args)).await {
        // The server was restarted or flushed, or another took over. EVAL loads the script on the way.
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            held.link.ask(&command("EVAL", script.source(), keys, args)).await
        }
        answer => answer,
    };
    answer.and_then(reply::convert)
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
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => rules::refused(script, text(error)),
        ErrorKind::UnexpectedReturnType => StoreError::Script { script: script.file(), message: text(error) },
        _ => StoreError::Unavailable(text(error)),
    }
}

/// A failed connection attempt's error.
fn explain(address: impl fmt::Display, error: &RedisError) -> StoreError {
    match error.kind() {
        ErrorKind::AuthenticationFailed
        | ErrorKind::InvalidClientConfig
        | ErrorKind::Server(_)
        | ErrorKind::Extension => rules::unwelcome(address, &text(error)),
        _ => rules::no_server(address, &text(error)),
    }
}

/// The server's own words, `CODE text`, or the client's.
fn text(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    }
}
