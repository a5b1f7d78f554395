//! The background tasks of a room. An error of the store ends none of them: it is logged once, and they go on.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::yield_now,
    time::{MissedTickBehavior, interval},
};

use super::{LiveRoom, flow::FlowMeter, view::View};
use crate::{
    queue::{Place, Proof, Queue, VisitorId, scripts},
    shutdown::Shutdown,
    store::StoreError,
};

/// Most visitors one run of `call` takes, so that no script holds the store up for long.
const CALL_AT_ONCE: u32 = 50;

/// Most runs of `call` in a row; what is left is for the next tick.
const CALLS_IN_A_ROW: u32 = 20;

/// What one task does, over and over.
#[derive(Debug)]
enum Duty {
    /// Calls whoever is next.
    Call,
    /// Takes a snapshot.
    Look(FlowMeter),
    /// Removes what ran out.
    Sweep,
    /// Tells the store who is present.
    Report,
}

pub(super) fn start(room: &Arc<LiveRoom>, shutdown: &Shutdown) {
    for duty in [Duty::Call, Duty::Look(FlowMeter::default()), Duty::Sweep, Duty::Report] {
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
            Self::Look(_) => 250,
            Self::Sweep | Self::Report => 1_000,
        })
    }

    async fn run(&mut self, room: &LiveRoom) -> Result<(), StoreError> {
        match self {
            Self::Call => room.call_the_next().await,
            Self::Look(meter) => room.look(meter).await,
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
            yield_now().await;
        }
        Ok(())
    }

    async fn look(&self, meter: &mut FlowMeter) -> Result<(), StoreError> {
        let asked_at_micros = self.clock.unix_micros();
        let snapshot = self.queue.snapshot().await?;
        if snapshot.since_ms != self.view().snapshot.since_ms {
            tracing::warn!(room = %self.name(), "the store has another history: places and sessions register again");
            self.registered.clear();
            self.expired.clear();
        }
        let flow = meter.update(&snapshot);
        self.set_view(View { snapshot, asked_at_micros, flow });
        Ok(())
    }

    /// Reports everybody noted since the last time, a hundred a run, one run after the other. Whoever waits polls at
    /// least every 15 s, so that a million on this node are some 700 runs a second. Between two runs the store serves
    /// others; so does this thread, which the in-process engine would never leave.
    async fn report_present(&self) -> Result<(), StoreError> {
        let seen = self.presence.take();
        let mut batches = seen.chunks(scripts::BATCH);
        while let Some(batch) = batches.next() {
            match self.queue.seen(batch).await {
                Ok(places) => {
                    self.remember_who_has_no_place(batch, &places);
                    yield_now().await;
                }
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
