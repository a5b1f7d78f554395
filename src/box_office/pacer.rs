//! Calls to the payment provider take turns, so that all box offices together keep to its limit.
//!
//! Whoever wants to call gets a turn first and claims work afterwards: waiting costs neither a lease nor a worker's slot,
//! and the queue is the ledger's outbox. A script in the store hands the turns out, evenly spaced, so nodes on one store
//! share one limit without knowing of each other. While the store is away each node keeps to the limit by itself.
//!
//! A node that has nothing to do keeps one turn ready, so that looking for work costs no round trip. A `429` makes a node
//! wait with everything, not only with the call that got it.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::store::{Arg, Script, SharedEngine, StoreError, Value};

/// Must go on when the store's memory is full: it finishes what holds began.
static PACE: Script =
    Script::new("pace-1.lua", concat!("#!lua flags=allow-oom\n", include_str!("../../lua/pace-1.lua")));

/// Turns taken together last no longer than this: so much is lost of them when there is less to do than was thought.
const BATCH: Duration = Duration::from_millis(250);
/// A provider may ask for more, and is asked again then.
pub const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Hands out turns. `None` per second: without limit, but for the provider's own "not now".
#[derive(Debug)]
pub struct Pacer {
    engine: SharedEngine,
    keys: [String; 1],
    /// Time between two calls.
    gap: Option<Duration>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    paused_until: Instant,
    /// A turn that came and was not used.
    ready: bool,
    /// How many turns to take next time: more while all are used.
    stride: u32,
    /// When the next turn is, as long as the store does not say.
    alone: Instant,
}

/// Calls that may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    /// How many; perhaps none.
    pub calls: u32,
    gap: Duration,
}

impl Turns {
    const NONE: Self = Self { calls: 0, gap: Duration::ZERO };

    /// How long from now call number `nth`, counted from 0, may be made.
    pub fn after(self, nth: u32) -> Duration {
        self.gap.saturating_mul(nth)
    }
}

impl Pacer {
    /// A pacer for the provider at `authority` (`HOST:PORT`). Equal ones on one store share `per_second`.
    pub fn new(engine: SharedEngine, authority: &str, per_second: Option<f64>) -> Self {
        let now = Instant::now();
        Self {
            engine,
            keys: [key(authority)],
            gap: per_second.map(|calls| Duration::from_secs_f64(calls.recip())),
            state: Mutex::new(State { paused_until: now, ready: false, stride: 1, alone: now }),
        }
    }

    /// Waits for turns, at most `most`; none when the first would take longer than `patience`.
    pub async fn turns(&self, most: u32, patience: Duration) -> Turns {
        let until = Instant::now() + patience;
        loop {
            let paused_until = self.state().paused_until;
            if paused_until > until {
                return Turns::NONE;
            }
            tokio::time::sleep_until(paused_until).await;
            let Some(gap) = self.gap else { return Turns { calls: most, gap: Duration::ZERO } };
            let wanted = {
                let mut state = self.state();
                if std::mem::take(&mut state.ready) {
                    return Turns { calls: 1, gap };
                }
                state.stride.min(most)
            };
            let left = until.saturating_duration_since(Instant::now());
            let Some(wait) = self.reserve(wanted, gap, left).await else { return Turns::NONE };
            sleep(wait).await;
            let mut state = self.state();
            if state.paused_until <= Instant::now() {
                return Turns { calls: wanted, gap };
            }
            state.ready = true;
        }
    }

    /// Tells how many of `turns` were needed.
    pub fn used(&self, turns: Turns, calls: usize) {
        let Some(gap) = self.gap else { return };
        let mut state = self.state();
        if calls < turns.calls as usize {
            state.ready = true;
            state.stride = 1;
        } else {
            let most = BATCH.as_micros() / gap.as_micros().max(1);
            let most = u32::try_from(most).unwrap_or(u32::MAX).max(1);
            state.stride = state.stride.saturating_mul(2).min(most);
        }
    }

    /// The provider said "not now": no call for that long, a minute at most.
    pub fn pause(&self, duration: Duration) {
        let until = Instant::now() + duration.min(LONGEST_PAUSE);
        let mut state = self.state();
        state.paused_until = state.paused_until.max(until);
    }

    /// How long until the first of `turns`; `None` when that is longer than `patience`.
    async fn reserve(&self, turns: u32, gap: Duration, patience: Duration) -> Option<Duration> {
        let args = vec![turns.into(), micros(gap), micros(patience)];
        let reply = self.engine.run(&PACE, &self.keys, args).await;
        match reply.and_then(|reply| read(&reply)) {
            Ok((given, wait)) => given.then_some(wait),
            Err(error) => {
                tracing::warn!(%error, "the store cannot pace calls to the provider; this node does so by itself");
                self.reserve_alone(turns, gap, patience)
            }
        }
    }

