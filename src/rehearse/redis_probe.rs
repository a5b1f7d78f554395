//! Counts who is inside by the room's own sets in Redis, while the rehearsal runs.

use std::time::Duration;

use redis::{AsyncConnectionConfig, Client, RedisError, aio::MultiplexedConnection};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// What the probe saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Samples {
    /// How often it looked.
    pub taken: u64,
    /// The most that were called and inside together.
    pub most: u64,
    /// Looks that Redis did not answer.
    pub failed: u64,
}

const EVERY: Duration = Duration::from_millis(20);
const DEADLINE: Duration = Duration::from_secs(2);

/// Connects, or says why not. The address may hold a password, so it is not repeated.
pub(super) async fn connect(url: &str) -> Result<MultiplexedConnection, String> {
    let config =
        AsyncConnectionConfig::new().set_connection_timeout(Some(DEADLINE)).set_response_timeout(Some(DEADLINE));
    let connected = async { Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await }.await;
    connected.map_err(|error: RedisError| format!("the Redis given with --redis does not answer: {error}"))
}

/// Looks every 20 ms until told to stop. Both sets are counted in one transaction, so that a visitor on the way from
/// one to the other counts once.
pub(super) async fn watch(mut redis: MultiplexedConnection, room: String, stop: CancellationToken) -> Samples {
    let (called, inside) = (format!("stanchion:{{{room}}}:called"), format!("stanchion:{{{room}}}:inside"));
    let mut look = redis::pipe();
    look.atomic().zcard(called).zcard(inside);
    let mut samples = Samples::default();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while tokio::select! { () = stop.cancelled() => false, _ = ticks.tick() => true } {
        match look.query_async::<(u64, u64)>(&mut redis).await {
            Ok((called, inside)) => {
                samples.taken += 1;
                samples.most = samples.most.max(called + inside);
            }
            Err(_) => samples.failed += 1,
        }
    }
    samples
}
