//! Which room a request belongs to, and which requests are exempt.

use std::sync::Arc;

use http::{HeaderMap, header::HOST, request};

use super::path::Path;
use crate::{
    admission::{LiveRoom, Rooms},
    config::{BypassRule, CacheRule, RoomConfig},
    gateway::{Peer, Sharing},
};

/// The room a request belongs to.
#[derive(Debug, Clone)]
pub struct Match {
    /// The room; its origin is where the request goes.
    pub room: Arc<LiveRoom>,
    /// Whether the room guards the path. Other paths of its hosts go to its origin uncounted.
    pub is_guarded: bool,
}

/// Finds the room: by host, then the longest guarded prefix. `None` when no room serves the host.
pub fn find(rooms: &Rooms, headers: &HeaderMap, path: &Path) -> Option<Match> {
    let host = host(headers);
    let serves = |room: &LiveRoom| room.config().hosts.iter().any(|name| Some(name.as_str()) == host.as_deref());
    let named: Vec<&Arc<LiveRoom>> = rooms.iter().filter(|room| serves(room)).collect();
    // A room that names the host goes before one that takes every host.
    let candidates =
        if named.is_empty() { rooms.iter().filter(|room| room.config().hosts.is_empty()).collect() } else { named };
    let guard = |room: &&&Arc<LiveRoom>| {
        room.config().paths.iter().filter(|prefix| path.may_be_under(prefix)).map(String::len).max()
    };
    let guarding = candidates.iter().filter(|room| guard(room).is_some()).max_by_key(guard);
    let room = guarding.or(candidates.first())?;
    Some(Match { room: Arc::clone(room), is_guarded: guarding.is_some() })
}

/// Whether one of the room's rules lets the request through uncounted.
pub fn is_bypassed(config: &RoomConfig, head: &request::Parts, path: &Path, peer: Peer) -> bool {
    config.bypass.iter().any(|rule| matches(rule, head, path, peer))
}

fn matches(rule: &BypassRule, head: &request::Parts, path: &Path, peer: Peer) -> bool {
    let has_header = |(name, value): &(http::HeaderName, String)| {
        head.headers.get_all(name).iter().any(|given| given.as_bytes() == value.as_bytes())
    };
    (rule.methods.is_empty() || rule.methods.contains(&head.method))
        && rule.path_prefix.as_deref().is_none_or(|prefix| path.is_surely_under(prefix))
        && rule.header.as_ref().is_none_or(has_header)
        && (rule.networks.is_empty() || rule.networks.iter().any(|network| network.contains(&peer.addr.ip())))
}

/// Who may get what is kept of this path: what the rule with the longest prefix says. For everybody only if no origin can
/// read the path as lying where a longer rule, which is for those admitted, has the say.
pub fn sharing(config: &RoomConfig, path: &Path) -> Option<Sharing> {
    let rules = || config.cache.iter().filter(|rule| path.is_surely_under(&rule.path_prefix));
    let rule = rules().max_by_key(|rule| rule.path_prefix.trim_end_matches('/').len())?;
    let is_doubtful = |other: &CacheRule| {
        !other.for_everyone
            && other.path_prefix.len() >= rule.path_prefix.len()
            && path.may_be_under(&other.path_prefix)
    };
    let for_everyone = rule.for_everyone && !config.cache.iter().any(is_doubtful);
    Some(if for_everyone { Sharing::Everyone } else { Sharing::Admitted })
}

/// The host the request is for: lower case, without port and final dot.
fn host(headers: &HeaderMap) -> Option<String> {
    let authority: http::uri::Authority = headers.get(HOST)?.to_str().ok()?.parse().ok()?;
    let host = authority.host().to_ascii_lowercase();
    Some(host.strip_suffix('.').map_or(host.clone(), str::to_owned))
}
