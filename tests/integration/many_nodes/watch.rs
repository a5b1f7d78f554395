//! Looks at the room in Redis, over and over, for as long as a story lasts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redis::aio::MultiplexedConnection;
use tokio::task::JoinHandle;

use super::nodes::{BURST, CAPACITY, RATE};

/// One look, at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub at_us: u64,
    pub called: u64,
    pub inside: u64,
    pub called_total: u64,
    pub admitted_total: u64,
}

pub struct Watch {
    done: Arc<AtomicBool>,
    task: JoinHandle<Vec<Look>>,
}

const LOOK: &str = "local t = redis.call('TIME')
local function total(name) return tonumber(redis.call('HGET', KEYS[3], name) or '0') end
return { t[1] * 1000000 + t[2], redis.call('ZCARD', KEYS[1]), redis.call('ZCARD', KEYS[2]), total('called_total'),
  total('admitted_total') }";

impl Watch {
    pub async fn begin(url: &str) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let mut connection = connect(url).await;
        let stop = Arc::clone(&done);
        let task = tokio::spawn(async move {
            let mut looks = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                // A Redis that is down or empty shows nothing.
                if let Some(look) = look(&mut connection).await {
                    looks.push(look);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            looks
        });
        Self { done, task }
    }

    pub async fn end(self) -> Looks {
        self.done.store(true, Ordering::Relaxed);
        let looks = self.task.await.unwrap();
        assert!(looks.len() > 100, "only {} looks: this watched nothing", looks.len());
        Looks(looks)
    }
}

pub async fn connect(url: &str) -> MultiplexedConnection {
    redis::Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap()
}

async fn look(connection: &mut MultiplexedConnection) -> Option<Look> {
    let keys = ["stanchion:{main}:called", "stanchion:{main}:inside", "stanchion:{main}:state"];
    let (at_us, called, inside, called_total, admitted_total) =
        redis::cmd("EVAL").arg(LOOK).arg(3).arg(&keys).query_async(connection).await.ok()?;
    Some(Look { at_us, called, inside, called_total, admitted_total })
}

pub struct Looks(pub Vec<Look>);

impl Looks {
    /// G1, at every look.
    pub fn capacity_held(&self) {
        for look in &self.0 {
            assert!(look.called + look.inside <= CAPACITY, "over the capacity of {CAPACITY}: {look:?}");
        }
        let most = self.0.iter().map(|look| look.called + look.inside).max().unwrap();
        assert!(most > CAPACITY / 2, "at most {most} were called or inside: the capacity was never put to the test");
    }

    /// G2, in every window of at most a tenth of a second, and from each look to the end.
    pub fn rate_held(&self) {
        for (from, first) in self.0.iter().enumerate() {
            let soon = self.0[from..].iter().take_while(|look| look.at_us - first.at_us <= 100_000);
            for last in soon.chain(self.0.last()) {
                let micros = last.at_us - first.at_us;
                let admitted = last.admitted_total - first.admitted_total;
                let most = |rate: u64| BURST + (rate * micros).div_ceil(1_000_000);
                assert!(admitted <= most(RATE), "{admitted} in {micros} us from {first:?} to {last:?}");
                // No-shows may raise the pace of calls, at most to twice.
                let called = last.called_total - first.called_total;
                assert!(called <= most(2 * RATE), "{called} called in {micros} us from {first:?}");
            }
        }
    }
}
