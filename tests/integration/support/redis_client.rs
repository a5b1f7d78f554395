//! The clients by which the engine on Redis is compiled in.

use std::sync::Arc;

use stanchion::store::{SharedEngine, StoreError, redis_engine::RedisEngine};

#[derive(Debug, Clone, Copy)]
pub enum RedisClient {
    Redis,
    #[cfg(feature = "fred")]
    Fred,
}

impl RedisClient {
    pub const ALL: &[Self] = &[
        Self::Redis,
        #[cfg(feature = "fred")]
        Self::Fred,
    ];

    pub async fn try_connect(self, url: &str) -> Result<SharedEngine, StoreError> {
        Ok(match self {
            Self::Redis => Arc::new(RedisEngine::connect(url).await?),
            #[cfg(feature = "fred")]
            Self::Fred => Arc::new(stanchion::store::fred_engine::FredEngine::connect(url).await?),
        })
    }

    pub async fn connect(self, url: &str) -> SharedEngine {
        self.try_connect(url).await.unwrap()
    }
}

/// Runs each story by every client.
macro_rules! by_each_client {
    ($($story:ident),+ $(,)?) => {
        mod by_redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                super::$story(crate::support::redis_client::RedisClient::Redis).await;
            })+
        }
        #[cfg(feature = "fred")]
        mod by_fred {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                super::$story(crate::support::redis_client::RedisClient::Fred).await;
            })+
        }
    };
}
pub(crate) use by_each_client;
