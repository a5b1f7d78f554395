//! What is published of a draw, as `draw.json` says it.

use serde::{Deserialize, Serialize};

use super::super::{Method, Mode};

/// A room's draw as everybody may know it, before, in and after it. Times are RFC 3339.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The room's name.
    pub room: String,
    /// The epoch the draw is of.
    pub epoch: u64,
    /// How whoever comes before the opening is ordered.
    pub method: Method,
    /// What the room does.
    pub state: Mode,
    /// When the pre-queue opens.
    pub prequeue_at: Option<String>,
    /// When it ends and the draw begins.
    pub opens_at: Option<String>,
    /// When the room closes.
    pub closes_at: Option<String>,
    /// A nonce, SHA-256 of the seed in hex, and the beacon if there is one: published before anybody comes.
    pub commitment: Option<String>,
    /// The round of a randomness beacon whose output is the public value, as the commitment names it; `None` where the
    /// roster's digest is.
    pub beacon: Option<String>,
    /// How many take part.
    pub roster: u64,
    /// SHA-256 of the roster, hex: published when the pre-queue closed.
    pub roster_digest: Option<String>,
    /// What nobody could know before.
    pub public_value: Option<String>,
    /// The seed, hex: published when everybody drew.
    pub seed: Option<String>,
    /// The Ed25519 public keys that receipts are signed with, URL-safe base64.
    pub receipt_keys: Vec<String>,
}
