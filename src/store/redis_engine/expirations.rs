//! Word from the server that a key has run out: quick, and sometimes none.
//!
//! Redis says so only when it is set to, forgets whoever is not connected, and takes its time when many keys run out.
//! So this is for those who would find out anyway, a little later.

use std::{sync::Arc, time::Duration};

use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use redis::{Client, ConnectionInfo, RedisError, aio::PubSubStream};
use tokio::time::{sleep, timeout};

use super::{
    super::redis_rules::{CONNECT_DEADLINE, LONGEST_PAUSE},
    link::open_server,
    text,
};

const SETTING: &str = "notify-keyspace-events";

/// Each time `key` runs out. Ends when the server will not say.
pub fn of(server: ConnectionInfo, key: &str) -> BoxStream<'static, ()> {
    let channel: Arc<str> = format!("__keyspace@{}__:{key}", server.redis_settings().db()).into();
    let subscriber = Subscriber { server, channel, attempt: 0, open: None };
    stream::unfold(subscriber, |mut subscriber| async move { Some((subscriber.next().await?, subscriber)) }).boxed()
}

struct Subscriber {
    server: ConnectionInfo,
    channel: Arc<str>,
    attempt: u32,
    open: Option<PubSubStream>,
}

/// Why there is no subscription.
enum Trouble {
    /// It may work later.
    Passing(String),
    /// The server is not set to tell, and may not be set by us.
    Lasting(String),
}

impl Subscriber {
    async fn next(&mut self) -> Option<()> {
        loop {
            if let Some(messages) = &mut self.open {
                while let Some(message) = messages.next().await {
                    if message.get_payload_bytes() == b"expired" {
                        return Some(());
                    }
                }
                self.open = None;
                sleep(self.pause()).await;
            }
            match timeout(CONNECT_DEADLINE, self.subscribe()).await {
                Ok(Ok(messages)) => {
                    tracing::info!(server = %self.server.addr(), "the store tells when holds run out");
                    (self.open, self.attempt) = (Some(messages), 0);
                    // Something may have run out unheard.
                    return Some(());
                }
                Ok(Err(Trouble::Lasting(reason))) => {
                    tracing::info!(
                        server = %self.server.addr(), reason,
                        "the store does not tell when holds run out, so they are looked for every second; to have it \
                         tell: redis-cli CONFIG SET notify-keyspace-events Kx"
                    );
                    return None;
                }
                Ok(Err(Trouble::Passing(reason))) => tracing::debug!(reason, "cannot subscribe; trying again"),
                Err(_) => tracing::debug!("cannot subscribe in time; trying again"),
            }
            self.attempt = self.attempt.saturating_add(1);
            sleep(self.pause()).await;
        }
    }

    async fn subscribe(&self) -> Result<PubSubStream, Trouble> {
        self.have_it_tell().await?;
        let client = Client::open(self.server.clone()).map_err(|error| passing(&error))?;
        let mut subscription = client.get_async_pubsub().await.map_err(|error| passing(&error))?;
        subscription.subscribe(&*self.channel).await.map_err(|error| refused(&error))?;
        Ok(subscription.into_on_message())
    }

    /// Adds to the server's setting what is missing there. A server started again has forgotten it.
    async fn have_it_tell(&self) -> Result<(), Trouble> {
        let link = open_server(&self.server).await.map_err(|error| Trouble::Passing(error.to_string()))?;
        let answer = link.ask(redis::cmd("CONFIG").arg("GET").arg(SETTING)).await.map_err(|error| refused(&error))?;
        let pair: Vec<String> = redis::from_redis_value(answer).map_err(|error| Trouble::Passing(error.to_string()))?;
        let set = pair.get(1).cloned().unwrap_or_default();
        let has = |flags: &[char]| flags.iter().any(|flag| set.contains(*flag));
        if has(&['K']) && has(&['x', 'A']) {
            return Ok(());
        }
        let more = format!("{set}Kx");
        link.ask(redis::cmd("CONFIG").arg("SET").arg(SETTING).arg(&more)).await.map_err(|error| refused(&error))?;
        tracing::info!(server = %self.server.addr(), set, more, "{SETTING} is set so that the store tells of expired holds");
        Ok(())
    }

    /// Random, so that many nodes do not come back at one instant.
    fn pause(&self) -> Duration {
        let most = Duration::from_millis(50).saturating_mul(1 << self.attempt.min(10)).min(LONGEST_PAUSE);
        most.mul_f64(rand::random())
    }
}

fn passing(error: &RedisError) -> Trouble {
    Trouble::Passing(text(error))
}

/// A server that answers with a refusal will not change its mind.
fn refused(error: &RedisError) -> Trouble {
    match error.code() {
        Some("NOPERM" | "ERR") => Trouble::Lasting(text(error)),
        _ => passing(error),
    }
}