    fn reserve_alone(&self, turns: u32, gap: Duration, patience: Duration) -> Option<Duration> {
        let now = Instant::now();
        let mut state = self.state();
        let first = state.alone.max(now);
        let wait = first.saturating_duration_since(now);
        if wait > patience {
            return None;
        }
        state.alone = first + gap.saturating_mul(turns);
        Some(wait)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the store keeps the next turn of a provider. No event in it: events share their provider's limit.
fn key(authority: &str) -> String {
    format!("stanchion-box:{{pay:{authority}}}:pace")
}

fn micros(duration: Duration) -> Arg {
    Arg::Int(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}

fn read(reply: &Value) -> Result<(bool, Duration), StoreError> {
    let parts = match reply {
        Value::Array(parts) => match parts.as_slice() {
            [Value::Int(given), Value::Int(wait)] => u64::try_from(*wait).ok().map(|wait| (*given > 0, wait)),
            _ => None,
        },
        _ => None,
    };
    let (given, wait) = parts
        .ok_or_else(|| StoreError::Script { script: PACE.file(), message: format!("unexpected reply {reply:?}") })?;
    Ok((given, Duration::from_micros(wait)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::future::BoxFuture;

    use super::*;
    use crate::{
        clock::{ManualClock, SharedClock},
        store::{Engine, in_process::InProcess},
    };

    const PATIENCE: Duration = Duration::from_secs(30);

    fn millis(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    /// Two nodes on one store, ten calls a second, and the store's clock, which the tests keep in step with tokio's.
    fn nodes() -> ([Pacer; 2], ManualClock) {
        let clock = ManualClock::at(1_700_000_000_000_000);
        let shared: SharedClock = Arc::new(clock.clone());
        let engine: SharedEngine = Arc::new(InProcess::new(shared));
        ([0, 1].map(|_| Pacer::new(Arc::clone(&engine), "127.0.0.1:8082", Some(10.0))), clock)
    }

    async fn wait_for(pacer: &Pacer, patience: Duration) -> Option<Duration> {
        pacer.reserve(1, millis(100), patience).await
    }

    #[test]
    fn key_bytes() {
        assert_eq!(key("127.0.0.1:8082"), "stanchion-box:{pay:127.0.0.1:8082}:pace");
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_share_one_evenly_spaced_row_of_turns() {
        let ([one, other], clock) = nodes();
        for turn in 0..4 {
            assert_eq!(wait_for(&one, PATIENCE).await, Some(millis(200 * turn)));
            assert_eq!(wait_for(&other, PATIENCE).await, Some(millis(200 * turn + 100)));
        }
        // Whoever would not wait takes no turn from the others.
        assert_eq!(wait_for(&other, millis(799)).await, None);
        assert_eq!(wait_for(&other, millis(800)).await, Some(millis(800)));
        // Nothing is saved up, and nothing is owed for ever.
        clock.advance(Duration::from_hours(1));
        assert_eq!(wait_for(&one, Duration::ZERO).await, Some(Duration::ZERO));
        assert_eq!(wait_for(&other, PATIENCE).await, Some(millis(100)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_node_keeps_one_turn_and_a_busy_one_takes_more_at_a_time() {
        let ([one, _], clock) = nodes();
        let first = one.turns(16, PATIENCE).await;
        assert_eq!(first.calls, 1);
        one.used(first, 0);
        for _ in 0..10 {
            let turns = one.turns(16, Duration::ZERO).await;
            assert_eq!(turns.calls, 1, "kept from before");
            one.used(turns, 0);
        }
        clock.advance(Duration::from_secs(1));
        let turns = one.turns(16, PATIENCE).await;
        one.used(turns, 1);
        let turns = one.turns(16, PATIENCE).await;
        // As many as a quarter of a second holds at this limit.
        assert_eq!((turns.calls, turns.after(1)), (2, millis(100)));
        assert_eq!(one.turns(1, PATIENCE).await.calls, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn not_now_holds_up_everything_for_a_bounded_time() {
        let ([limited, _], _) = nodes();
        let unlimited = Pacer::new(Arc::new(Away), "127.0.0.1:8082", None);
        for pacer in [limited, unlimited] {
            let start = Instant::now();
            pacer.pause(Duration::from_secs(5));
            pacer.pause(Duration::from_secs(1));
            assert_eq!(pacer.turns(1, Duration::from_secs(4)).await, Turns::NONE);
            assert_eq!(pacer.turns(1, PATIENCE).await.calls, 1);
            assert!(start.elapsed() >= Duration::from_secs(5) && start.elapsed() < Duration::from_secs(6));
            pacer.pause(Duration::from_hours(1));
            assert_eq!(pacer.turns(1, Duration::from_mins(2)).await.calls, 1);
            assert!(start.elapsed() < Duration::from_secs(67));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_the_store_a_node_paces_itself() {
        let pacer = Pacer::new(Arc::new(Away), "127.0.0.1:8082", Some(10.0));
        let start = Instant::now();
        for _ in 0..20 {
            let turns = pacer.turns(1, PATIENCE).await;
            pacer.used(turns, 1);
        }
        assert!((1_900..2_000).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
        assert_eq!(pacer.turns(1, Duration::ZERO).await, Turns::NONE);
    }

    #[derive(Debug)]
    struct Away;

    impl Engine for Away {
        fn run<'a>(
            &'a self,
            _: &'static Script,
            _: &'a [String],
            _: Vec<Arg>,
        ) -> BoxFuture<'a, Result<Value, StoreError>> {
            Box::pin(async { Err(StoreError::Unavailable("away".to_owned())) })
        }
    }
}
