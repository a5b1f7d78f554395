//! The roster on every node: whichever the operator asks has it, also when the store lost it since.

use std::sync::atomic::Ordering;

use super::{LiveRoom, draw::READ_AT_ONCE};
use crate::queue::{Draw, QueueError, Score, lottery::RosterDigest};

impl LiveRoom {
    /// Writes a roster down that another node closed. Tried once: what the store lost before that, this node never had.
    pub(super) async fn copy_the_roster(&self, epoch: u64, draw: &Draw) -> Result<(), QueueError> {
        let Some(published) = draw.digest.as_deref() else { return Ok(()) };
        if self.notes.is_none() || self.copied_epoch.load(Ordering::Relaxed) == epoch {
            return Ok(());
        }
        if self.kept_roster().await.is_none() {
            let (mut digest, mut after, mut page) = (RosterDigest::new(), Score(0), self.begin_roster(epoch).await);
            loop {
                let stretch = self.queue.roster(after, READ_AT_ONCE).await?;
                let Some(&(_, last)) = stretch.last() else { break };
                page.add(&stretch).await;
                for &(visitor, arrival) in &stretch {
                    digest.add(visitor, arrival);
                }
                after = last;
            }
            if digest.finish() == published {
                page.keep().await;
            }
        }
        self.copied_epoch.store(epoch, Ordering::Relaxed);
        Ok(())
    }
}
