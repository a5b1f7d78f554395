//! The configuration file as it is written: TOML, unknown fields refused, durations as `90s` or `10m`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use serde::{Deserialize, Deserializer, de};

use super::{ConfigError, adaptive::AdaptiveTable, problems::Problems, server::ForwardedHeader};
use crate::queue::Method;

/// `stanchion.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// Public listeners that speak plain HTTP: one address or several. Default `127.0.0.1:8080`, unless there are `listeners`.
    #[serde(default, deserialize_with = "addresses")]
    pub listen: Option<Vec<SocketAddr>>,
    /// Public listeners with TLS or the PROXY protocol.
    #[serde(default)]
    pub listeners: Vec<ListenerTable>,
    /// Bounds of the public listeners.
    #[serde(default)]
    pub server: ServerTable,
    /// Private listener. Default `127.0.0.1:9090`.
    pub admin: Option<SocketAddr>,
    /// Where signing keys are kept, and what is published of a lottery's draw.
    pub data: Option<PathBuf>,
    /// `redis://…`; the embedded engine when absent.
    pub redis: Option<String>,
    /// The rooms; a request goes to the one that names its host, and of several to the one with the longest path.
    #[serde(default)]
    pub rooms: Vec<RoomTable>,
}

/// One `[[listeners]]` table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenerTable {
    /// Such as `0.0.0.0:443`. Required.
    pub address: Option<SocketAddr>,
    /// PEM file: the server's certificate, then the chain. Default: plain HTTP.
    pub certificate: Option<PathBuf>,
    /// PEM file: the certificate's key.
    pub key: Option<PathBuf>,
    /// Every connection begins with a PROXY header. Default false.
    #[serde(default)]
    pub proxy_protocol: bool,
}

/// The `[server]` table; [`super::ServerConfig::default`] has the defaults.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "each is the field of its name in `ServerConfig`")]
pub struct ServerTable {
    pub trusted_proxies: Vec<String>,
    pub forwarded_header: Option<ForwardedHeader>,
    pub max_connections: Option<usize>,
    pub max_connections_per_address: Option<usize>,
    pub max_header_bytes: Option<usize>,
    pub max_headers: Option<usize>,
    pub max_target_bytes: Option<usize>,
    pub max_body_bytes: Option<u64>,
    pub cache_bytes: Option<usize>,
    #[serde(deserialize_with = "duration")]
    pub handshake_deadline: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    pub header_deadline: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    pub keep_alive: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    pub body_idle: Option<Duration>,
    pub min_body_rate: Option<u64>,
    #[serde(deserialize_with = "duration")]
    pub write_deadline: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    pub drain_delay: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    pub drain_deadline: Option<Duration>,
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
    /// The shop. Required, or `origins`.
    pub origin: Option<String>,
    /// The shop, where it has more than one address.
    #[serde(default)]
    pub origins: Vec<String>,
    /// Most requests under way at once that only read. Default 256.
    pub reads_in_flight: Option<usize>,
    /// Most other requests under way at once. Default 128.
    pub writes_in_flight: Option<usize>,
    /// Path prefixes refused first when the shop has much to do. Default: none.
    #[serde(default)]
    pub optional: Vec<String>,
    /// What an origin is asked to see whether it is well. Default: nothing.
    pub health_path: Option<String>,
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
    #[serde(default, deserialize_with = "instant")]
    pub prequeue_at: Option<String>,
    /// RFC 3339. Default: open at once.
    #[serde(default, deserialize_with = "instant")]
    pub opens_at: Option<String>,
    /// RFC 3339. Default: when the operator says so.
    #[serde(default, deserialize_with = "instant")]
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
    /// What may be kept and given to several. Default: nothing.
    #[serde(default)]
    pub cache: Vec<CacheTable>,
}

/// One `[[rooms.cache]]` table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheTable {
    /// Such as `/event`. Required.
    pub path_prefix: Option<String>,
    /// Whether those who are not admitted get it too. Default false.
    #[serde(default)]
    pub for_everyone: bool,
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

/// A file in which more than this is wrong is best mended step by step.
const MOST_PROBLEMS: usize = 20;

impl ConfigFile {
    /// Parses TOML.
    ///
    /// # Errors
    /// Where it is not TOML; else every field that is unknown or of the wrong type, with line and column.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| all_problems(text, error))
    }
}

/// All that is wrong with the fields: the parser stops at the first, so the line it complains of is taken out and it reads on.
fn all_problems(text: &str, first: toml::de::Error) -> ConfigError {
    let mut problems = Problems::default();
    let (mut left, mut error) = (text.to_owned(), Some(first));
    for _ in 0..MOST_PROBLEMS {
        let Some(found) = error else { break };
        problems.add(explain(&found));
        // Without its line nothing would be left to read, or what follows would be read as something else.
        let Some(rest) = found.span().and_then(|span| without_line(&left, span.start)) else { break };
        left = rest;
        error = if left.parse::<toml::Table>().is_ok() { toml::from_str::<ConfigFile>(&left).err() } else { None };
    }
    problems.into_error()
}

/// `text` with blanks for the line at `position`, so that all others keep their numbers. `None` for the head of a table.
fn without_line(text: &str, position: usize) -> Option<String> {
    let from = text.get(..position)?.rfind('\n').map_or(0, |end| end + 1);
    let to = text.get(position..)?.find('\n').map_or(text.len(), |end| position + end);
    let is_head = text.get(from..to)?.trim_start().starts_with('[');
    (!is_head).then(|| format!("{}{}{}", &text[..from], " ".repeat(to - from), &text[to..]))
}

/// What the parser says, and what to do where its words do not tell.
fn explain(error: &toml::de::Error) -> String {
    let said = error.to_string();
    let said = said.trim_end();
    let unknown = error.message().strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    match unknown {
        Some("admin_token") => format!("{said}\nIt is a secret: set STANCHION_ADMIN_TOKEN in the environment instead"),
        // What is known beside it tells which table it stands in.
        Some(field) if error.message().contains("`rooms`") && is_of_a_room(field) => {
            format!("{said}\n{field} belongs to a room: write it below a line [[rooms]]")
        }
        _ => said.to_owned(),
    }
}

fn is_of_a_room(field: &str) -> bool {
    let empty = toml::Table::from_iter([(field.to_owned(), toml::Value::Boolean(false))]);
    RoomTable::deserialize(empty).err().is_some_and(|error| !error.message().starts_with("unknown field"))
}

fn addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<SocketAddr>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "an address such as \"127.0.0.1:8080\", or a list of them")]
    enum Written {
        One(SocketAddr),
        Several(Vec<SocketAddr>),
    }
    Ok(Some(match Written::deserialize(deserializer)? {
        Written::One(address) => vec![address],
        Written::Several(addresses) => addresses,
    }))
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text)
        .map(Some)
        .map_err(|error| de::Error::custom(format!("{text:?} is not a duration such as 90s, 10m or 2h: {error}")))
}

/// A time, in quotes or not: TOML has times of its own.
fn instant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a time such as 2030-05-01T10:00:00+02:00")]
    enum Written {
        Text(String),
        Time(toml::value::Datetime),
    }
    Ok(Some(match Written::deserialize(deserializer)? {
        Written::Text(text) => text,
        Written::Time(time) => time.to_string(),
    }))
}
