//! The background tasks of a room. An error of the store ends none of them: it is logged once, and they go on.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::yield_now,
    time::{MissedTickBehavior, interval},
};

use super::{
    LiveRoom, cadence, draw,
    flow::{Flow, FlowMeter},
    steering::{REPORT_EVERY, Steering},
    view::View,
};
use crate::{
    queue::{Past, Place, Proof, QueueError, SketchKeeper, Snapshot, VisitorId, scripts},
    shutdown::Shutdown,
};

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
    /// Tells the store who ended while it was away, and who is present.
    Report,
    /// Draws the order of those who came before the opening.
    Draw,
    /// Reports what this node sees of the shop, and perhaps decides about the pace.
    Steer(Box<Steering>),
}

pub(super) fn start(room: &Arc<LiveRoom>, shutdown: &Shutdown) {
    let steer = Duty::Steer(Box::new(Steering::new(Arc::clone(&room.meter))));
    let look = Duty::Look(FlowMeter::default(), SketchKeeper::default());
    for duty in [Duty::Call, look, Duty::Sweep, Duty::Report, Duty::Draw, steer] {
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
        // Neither those nor the draw ask the store every time, so they cannot tell that it is back.
        if matches!(duty, Duty::Report | Duty::Draw) && room.is_away() {
            continue;
        }
        match duty.run(&room).await {
            Ok(()) => room.store_answered(),
            Err(QueueError::NotConfigured(_)) => room.configure_again().await,
            Err(error) => room.store_failed(&error),
        }
    }
}

impl Duty {
    fn every(&self) -> Duration {
        match self {
            Self::Call => cadence::CALL_EVERY,
            Self::Look(..) | Self::Draw => Duration::from_millis(250),
            Self::Sweep => cadence::SWEEP_EVERY,
            Self::Report => Duration::from_secs(1),
            Self::Steer(_) => REPORT_EVERY,
        }
    }

    async fn run(&mut self, room: &LiveRoom) -> Result<(), QueueError> {
        match self {
            Self::Call => cadence::call_the_next(&room.queue).await.map(drop),
            Self::Look(meter, keeper) => room.look(meter, keeper).await,
            Self::Sweep => room.queue.sweep().await.map(drop),
            Self::Report => {
                // First: who is gone is not to be brought back by an old poll of theirs.
                room.tell_who_ended().await?;
                room.report_present().await
            }
            Self::Draw => room.go_on_with_the_draw().await,
            Self::Steer(steering) => room.steer(steering).await,
        }
    }
}

impl LiveRoom {
    async fn look(&self, meter: &mut FlowMeter, keeper: &mut SketchKeeper) -> Result<(), QueueError> {
        let mut view = self.fresh_view().await?;
        view.flow = meter.update(&view.snapshot);
        let measured = self.measure(keeper, &view.snapshot).await;
        view.sketch = keeper.sketch_in(view.snapshot.since_ms, view.snapshot.epoch);
        self.set_view(view);
        measured
    }

    /// What the store says now, cured of what it lost. Without positions, and with the pace of before.
    pub(super) async fn fresh_view(&self) -> Result<View, QueueError> {
        let before = self.view();
        let ended_until = before.snapshot.ended_until;
        let mut asked_at_micros = self.clock.unix_micros();
        let mut snapshot = self.queue.snapshot(ended_until).await?;
        if snapshot.epoch < before.snapshot.epoch {
            // The store lost the room, and a node that did not know the epoch set it up again.
            self.queue.configure(&self.config.policy, Past::Seen(&before.snapshot)).await?;
            asked_at_micros = self.clock.unix_micros();
            snapshot = self.queue.snapshot(ended_until).await?;
        }
        if let Some(known) = &before.snapshot.draw {
            draw::publish_again(&self.queue, &mut snapshot, before.snapshot.epoch, known).await?;
        }
        // Before anybody sees it.
        self.write_down(&snapshot).await;
        self.sessions_ended(&snapshot.ended);
        self.write_down_ended(&snapshot.ended).await;
        self.notice_history(&snapshot, &before.snapshot);
        let draws = self.draws(&snapshot, &before);
        let flow = if snapshot.epoch == before.snapshot.epoch { before.flow } else { Flow::default() };
        Ok(View { snapshot, sketch: Arc::default(), asked_at_micros, flow, draws })
    }

    /// Forgets what was true of another history of the store.
    fn notice_history(&self, snapshot: &Snapshot, before: &Snapshot) {
        if snapshot.since_ms == before.since_ms {
            return;
        }
        if snapshot.epoch == before.epoch {
            tracing::warn!(room = %self.name(), "the store has another history: places and sessions register again");
            self.tell_again_who_ended();
        } else {
            tracing::info!(room = %self.name(), epoch = snapshot.epoch, "another epoch: everybody joins anew");
        }
        self.registered.clear();
        self.expired.clear();
    }

    async fn measure(&self, keeper: &mut SketchKeeper, snapshot: &Snapshot) -> Result<(), QueueError> {
        // What is measured while lost places come back, or before everybody drew, would be too low.
        if snapshot.is_settling() || snapshot.has_draw_ahead() {
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

    /// Reports everybody noted since the last time, a hundred a run, one run after the other. Whoever waits polls at
    /// least every 15 s, so that a million on this node are some 700 runs a second. Between two runs the store serves
    /// others; so does this thread, which the in-process engine would never leave.
    async fn report_present(&self) -> Result<(), QueueError> {
        let seen = self.presence.take();
        let mut batches = seen.chunks(scripts::BATCH);
        while let Some(batch) = batches.next() {
            match self.queue.seen(batch).await {
                Ok(places) => {
                    self.remember_who_has_no_place(batch, &places);
                    yield_now().await;
                }
                // A reset: none of them has a place any more.
                Err(QueueError::OtherEpoch(_)) => return self.look_again().await,
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
        let before = self.view();
        if let Err(error) = self.queue.configure(&self.config.policy, Past::Seen(&before.snapshot)).await {
            self.store_failed(&error);
        }
    }
}
