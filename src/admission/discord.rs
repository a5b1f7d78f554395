//! What the gateways of one room do not agree about. Nothing of it stops a sale, and all of it spoils one: so the operator
//! hears of it when it begins, and finds it with the room for as long as it lasts.

use std::{fmt, sync::Arc};

use ring::digest;

use super::LiveRoom;
use crate::{config::RoomConfig, queue::pace::NodeReport, tokens::Keyring};

/// A report that is older may be of a node that was stopped, milliseconds.
const FRESH_MS: u64 = 3_000;

/// What others may know of a node's settings: the ids of its keys, which every token shows, and a digest of the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fingerprint {
    keys: Vec<String>,
    settings: String,
}

impl Fingerprint {
    /// Of a node with these keys and settings.
    pub(super) fn of(keyring: &Keyring, config: &RoomConfig) -> Self {
        // What decides who is let in and how long they stay; not what each node may have for itself, such as its origin.
        let RoomConfig { policy, adaptive, session_cap, queue_token_ttl, .. } = config;
        let text = format!("{policy:?} {adaptive:?} {session_cap:?} {queue_token_ttl:?}");
        let hash = digest::digest(&digest::SHA256, text.as_bytes());
        let settings = hash.as_ref().iter().take(8).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        Self { keys: keyring.ids(), settings }
    }

    /// Reads what another node wrote; `None` when it is of another form.
    fn read(text: &str) -> Option<Self> {
        let (keys, settings) = text.split_once(' ')?;
        Some(Self { keys: keys.split(',').map(str::to_owned).collect(), settings: settings.to_owned() })
    }

    fn shares_a_key_with(&self, other: &Self) -> bool {
        self.keys.iter().any(|key| other.keys.contains(key))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.keys.join(","), self.settings)
    }
}

const OTHER_KEYS: &str = "another gateway of this room signs with other keys: visitors that one of them queued or let in are \
     strangers to the other. Give all gateways the same key file or STANCHION_KEYS, and start them again.";
const OTHER_SETTINGS: &str = "another gateway has other settings for this room (capacity, rate, times, method and the like): those of \
     whichever started last hold. Give all gateways the same configuration, and start them again.";

impl LiveRoom {
    /// What is wrong between the gateways of this room, each with its cure, as the node knows since a few seconds.
    pub fn warnings(&self) -> Arc<Vec<String>> {
        self.warnings.load_full()
    }

    /// Takes in what all nodes say of themselves, and warns of what is new.
    pub(super) fn compare(&self, own: &Fingerprint, reports: &[NodeReport]) {
        let mut now = discord(own, reports);
        now.extend(self.other_beacon());
        let before = self.warnings();
        if *before == now {
            return;
        }
        for warning in now.iter().filter(|warning| !before.contains(warning)) {
            tracing::warn!(room = %self.name(), "{warning}");
        }
        if now.is_empty() {
            tracing::info!(room = %self.name(), "the gateways of this room agree again");
        }
        self.warnings.store(Arc::new(now));
    }

    /// The commitment was made with another beacon than this node is configured with.
    fn other_beacon(&self) -> Option<String> {
        let view = self.view();
        let draw = view.snapshot.draw.as_ref()?;
        draw.commitment.as_ref()?;
        let (committed, configured) = (draw.beacon(), self.config.beacon.as_deref());
        let named = |beacon: Option<&str>| beacon.map_or("no beacon".to_owned(), |beacon| format!("beacon {beacon:?}"));
        (committed != configured).then(|| {
            format!(
                "the draw's commitment names {}, this gateway's configuration {}: what was committed to holds. Configure the \
                 same on all gateways; another beacon takes a reset, before the opening.",
                named(committed),
                named(configured)
            )
        })
    }
}

fn discord(own: &Fingerprint, reports: &[NodeReport]) -> Vec<String> {
    let fresh = reports.iter().filter(|report| report.age_ms <= FRESH_MS);
    let others: Vec<_> = fresh.filter_map(|report| Fingerprint::read(report.text.lines().nth(1)?)).collect();
    let mut said = Vec::new();
    if others.iter().any(|other| !own.shares_a_key_with(other)) {
        said.push(OTHER_KEYS.to_owned());
    }
    if others.iter().any(|other| other.settings != own.settings) {
        said.push(OTHER_SETTINGS.to_owned());
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_need_one_key_in_common_and_the_same_settings() {
        let node = |keys: &[&str], settings: &str| Fingerprint {
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            settings: settings.to_owned(),
        };
        let said = |age_ms, print: &Fingerprint| NodeReport { age_ms, text: format!("1 2000 0 0 -\n{print}") };
        let own = node(&["new", "old"], "a");
        assert_eq!(Fingerprint::read(&own.to_string()), Some(own.clone()));
        assert_eq!(discord(&own, &[said(0, &own), said(10, &node(&["older", "old"], "a"))]), Vec::<String>::new());
        assert_eq!(discord(&own, &[said(10, &node(&["other"], "a"))]), [OTHER_KEYS]);
        assert_eq!(discord(&own, &[said(10, &node(&["new"], "b"))]), [OTHER_SETTINGS]);
        let stopped = said(FRESH_MS + 1, &node(&["other"], "b"));
        let strange = NodeReport { age_ms: 0, text: "2 x".to_owned() };
        assert_eq!(discord(&own, &[stopped, strange]), Vec::<String>::new());
    }
}
