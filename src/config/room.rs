//! One room: what it guards, how it admits, where admitted traffic goes.

use std::time::Duration;

use http::HeaderName;
use ipnet::IpNet;

use super::{
    adaptive::Adaptive,
    cache::CacheRule,
    file::{BypassTable, RoomTable},
    origins::Origins,
    problems::Problems,
};
use crate::queue::{Method, Policy, RoomName, Schedule};

/// One waiting room.
#[derive(Debug, Clone)]
pub struct RoomConfig {
    /// Its name.
    pub name: RoomName,
    /// Hosts it guards (lower case, without port); empty guards every host.
    pub hosts: Vec<String>,
    /// Path prefixes it guards; `/` guards everything.
    pub paths: Vec<String>,
    /// The shop.
    pub origins: Origins,
    /// How it admits.
    pub policy: Policy,
    /// How the rate follows the shop; it stays as configured when `None`.
    pub adaptive: Option<Adaptive>,
    /// A session is never renewed beyond this long after it began.
    pub session_cap: Duration,
    /// Most requests of one session under way at once on one node, upgraded connections included; 0 sets no bound.
    pub max_parallel: u32,
    /// How long a queue token is good for.
    pub queue_token_ttl: Duration,
    /// Status of the queued response: 503, 429, 202 or 200.
    pub queued_status: u16,
    /// Requests that go to the origin uncounted.
    pub bypass: Vec<BypassRule>,
    /// Pages that are kept and given to several.
    pub cache: Vec<CacheRule>,
    /// What the operator wants visitors to read.
    pub message: Option<String>,
    /// Title on the waiting page.
    pub title: String,
    /// The round of a randomness beacon, named before the draw, whose output becomes the draw's public value; the roster's
    /// digest does when `None`.
    pub beacon: Option<String>,
    /// Domain of the cookies; host-only when `None`.
    pub cookie_domain: Option<String>,
}

/// A request that every given field matches goes to the origin without a session.
#[derive(Debug, Clone, Default)]
pub struct BypassRule {
    /// Methods; empty matches any.
    pub methods: Vec<http::Method>,
    /// Prefix of the normalised path, matched at a segment boundary; `None` matches any.
    pub path_prefix: Option<String>,
    /// A header with exactly this value; `None` matches any.
    pub header: Option<(HeaderName, String)>,
    /// Networks of the peer; empty matches any.
    pub networks: Vec<IpNet>,
}

impl RoomConfig {
    /// Checks one table of the file. What is wrong is noted in `problems`.
    pub fn check(table: RoomTable, problems: &mut Problems) -> Option<Self> {
        let name = table.name.clone().unwrap_or_else(|| "main".to_owned());
        let field = |field: &str| format!("room {name}: {field}");
        let room_name = problems.take("rooms", name.parse::<RoomName>());
        problems
            .check(name != "assets", || "room assets: pages keep their files under this name; rename it".to_owned());
        let origins = Origins::check(&table, &field, problems);
        let queued_status = table.queued_status.unwrap_or(503);
        problems.check(matches!(queued_status, 503 | 429 | 202 | 200), || {
            field(&format!("queued_status {queued_status}: use 503, 429, 202 or 200"))
        });
        let rate = table.rate.unwrap_or(20.0);
        let adaptive = table.adaptive.map(|adaptive| Adaptive::check(adaptive, rate, &field, problems));
        let policy = Policy {
            capacity: table.capacity.unwrap_or(200),
            rate,
            burst: table.burst.unwrap_or_else(|| default_burst(adaptive.map_or(rate, |adaptive| adaptive.max_rate))),
            claim_window: table.claim_window.unwrap_or(Duration::from_secs(90)),
            session_ttl: table.session_ttl.unwrap_or(Duration::from_mins(10)),
            absent_after: table.absent_after.unwrap_or(Duration::from_secs(45)),
            grace: table.grace.unwrap_or(Duration::from_mins(5)),
            settle: table.settle.unwrap_or(Duration::from_secs(10)),
            schedule: schedule(&table, &field, problems),
        };
        let session_cap = table.session_cap.unwrap_or(Duration::from_hours(2));
        check_policy(&policy, session_cap, &field, problems);
        let paths = if table.paths.is_empty() { vec!["/".to_owned()] } else { table.paths };
        for path in &paths {
            check_prefix(path, &field("path"), problems);
        }
        for host in &table.hosts {
            problems.check(is_host(host), || {
                field(&format!(
                    "host {host:?} matches no request: write a name such as shop.example, without port or '*'"
                ))
            });
        }
        if let Some(domain) = &table.cookie_domain {
            problems.check(is_host(domain.strip_prefix('.').unwrap_or(domain)), || {
                field(&format!("cookie_domain {domain:?}: write a name such as shop.example"))
            });
        }
        let queue_token_ttl = table.queue_token_ttl.unwrap_or(Duration::from_hours(24));
        let prequeue_ms = policy.schedule.prequeue_at_ms.zip(policy.schedule.opens_at_ms);
        let prequeue = prequeue_ms.map(|(from, to)| Duration::from_millis(to.saturating_sub(from)));
        problems.check(prequeue.is_none_or(|prequeue| queue_token_ttl >= prequeue.saturating_add(policy.grace)), || {
            field("queue_token_ttl is shorter than the pre-queue and grace together, so that who comes first would lose their place: make it longer")
        });
        problems.check(queue_token_ttl >= policy.grace, || {
            field("queue_token_ttl is shorter than grace, so that visitors who are there lose their place: make it longer")
        });
        let durations = [
            ("queue_token_ttl", queue_token_ttl),
            ("session_cap", session_cap),
            ("settle", policy.settle),
            ("grace", policy.grace),
        ];
        for (name, duration) in durations {
            problems.check(duration <= LONGEST, || field(&format!("{name} is longer than a year: use less")));
        }
        let max_parallel = table.max_parallel.unwrap_or(MAX_PARALLEL);
        problems.check(max_parallel == 0 || (2..=10_000).contains(&max_parallel), || {
            field(&format!(
                "max_parallel {max_parallel}: use 2 to 10000 (a browser sends 6 requests at once, and more), or 0 for no bound"
            ))
        });
        let bypass = table.bypass.into_iter().filter_map(|rule| BypassRule::check(rule, &field, problems)).collect();
        let cache = table.cache.into_iter().filter_map(|rule| CacheRule::check(rule, &field, problems)).collect();
        Some(Self {
            name: room_name?,
            hosts: table.hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            paths,
            origins: origins?,
            policy,
            adaptive,
            session_cap,
            max_parallel,
            queue_token_ttl,
            queued_status,
            bypass,
            cache,
            message: table.message,
            beacon: table.beacon,
            title: table.title.unwrap_or_else(|| "You are in line".to_owned()),
            cookie_domain: table.cookie_domain,
        })
    }
}

