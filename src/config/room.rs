//! One room: what it guards, how it admits, where admitted traffic goes.

use std::time::Duration;

use http::{HeaderName, Method, Uri};
use ipnet::IpNet;

use crate::queue::{Policy, RoomName};

/// One waiting room.
#[derive(Debug, Clone)]
pub struct RoomConfig {
    /// Its name.
    pub name: RoomName,
    /// Hosts it guards (lower case, without port); empty guards every host.
    pub hosts: Vec<String>,
    /// Path prefixes it guards; `/` guards everything.
    pub paths: Vec<String>,
    /// The shop: scheme `http`, host and port; no path.
    pub origin: Uri,
    /// How it admits.
    pub policy: Policy,
    /// A session is never renewed beyond this long after it began.
    pub session_cap: Duration,
    /// How long a queue token is good for.
    pub queue_token_ttl: Duration,
    /// After the store lost its history, nobody is called for this long, so that places and sessions register.
    pub settle: Duration,
    /// Status of the queued response: 503, 429, 202 or 200.
    pub queued_status: u16,
    /// Requests that go to the origin uncounted.
    pub bypass: Vec<BypassRule>,
    /// What the operator wants visitors to read.
    pub message: Option<String>,
    /// Title on the waiting page.
    pub title: String,
    /// Domain of the cookies; host-only when `None`.
    pub cookie_domain: Option<String>,
}

/// A request that every given field matches goes to the origin without a session.
#[derive(Debug, Clone, Default)]
pub struct BypassRule {
    /// Methods; empty matches any.
    pub methods: Vec<Method>,
    /// Prefix of the normalised path, matched at a segment boundary; `None` matches any.
    pub path_prefix: Option<String>,
    /// A header with exactly this value; `None` matches any.
    pub header: Option<(HeaderName, String)>,
    /// Networks of the peer; empty matches any.
    pub networks: Vec<IpNet>,
}
