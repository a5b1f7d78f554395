//! Which engine runs the scripts.

use std::sync::Arc;

use crate::{
    clock::SharedClock,
    store::{SharedEngine, StoreError, in_process::InProcess, redis_engine::RedisEngine},
};

/// Redis where an address is given, else the embedded engine.
pub async fn open(redis: Option<&str>, clock: &SharedClock) -> Result<SharedEngine, StoreError> {
    Ok(match redis {
        Some(url) => Arc::new(RedisEngine::connect(url).await?),
        None => Arc::new(InProcess::new(Arc::clone(clock))),
    })
}
