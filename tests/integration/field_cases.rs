//! What went wrong in other waiting rooms, played against whole nodes with the settings of an empty configuration file.
//! Time is paused where nothing is sent, so that minutes of absence pass at once.

mod line;
mod sessions;

use std::{sync::Arc, time::Duration};

use stanchion::{
    admission::{LiveRoom, Standing, Turn},
    config::{Overrides, RoomConfig, ServeConfig},
    queue::{Place, Proof, Queue, Score, Snapshot},
    shutdown::Shutdown,
    store::SharedEngine,
    tokens::{Claims, Keyring},
};
use tokio::time::{Instant, sleep};

use crate::support::node::{TokioClock, keyring, node, store};

/// Several nodes over one store in this process, all on tokio's clock.
struct Town {
    nodes: Vec<Arc<LiveRoom>>,
    queue: Queue,
    engine: SharedEngine,
    clock: TokioClock,
    keyring: Keyring,
    shutdown: Shutdown,
}

impl Town {
    /// Nodes with the settings of somebody who gave none but what `change` does.
    async fn of(nodes: usize, change: impl Fn(&mut RoomConfig)) -> Self {
        let clock = TokioClock::now();
        let (engine, keyring, shutdown) = (store(clock), keyring(), Shutdown::new());
        let mut town = Self {
            queue: Queue::new(Arc::clone(&engine), &defaults().name),
            nodes: Vec::new(),
            engine,
            clock,
            keyring,
            shutdown,
        };
        for _ in 0..nodes {
            town.open_node(&change).await;
        }
        town
    }

    /// Opens one more node.
    async fn open_node(&mut self, change: impl Fn(&mut RoomConfig)) {
        let settings = |config: &mut RoomConfig| {
            *config = defaults();
            change(config);
        };
        let room = node(Arc::clone(&self.engine), self.clock, &self.keyring, settings).await;
        room.start(&self.shutdown);
        self.nodes.push(room);
    }

    fn node(&self) -> &Arc<LiveRoom> {
        &self.nodes[0]
    }

    /// What the store knows.
    async fn now(&self) -> Snapshot {
        self.queue.snapshot(0).await.unwrap()
    }

    /// Where the holder stands in the store. Changes nothing.
    async fn place(&self, claims: &Claims) -> Place {
        let never_believed = Proof { score: Score(1), issued_at_ms: u64::MAX >> 12 };
        let look = stanchion::queue::Arrival { visitor: claims.sub, proof: Some(never_believed), may_enter: false };
        self.queue.join(&[look]).await.unwrap()[0]
    }

    /// So many who are let straight in.
    async fn admit(&self, count: usize) -> Vec<Claims> {
        let mut sessions = Vec::new();
        for _ in 0..count {
            sessions.push(session(self.node().come(None, true).await));
        }
        sessions
    }

    /// So many who wait.
    async fn queue_up(&self, count: usize) -> Vec<Claims> {
        let mut waiting = Vec::new();
        for _ in 0..count {
            waiting.push(queued(&self.node().come(None, true).await));
        }
        waiting
    }
}

impl Drop for Town {
    fn drop(&mut self) {
        self.shutdown.stop();
    }
}

/// The room of a configuration file that says nothing.
fn defaults() -> RoomConfig {
    let overrides = Overrides { origin: Some("http://127.0.0.1:9".to_owned()), ..Overrides::default() };
    ServeConfig::load(None, overrides).unwrap().rooms.remove(0)
}

fn session(turn: Turn) -> Claims {
    match turn.standing {
        Standing::Admitted(session) => *session,
        other => panic!("not let in but {other:?}"),
    }
}

fn queued(turn: &Turn) -> Claims {
    assert_eq!(turn.standing, Standing::Waiting);
    turn.queue.clone().unwrap()
}

/// Polls at even distances until let in. Returns the session and when that was.
async fn poll_until_in(room: Arc<LiveRoom>, claims: Claims, every: Duration) -> (Claims, Instant) {
    loop {
        let turn = room.look_up(Some(claims.clone())).await;
        match turn.standing {
            Standing::Admitted(session) => return (*session, Instant::now()),
            Standing::Waiting | Standing::Called { .. } => sleep(every).await,
            other => panic!("lost the place: {other:?}"),
        }
    }
}
