//! The background tasks of a room. An error of the store ends none of them: it is logged once, and they go on.

use std::{sync::Arc, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

use super::{LiveRoom, flow::FlowMeter, view::View};
use crate::{
    queue::{Place, Proof, Queue, SketchKeeper, Snapshot, VisitorId},
    shutdown::Shutdown,
    store::StoreError,
};

/// Most visitors one run of `call` or one batch of `seen` takes, so that no script holds the store up for long.
const CALL_AT_ONCE: u32 = 50;
const SEEN_AT_ONCE: usize = 500;

/// Most runs of `call` in a row; what is left is for the next tick.
const CALLS_IN_A_ROW: u32 = 20;

/// Most questions about the line at one look, each about a third of a millisecond of the store. A million are known
/// in 27 looks, seven seconds.
const QUESTIONS_AT_ONCE: u32 = 8;

/// What one task does, over and over.
#[derive(Debug)]
enum Duty {
    /// Calls whoever is next.
    Call,
    /// Takes a snapshot and measures the line.
    Look(FlowMeter, SketchKeeper),
    /// Removes what ran out.
    Sweep,
    /// Tells the store who is present.
    Report,
}

pub(super) fn start(room: &Arc<LiveRoom>, shutdown: &Shutdown) {
    for duty in [Duty::Call, Duty::Look(FlowMeter::default(), SketchKeeper::default()), Duty::Sweep, Duty::Report] {
        shutdown.spawn(keep(Arc::clone(room), duty, shutdown.clone()));
    }
}

async fn keep(room: Arc<LiveRoom>, mut duty: Duty, shutdown: Shutdown) {
    let mut ticks = interval(duty.every());
    // After a stall there is nothing to catch up with: the store knows what is due.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.stopped() => break,
            _ = ticks.tick() => {}
        }
        // While the store is away the notes of who is present are kept: they rebuild the line if it comes back empty.
        if matches!(duty, Duty::Report) && room.is_away() {
            continue;
        }
        match duty.run(&room).await {
            Ok(()) => room.store_answered(),
            Err(error) if Queue::is_unconfigured(&error) => room.configure_again().await,
            Err(error) => room.store_failed(&error),
        }
    }
}

impl Duty {
    fn every(&self) -> Duration {
        Duration::from_millis(match self {
            Self::Call => 100,
            Self::Look(..) => 250,
            Self::Sweep | Self::Report => 1_000,
        })
    }

    async fn run(&mut self, room: &LiveRoom) -> Result<(), StoreError> {
        match self {
            Self::Call => room.call_the_next().await,
            Self::Look(meter, keeper) => room.look(meter, keeper).await,
            Self::Sweep => room.queue.sweep().await.map(drop),
            Self::Report => room.report_present().await,
        }
    }
}

impl LiveRoom {
    async fn call_the_next(&self) -> Result<(), StoreError> {
        for _ in 0..CALLS_IN_A_ROW {
            if self.queue.call(CALL_AT_ONCE).await?.called < CALL_AT_ONCE {
                break;
            }
        }
        Ok(())
    }

    async fn look(&self, meter: &mut FlowMeter, keeper: &mut SketchKeeper) -> Result<(), StoreError> {
        let asked_at_micros = self.clock.unix_micros();
        let snapshot = self.queue.snapshot().await?;
        if snapshot.since_ms != self.view().snapshot.since_ms {
            tracing::warn!(room = %self.name(), "the store has another history: places and sessions register again");
            self.registered.clear();
            self.expired.clear();
        }
        let flow = meter.update(&snapshot);
        let measured = self.measure(keeper, &snapshot).await;
        self.set_view(View { snapshot, sketch: keeper.sketch(), asked_at_micros, flow });
        measured
    }

    async fn measure(&self, keeper: &mut SketchKeeper, snapshot: &Snapshot) -> Result<(), StoreError> {
        // What is measured while lost places come back would be too low.
        if snapshot.is_settling() {
            keeper.reset();
            return Ok(());
        }
        let mut question = keeper.begin();
        for _ in 0..QUESTIONS_AT_ONCE {
            match keeper.take(&self.queue.sketch(&question).await?) {
                Some(next) => question = next,
                None => break,
            }
        }
        Ok(())
    }

    /// Reports everybody noted since the last time.
    async fn report_present(&self) -> Result<(), StoreError> {
        let seen = self.presence.take();
        let mut batches = seen.chunks(SEEN_AT_ONCE);
        while let Some(batch) = batches.next() {
            match self.queue.seen(batch).await {
                Ok(places) => self.remember_who_has_no_place(batch, &places),
                Err(error) => {
                    for (visitor, proof) in batch.iter().chain(batches.flatten()) {
                        self.presence.note(*visitor, *proof);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn remember_who_has_no_place(&self, batch: &[(VisitorId, Proof)], places: &[Place]) {
        let now_ms = self.now_ms();
        for ((visitor, _), place) in batch.iter().zip(places) {
            if *place == Place::None {
                self.has_no_place(*visitor, now_ms);
            }
        }
    }

    /// The store forgot the room: flushed, restarted or failed over. Places and sessions of before may exist.
    async fn configure_again(&self) {
        tracing::warn!(room = %self.name(), "the store lost the room: it is set up again");
        match self.queue.configure(&self.config.policy, self.config.settle).await {
            Ok(()) => {}
            Err(error) => self.store_failed(&error),
        }
    }
}
