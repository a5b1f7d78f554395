//! Which engine runs the scripts.

use std::sync::Arc;

use crate::{
    clock::SharedClock,
    store::{SharedEngine, StoreError, in_process::InProcess, redis_engine::RedisEngine},
};

/// Where the shared state is kept.
#[derive(Debug, clap::Args)]
pub struct StoreArgs {
    /// Keep line and holds in Redis 7 or Valkey instead of in this process.
    ///
    /// One server: redis://USER:PASSWORD@HOST:PORT/DATABASE or unix:///PATH.
    /// The master that Sentinels name: redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/MASTER/DATABASE, with
    /// ?sentinel_auth=USER:PASSWORD behind it if the Sentinels want one.
    /// A cluster, by some of its nodes: redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT.
    /// User, password, port and database may be left out.
    /// Its maxmemory-policy must be noeviction.
    #[arg(long, env = "STANCHION_REDIS", value_name = "URL", hide_env_values = true, verbatim_doc_comment)]
    pub redis: Option<String>,
    /// The client that talks to Redis.
    #[cfg(feature = "fred")]
    #[arg(long, env = "STANCHION_REDIS_CLIENT", value_enum, default_value_t)]
    redis_client: RedisClient,
}

/// A client library for Redis.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
pub enum RedisClient {
    /// The `redis` crate.
    #[default]
    Redis,
    /// The `fred` crate.
    #[cfg(feature = "fred")]
    Fred,
}

impl StoreArgs {
    /// The client that was chosen, the only one unless another is compiled in.
    #[cfg_attr(not(feature = "fred"), expect(clippy::unused_self, reason = "there is nothing to choose from"))]
    pub fn client(&self) -> RedisClient {
        #[cfg(feature = "fred")]
        return self.redis_client;
        #[cfg(not(feature = "fred"))]
        return RedisClient::default();
    }
}

/// Redis where an address is given, else the embedded engine.
pub async fn open(redis: Option<&str>, client: RedisClient, clock: &SharedClock) -> Result<SharedEngine, StoreError> {
    Ok(match (redis, client) {
        (None, _) => Arc::new(InProcess::new(Arc::clone(clock))),
        (Some(url), RedisClient::Redis) => Arc::new(RedisEngine::connect(url).await?),
        #[cfg(feature = "fred")]
        (Some(url), RedisClient::Fred) => Arc::new(crate::store::fred_engine::FredEngine::connect(url).await?),
    })
}
