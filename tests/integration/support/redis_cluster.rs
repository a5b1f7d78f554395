//! A Redis Cluster of the test's own: three masters with a third of the slots each, and a replica of the first.

use super::redis_server::{RedisServer, free_port};

pub struct RedisCluster {
    /// Three masters.
    pub masters: Vec<RedisServer>,
    /// Takes over from the first of them.
    pub replica: RedisServer,
}

const SLOTS: [(u16, u16); 3] = [(0, 5460), (5461, 10922), (10923, 16383)];

impl RedisCluster {
    pub fn start() -> Self {
        let masters: Vec<_> = SLOTS.iter().map(|_| node()).collect();
        let replica = node();
        for (number, (master, (first, last))) in masters.iter().zip(SLOTS).enumerate() {
            ok(master, &format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1));
            ok(master, &format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
        }
        let first = &masters[0];
        for other in masters[1..].iter().chain([&replica]) {
            let bus = other.command("CONFIG GET cluster-port");
            let bus = bus.lines().last().unwrap();
            ok(first, &format!("CLUSTER MEET 127.0.0.1 {} {bus}", other.port()));
        }
        for node in masters.iter().chain([&replica]) {
            node.wait_for("CLUSTER INFO", "cluster_known_nodes:4");
            node.wait_for("CLUSTER INFO", "cluster_state:ok");
        }
        first.command("CONFIG SET repl-diskless-sync-delay 0");
        ok(&replica, &format!("CLUSTER REPLICATE {}", id(first)));
        replica.wait_for("INFO replication", "master_link_status:up");
        for node in &masters {
            node.wait_for("CLUSTER NODES", " slave ");
        }
        Self { masters, replica }
    }

    /// Names one node only; the others have to be found.
    pub fn url(&self) -> String {
        format!("redis+cluster://{}", self.masters[2].address())
    }

    /// Waits until the replica has the keys of its master: what has not reached it is lost with the master.
    pub fn replicated(&self) {
        self.replica.wait_for("DBSIZE", &self.masters[0].command("DBSIZE"));
    }

    /// The slot of a key.
    pub fn slot(&self, key: &str) -> u16 {
        let reply = self.masters[0].command(&format!("CLUSTER KEYSLOT {key}"));
        reply.trim().trim_start_matches(':').parse().unwrap()
    }
}

/// The number of the master that serves the slot.
pub fn owner(slot: u16) -> usize {
    SLOTS.iter().position(|(first, last)| (*first..=*last).contains(&slot)).unwrap()
}

/// A node's id.
pub fn id(node: &RedisServer) -> String {
    node.command("CLUSTER MYID").lines().nth(1).unwrap().to_owned()
}

/// Runs a command that has to succeed.
pub fn ok(node: &RedisServer, command: &str) {
    let reply = node.command(command);
    assert!(reply.starts_with("+OK"), "{command}: {reply}");
}

fn node() -> RedisServer {
    let bus = free_port().to_string();
    RedisServer::start_with(&[
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        &bus,
        "--cluster-node-timeout",
        "1000",
        // A dead master takes its own slots down, not those of the others.
        "--cluster-require-full-coverage",
        "no",
        "--cluster-replica-validity-factor",
        "0",
    ])
}