impl RoomConfig {
    /// What can be used but is likely not meant.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Problems::default();
        let claim_window = self.policy.claim_window;
        warnings.check(claim_window >= BACKGROUND_TAB, || {
            format!(
                "room {}: claim_window {claim_window:?} is below 75s: browsers let a tab in the background ask once a minute, so \
                 that whoever looks elsewhere misses their turn",
                self.name
            )
        });
        let schedule = &self.policy.schedule;
        let prequeue_ms = schedule.opens_at_ms.zip(schedule.prequeue_at_ms).map(|(to, from)| to.saturating_sub(from));
        let is_short = schedule.method == Method::Lottery
            && prequeue_ms.is_some_and(|prequeue_ms| Duration::from_millis(prequeue_ms) < BACKGROUND_TAB);
        warnings.check(!is_short, || {
            format!(
                "room {}: the pre-queue, from prequeue_at to opens_at, is shorter than 75s. Browsers ask every 18s, and once a \
                 minute in the background, so that a store which is lost meanwhile would not hear of all of them before the draw",
                self.name
            )
        });
        warnings.into_list()
    }

    /// A host and path that both rooms guard, so that nobody could tell whose a request is.
    pub(super) fn conflict(&self, other: &Self) -> Option<String> {
        let host = match self.hosts.as_slice() {
            [] if other.hosts.is_empty() => "every host",
            hosts => hosts.iter().find(|host| other.hosts.contains(host))?,
        };
        let plain = |path: &str| path.trim_end_matches('/').to_owned();
        let path = self.paths.iter().find(|path| other.paths.iter().any(|other| plain(other) == plain(path)))?;
        Some(format!("{path} of {host}"))
    }
}

impl BypassRule {
    fn check(table: BypassTable, field: &dyn Fn(&str) -> String, problems: &mut Problems) -> Option<Self> {
        let BypassTable { methods, path_prefix, header, networks } = table;
        let any_path = path_prefix.as_deref().is_none_or(|prefix| prefix == "/");
        let empty = methods.is_empty() && any_path && header.is_none() && networks.is_empty();
        problems.check(!empty, || field("bypass: an empty rule would let everything past; give it a field"));
        if let Some(prefix) = &path_prefix {
            check_prefix(prefix, &field("bypass path_prefix"), problems);
        }
        let methods = methods
            .iter()
            .filter_map(|method| problems.take(&field(&format!("bypass method {method:?}")), method.parse()))
            .collect();
        let networks = networks
            .iter()
            .filter_map(|network| {
                problems.take(&field(&format!("bypass network {network:?} (such as 10.0.0.0/8)")), network.parse())
            })
            .collect();
        let header = match header {
            Some(header) => {
                let label = field(&format!("bypass header {:?}", header.name));
                Some((problems.take(&label, header.name.parse::<HeaderName>())?, header.value))
            }
            None => None,
        };
        Some(Self { methods, path_prefix, header, networks })
    }
}

