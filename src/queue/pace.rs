//! How fast a room admits: what the nodes measured, and what the one among them that holds the lease decides.

use std::{fmt, time::Duration};

use super::{Queue, QueueError, lua};

/// One gateway process, as the nodes of a room know each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u64);

impl NodeId {
    /// A node like no other, for the life of a process.
    pub fn random() -> Self {
        // Below 2^53, so that Lua holds it exactly.
        Self((rand::random::<u64>() >> 12) | 1)
    }

    /// A node with this number, for tests and simulations that must be repeatable. Only its lowest 52 bits count.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits & ((1 << 52) - 1))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What holds for a room's admission now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Most visitors inside, called ones counted. Never more than configured.
    pub capacity: u32,
    /// Most entries per second.
    pub rate: f64,
    /// Most calls per second: from `rate` to twice that, because not everybody who is called comes.
    pub call_rate: f64,
    /// Why, as a number that the store only keeps.
    pub reason: u32,
}

/// What [`Queue::report`] brings back.
#[derive(Debug, Clone, PartialEq)]
pub struct Reported {
    /// Whether it is this node that decides.
    pub holds_lease: bool,
    /// The store's time, milliseconds since the epoch.
    pub now_ms: u64,
    /// Which policy a decision is about: when it was configured, microseconds by the store's clock.
    pub configured_us: u64,
    /// The capacity as configured.
    pub capacity: u32,
    /// The rate as configured, per second.
    pub rate: f64,
    /// What is in force.
    pub pace: Pace,
    /// How many are called and have not shown up yet.
    pub called: u64,
    /// How many hold a live session.
    pub inside: u64,
    /// Visitors ever called, in this history of the store.
    pub called_total: u64,
    /// Visitors ever let in, in this history.
    pub admitted_total: u64,
    /// Calls nobody answered, in this history.
    pub no_shows_total: u64,
    /// What every node reported of late, this one included.
    pub reports: Vec<NodeReport>,
}

/// What one node said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// How long ago, at most ten seconds.
    pub age_ms: u64,
    /// What: the store does not read it.
    pub text: String,
}

impl Queue {
    /// Tells what `node` measured, asks what all did, and takes or keeps the lease for `lease` unless another node holds it.
    pub async fn report(&self, node: NodeId, text: &str, lease: Duration) -> Result<Reported, QueueError> {
        let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        let mut reply = self.run(&lua::REPORT, vec![node.0.into(), text.into(), lease_ms.into()]).await?;
        Ok(Reported {
            holds_lease: reply.number()? == 1,
            now_ms: reply.number()?,
            configured_us: reply.number()?,
            capacity: reply.small()?,
            rate: reply.fraction()?,
            pace: Pace {
                capacity: reply.small()?,
                rate: reply.fraction()?,
                call_rate: reply.fraction()?,
                reason: reply.small()?,
            },
            called: reply.number()?,
            inside: reply.number()?,
            called_total: reply.number()?,
            admitted_total: reply.number()?,
            no_shows_total: reply.number()?,
            reports: {
                let mut reports = Vec::new();
                while !reply.is_empty() {
                    reports.push(NodeReport { age_ms: reply.number()?, text: reply.text()? });
                }
                reports
            },
        })
    }

    /// Puts `pace` into force, if `node` still holds the lease and the policy is still the one of `configured_us`. Returns
    /// whether it did. A capacity above the configured one counts as that.
    pub async fn decide(&self, node: NodeId, configured_us: u64, pace: Pace) -> Result<bool, QueueError> {
        let args = vec![
            node.0.into(),
            configured_us.into(),
            pace.capacity.into(),
            pace.rate.to_string().into(),
            pace.call_rate.to_string().into(),
            pace.reason.into(),
        ];
        Ok(self.run(&lua::DECIDE, args).await?.number()? == 1)
    }
}
