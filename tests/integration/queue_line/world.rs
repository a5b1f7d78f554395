//! A room on an engine and a clock of the test's own.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use redis::aio::MultiplexedConnection;
use stanchion::{
    clock::{Clock as _, ManualClock},
    queue::{
        Arrival, Past, Place, Policy, Proof, Queue, RankSketch, RoomName, Schedule, Score, SketchKeeper, Snapshot,
        VisitorId,
    },
    store::{Arg, Engine, Script, SharedEngine, StoreError, Value, in_process::InProcess},
};

use crate::support::redis_server::RedisServer;

pub const START_US: u64 = 1_800_000_000_000_000;

pub struct World {
    pub queue: Queue,
    pub clock: ManualClock,
    pub redis: Option<RedisServer>,
}

impl World {
    pub fn in_process() -> Self {
        let clock = ManualClock::at(START_US);
        let engine = InProcess::new(Arc::new(clock.clone()));
        Self { queue: Queue::new(Arc::new(engine), &room()), clock, redis: None }
    }

    pub async fn on_redis() -> Self {
        let redis = RedisServer::start();
        let client = redis::Client::open(redis.url()).unwrap();
        let connection = {
            let patient = redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(30)));
            client.get_multiplexed_async_connection_with_config(&patient).await.unwrap()
        };
        Self { redis: Some(redis), ..Self::over(Arc::new(Patient(connection))) }
    }

    /// On real Redis, by this engine.
    pub fn over(engine: SharedEngine) -> Self {
        let clock = ManualClock::at(START_US);
        let engine = OnOurClock { engine, clock: clock.clone(), scripts: Mutex::default() };
        Self { queue: Queue::new(Arc::new(engine), &room()), clock, redis: None }
    }

    /// The store forgets everything, as after `FLUSHALL`.
    pub fn lose_everything(&mut self) {
        match &self.redis {
            Some(redis) => assert_eq!(redis.command("FLUSHALL"), "+OK\r\n"),
            None => self.queue = Queue::new(Arc::new(InProcess::new(Arc::new(self.clock.clone()))), &room()),
        }
    }

    pub async fn configured(self, policy: Policy) -> Self {
        self.queue.configure(&policy, Past::Blank).await.unwrap();
        self
    }

    pub fn now_ms(&self) -> u64 {
        self.clock.unix_millis()
    }

    /// Time passes while nodes look after the room: in steps of a second, each swept.
    pub async fn pass(&self, duration: Duration) {
        let mut left = duration;
        while !left.is_zero() {
            let step = left.min(Duration::from_secs(1));
            self.clock.advance(step);
            self.queue.sweep().await.unwrap();
            left -= step;
        }
    }

    /// As [`World::pass`], with these visitors polling every 20 s, and at the end.
    pub async fn pass_while_present(&self, duration: Duration, visitors: &[VisitorId]) {
        let entries: Vec<_> = visitors.iter().map(|visitor| (*visitor, never_believed())).collect();
        let mut left = duration;
        while !left.is_zero() {
            let step = left.min(Duration::from_secs(20));
            self.pass(step).await;
            self.queue.seen(&entries).await.unwrap();
            left -= step;
        }
    }

    /// A newcomer who is not let straight in.
    pub async fn wait_in_line(&self, visitor: VisitorId) -> Score {
        score(self.arrive(visitor, None, false).await)
    }

    pub async fn arrive(&self, visitor: VisitorId, proof: Option<Proof>, may_enter: bool) -> Place {
        self.queue.join(&[Arrival { visitor, proof, may_enter }]).await.unwrap()[0]
    }

    /// Where they stand, without changing it: a repeat join of someone in the line only reads, and a join with a
    /// proof that is not believed gives no new place.
    pub async fn look(&self, visitor: VisitorId) -> Place {
        self.look_at(&[visitor]).await[0]
    }

    /// [`World::look`] at many at once.
    pub async fn look_at(&self, visitors: &[VisitorId]) -> Vec<Place> {
        let look = |visitor: &VisitorId| Arrival { visitor: *visitor, proof: Some(never_believed()), may_enter: false };
        self.queue.join(&visitors.iter().map(look).collect::<Vec<_>>()).await.unwrap()
    }

    pub async fn claim(&self, visitor: VisitorId) -> Place {
        self.queue.claim(visitor, None).await.unwrap()
    }

    /// Calls until a run calls nobody. Returns how many were called.
    pub async fn call_all(&self) -> u32 {
        let mut sum = 0;
        loop {
            let run = self.queue.call(50).await.unwrap();
            sum += run.called;
            if run.called == 0 && run.skipped == 0 {
                return sum;
            }
        }
    }

    pub async fn snapshot(&self) -> Snapshot {
        self.queue.snapshot(0).await.unwrap()
    }

    /// What a node knows of the positions once it has measured the line.
    pub async fn sketch(&self) -> Arc<RankSketch> {
        let mut keeper = SketchKeeper::default();
        assert!(self.measure(&mut keeper, 400).await, "never content");
        keeper.sketch()
    }

    /// One look of at most `most` questions. Returns whether the keeper has nothing more to ask.
    pub async fn measure(&self, keeper: &mut SketchKeeper, most: usize) -> bool {
        let mut question = keeper.begin();
        for _ in 0..most {
            match keeper.take(&self.queue.sketch(&question).await.unwrap()) {
                Some(next) => question = next,
                None => return true,
            }
        }
        false
    }
}