/// When what happens by itself.
fn schedule(table: &RoomTable, field: &dyn Fn(&str) -> String, problems: &mut Problems) -> Schedule {
    let mut time = |name: &str, text: &Option<String>| {
        text.as_deref().and_then(|text| problems.take(&field(name), parse_instant(text)))
    };
    let prequeue_at_ms = time("prequeue_at", &table.prequeue_at);
    let opens_at_ms = time("opens_at", &table.opens_at);
    let closes_at_ms = time("closes_at", &table.closes_at);
    let method = table.method.unwrap_or_default();
    let are_in_order = |earlier: Option<u64>, later: Option<u64>| match (earlier, later) {
        (Some(earlier), Some(later)) => earlier < later,
        _ => true,
    };
    problems.check(table.prequeue_at.is_none() || table.opens_at.is_some(), || {
        field("prequeue_at without opens_at: say when the pre-queue ends")
    });
    problems.check(method == Method::Fifo || table.prequeue_at.is_some(), || {
        field("method = \"lottery\" needs prequeue_at and opens_at: whoever comes between them takes part in the draw")
    });
    problems.check(are_in_order(prequeue_at_ms, opens_at_ms), || {
        field("prequeue_at is not before opens_at: the pre-queue comes first")
    });
    problems.check(are_in_order(opens_at_ms, closes_at_ms), || {
        field("closes_at is not after opens_at: a sale closes after it opened")
    });
    let is_named = |beacon: &String| (1..=256).contains(&beacon.len()) && !beacon.contains(char::is_control);
    problems.check(table.beacon.as_ref().is_none_or(is_named), || {
        field("beacon: name the round in 1 to 256 characters, such as \"drand quicknet round 12345678\"")
    });
    problems.check(table.beacon.is_none() || method == Method::Lottery, || field("beacon is for method = \"lottery\""));
    Schedule { prequeue_at_ms, opens_at_ms, closes_at_ms, method }
}

/// A quarter of a second's worth, and at least 2: enough for nodes that call ten times a second to use the whole rate. A
/// bucket of one would stand full until the next look, and lose what came meanwhile.
pub fn default_burst(rate: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what fits")]
    let burst = (rate / 4.0).ceil().min(f64::from(u32::MAX)).max(2.0) as u32;
    burst
}

/// [`RoomConfig::max_parallel`] unless set: what one person's tabs need, and too little for a crowd.
pub const MAX_PARALLEL: u32 = 32;

/// One entry in a quarter of an hour: what is slower is a slip of the pen. To let in nobody, pause the room.
const SLOWEST: f64 = 0.001;
/// Entries per second.
const FASTEST: f64 = 1e6;

/// Browsers let a tab in the background poll once a minute at least; see `claim_window`'s default.
const BACKGROUND_TAB: Duration = Duration::from_secs(75);

/// Nothing of a sale lasts longer.
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// A prefix that no path can have would guard, or exempt, nothing.
pub(super) fn check_prefix(prefix: &str, field: &str, problems: &mut Problems) {
    problems.check(prefix.starts_with('/'), || format!("{field} {prefix:?} must start with '/'"));
    let inner = prefix.strip_prefix('/').map_or(prefix, |rest| rest.strip_suffix('/').unwrap_or(rest));
    let is_plain = prefix.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\\".contains(&byte));
    let leads_on = prefix == "/" || inner.split('/').all(|segment| !matches!(segment, "" | "." | ".."));
    problems.check(is_plain && leads_on, || {
        format!("{field} {prefix:?} matches no request: write a plain path, percent-encoded, without query and dots")
    });
}

/// Whether a `Host` can be this, as it is compared: without port.
fn is_host(text: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_address = text.starts_with('[') && text.ends_with(']');
    !text.is_empty() && !text.ends_with('.') && (is_address || text.bytes().all(is_name))
}

/// Notes what is wrong with a policy; `field` says where it stands.
pub fn check_policy(policy: &Policy, session_cap: Duration, field: &dyn Fn(&str) -> String, problems: &mut Problems) {
    problems.check(policy.capacity > 0, || field("capacity is 0, which admits nobody: use 1 or more"));
    problems.check((SLOWEST..=FASTEST).contains(&policy.rate), || {
        field(&format!("rate {} per second: use {SLOWEST} to {FASTEST}", policy.rate))
    });
    problems.check(policy.burst > 0, || field("burst is 0, which admits nobody: use 1 or more"));
    for (name, duration) in [
        ("claim_window", policy.claim_window),
        ("session_ttl", policy.session_ttl),
        ("absent_after", policy.absent_after),
        ("grace", policy.grace),
    ] {
        problems.check(duration >= Duration::from_secs(1), || {
            field(&format!("{name} is below one second: use 1s or more"))
        });
    }
    problems.check(policy.grace >= policy.absent_after, || {
        field("grace is shorter than absent_after: who is absent keeps their place for the grace, so make it longer")
    });
    problems.check(session_cap >= policy.session_ttl, || {
        field("session_cap is shorter than session_ttl: no session outlives the cap, so make it longer")
    });
}

fn parse_instant(text: &str) -> Result<u64, String> {
    let instant: jiff::Timestamp =
        text.parse().map_err(|error| format!("{text:?} is not a time such as 2030-05-01T10:00:00+02:00: {error}"))?;
    u64::try_from(instant.as_millisecond()).map_err(|_| format!("{text:?} is before 1970"))
}

#[cfg(test)]
mod tests;
