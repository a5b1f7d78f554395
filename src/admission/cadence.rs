//! How often a node does what for each room, and one round of calls: what a node does and what a simulation of it does
//! are the same steps.

use std::time::Duration;

use crate::queue::{Queue, QueueError, scripts::Called};

/// How often whoever is next is called.
pub const CALL_EVERY: Duration = Duration::from_millis(100);
/// How often what ran out is removed.
pub const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Most visitors one run of `call` takes, so that no script holds the store up for long.
const CALL_AT_ONCE: u32 = 50;
/// Most runs of `call` in a row; what is left is for the next round.
const CALLS_IN_A_ROW: u32 = 20;

/// Calls whoever is next, as capacity and rate allow. Returns what all runs together did.
pub async fn call_the_next(queue: &Queue) -> Result<Called, QueueError> {
    let mut round = Called::default();
    for _ in 0..CALLS_IN_A_ROW {
        let run = queue.call(CALL_AT_ONCE).await?;
        round.called += run.called;
        round.skipped += run.skipped;
        if run.called < CALL_AT_ONCE {
            break;
        }
    }
    Ok(round)
}
