//! The configuration file as it is written: TOML, unknown fields refused, durations as `90s` or `10m`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use serde::{Deserialize, Deserializer, de};

use super::{ConfigError, adaptive::AdaptiveTable};
use crate::queue::Method;

/// `stanchion.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// Public listener. Default `127.0.0.1:8080`.
    pub listen: Option<SocketAddr>,
    /// Private listener. Default `127.0.0.1:9090`.
    pub admin: Option<SocketAddr>,
    /// Where signing keys are kept, and what is published of a lottery's draw.
    pub data: Option<PathBuf>,
    /// `redis://…`; the embedded engine when absent.
    pub redis: Option<String>,
    /// The rooms; a request goes to the first that guards its host and path.
    #[serde(default)]
    pub rooms: Vec<RoomTable>,
}

/// One `[[rooms]]` table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoomTable {
    /// Default `main`.
    pub name: Option<String>,
    /// Default: every host.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Default: `/`, everything.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The shop. Required.
    pub origin: Option<String>,
    /// Default 200.
    pub capacity: Option<u32>,
    /// Per second. Default 20.
    pub rate: Option<f64>,
    /// Default: a quarter of a second's rate (the highest, if adaptive), at least 2.
    pub burst: Option<u32>,
    /// Default: the rate stays as configured.
    pub adaptive: Option<AdaptiveTable>,
    /// Default 90s: longer than the minute between two polls of a background tab.
    #[serde(default, deserialize_with = "duration")]
    pub claim_window: Option<Duration>,
    /// Default 10m.
    #[serde(default, deserialize_with = "duration")]
    pub session_ttl: Option<Duration>,
    /// Default 2h.
    #[serde(default, deserialize_with = "duration")]
    pub session_cap: Option<Duration>,
    /// Most requests of one session at once. Default 32; 0 sets no bound.
    pub max_parallel: Option<u32>,
    /// Default 45s.
    #[serde(default, deserialize_with = "duration")]
    pub absent_after: Option<Duration>,
    /// Default 5m.
    #[serde(default, deserialize_with = "duration")]
    pub grace: Option<Duration>,
    /// Default 24h.
    #[serde(default, deserialize_with = "duration")]
    pub queue_token_ttl: Option<Duration>,
    /// Default 10s.
    #[serde(default, deserialize_with = "duration")]
    pub settle: Option<Duration>,
    /// RFC 3339. From then on visitors may come and wait for the opening. Default: nobody before the opening.
    pub prequeue_at: Option<String>,
    /// RFC 3339. Default: open at once.
    pub opens_at: Option<String>,
    /// RFC 3339. Default: when the operator says so.
    pub closes_at: Option<String>,
    /// `fifo` or `lottery`: how whoever came in the pre-queue is ordered. Default `fifo`.
    pub method: Option<Method>,
    /// The round of a randomness beacon, such as `drand quicknet round 12345678`, that decides the lottery. Default: the
    /// digest of the roster does.
    pub beacon: Option<String>,
    /// 503, 429, 202 or 200. Default 503.
    pub queued_status: Option<u16>,
    /// Shown on the waiting page.
    pub message: Option<String>,
    /// Default `You are in line`.
    pub title: Option<String>,
    /// Default: host-only cookies.
    pub cookie_domain: Option<String>,
    /// What skips the line.
    #[serde(default)]
    pub bypass: Vec<BypassTable>,
}

/// One `[[rooms.bypass]]` table. Every field given must match.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BypassTable {
    /// Such as `["GET"]`.
    #[serde(default)]
    pub methods: Vec<String>,
    /// Such as `/healthz`.
    pub path_prefix: Option<String>,
    /// Such as `{ name = "X-Probe", value = "secret" }`.
    pub header: Option<HeaderTable>,
    /// Such as `["10.0.0.0/8"]`.
    #[serde(default)]
    pub networks: Vec<String>,
}

/// A header and its exact value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderTable {
    /// Name, in any case.
    pub name: String,
    /// Value, exact.
    pub value: String,
}

impl ConfigFile {
    /// Parses TOML.
    ///
    /// # Errors
    /// Where it is not TOML, or a field is unknown or of the wrong type, with line and column.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| ConfigError::only(error.to_string().trim_end().to_owned()))
    }
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text)
        .map(Some)
        .map_err(|error| de::Error::custom(format!("{text:?} is not a duration such as 90s, 10m or 2h: {error}")))
}
