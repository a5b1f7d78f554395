//! How often the provider misbehaved, since it was started.

use serde::Serialize;

/// Counts of what went wrong on purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Tally {
    pub(super) calls_failed: u64,
    pub(super) calls_busy: u64,
    pub(super) calls_over_limit: u64,
    pub(super) calls_stalled: u64,
    pub(super) calls_dropped: u64,
    pub(super) webhooks_lost: u64,
    pub(super) webhooks_late: u64,
    pub(super) webhooks_reordered: u64,
    pub(super) webhooks_duplicated: u64,
    pub(super) webhooks_forged: u64,
    /// Forged webhooks that were answered with success: each is a hole in the receiver.
    pub(super) forgeries_believed: u64,
}