/// A roomy policy: stories tighten what they are about.
pub fn policy() -> Policy {
    Policy {
        capacity: 1_000,
        rate: 1_000.0,
        burst: 1_000,
        claim_window: Duration::from_secs(30),
        session_ttl: Duration::from_mins(10),
        absent_after: Duration::from_secs(90),
        grace: Duration::from_mins(5),
        settle: Duration::from_secs(10),
        schedule: Schedule::default(),
    }
}

pub fn room() -> RoomName {
    "main".parse().unwrap()
}

pub fn visitor(number: u32) -> VisitorId {
    VisitorId::from_bits(u128::from(number) + 1)
}

pub fn visitors(numbers: std::ops::Range<u32>) -> Vec<VisitorId> {
    numbers.map(visitor).collect()
}

/// A token of the far future: it was never issued before the present history.
pub fn never_believed() -> Proof {
    Proof { score: Score(1), issued_at_ms: u64::MAX >> 12 }
}

pub fn score(place: Place) -> Score {
    match place {
        Place::Waiting { score, .. } => score,
        other => panic!("not waiting but {other:?}"),
    }
}

pub fn is_inside(place: Place) -> bool {
    matches!(place, Place::Inside { .. })
}

pub fn is_called(place: Place) -> bool {
    matches!(place, Place::Called { .. })
}

/// An engine on real Redis, with `TIME` replaced by the test's clock, which travels as two more keys.
#[derive(Debug)]
struct OnOurClock {
    engine: SharedEngine,
    clock: ManualClock,
    scripts: Mutex<HashMap<&'static str, &'static Script>>,
}

impl OnOurClock {
    fn prepared(&self, script: &'static Script) -> &'static Script {
        let prepare = || -> &'static Script {
            let source = script.source().replace("redis.call('TIME')", "{ KEYS[#KEYS - 1], KEYS[#KEYS] }");
            assert_ne!(source, script.source(), "the script no longer asks for the time as expected");
            Box::leak(Box::new(Script::new(script.file(), source.leak())))
        };
        self.scripts.lock().unwrap().entry(script.file()).or_insert_with(prepare)
    }
}

impl Engine for OnOurClock {
    fn run<'a>(
        &'a self,
        script: &'static Script,
        keys: &'a [String],
        args: Vec<Arg>,
    ) -> BoxFuture<'a, Result<Value, StoreError>> {
        Box::pin(async move {
            let now = self.clock.unix_micros();
            let time = [(now / 1_000_000).to_string(), (now % 1_000_000).to_string()];
            let keys = [keys, &time].concat();
            self.engine.run(self.prepared(script), &keys, args).await
        })
    }
}

/// Real Redis with all the time in the world, so that no story depends on a machine's load.
#[derive(Debug)]
struct Patient(MultiplexedConnection);

impl Engine for Patient {
    fn run<'a>(
        &'a self,
        script: &'static Script,
        keys: &'a [String],
        args: Vec<Arg>,
    ) -> BoxFuture<'a, Result<Value, StoreError>> {
        Box::pin(async move {
            let script_on_redis = redis::Script::new(script.source());
            let mut call = script_on_redis.prepare_invoke();
            for key in keys {
                call.key(key);
            }
            for arg in args {
                call.arg(arg.into_bytes().to_vec());
            }
            let mut connection = self.0.clone();
            let reply: redis::Value = call
                .invoke_async(&mut connection)
                .await
                .map_err(|error| StoreError::Script { script: script.file(), message: error.to_string() })?;
            Ok(value(reply))
        })
    }
}

fn value(reply: redis::Value) -> Value {
    match reply {
        redis::Value::Nil => Value::Nil,
        redis::Value::Int(number) => Value::Int(number),
        redis::Value::BulkString(bytes) => Value::Bulk(bytes.into()),
        redis::Value::Array(values) => Value::Array(values.into_iter().map(value).collect()),
        redis::Value::Okay => Value::Status("OK".to_owned()),
        other => panic!("a reply of no use here: {other:?}"),
    }
}
