//! Everybody in the sale: real programs and real servers, each of which can be killed and comes back.

use std::time::Duration;

use rand::RngExt as _;
use serde_json::Value;
use tokio::{sync::Mutex, task::block_in_place, time::sleep};

use crate::support::{
    eventually::eventually,
    http::try_request,
    postgres::PostgresServer,
    redis_server::RedisServer,
    watched_program::{KEY, OfficeProgram, Watched, lasting_port},
};

pub const SEATS: u32 = 800;
pub const GENERAL_ADMISSION: u32 = 260;
pub const TOTAL: i64 = (SEATS + GENERAL_ADMISSION) as i64;

#[derive(Debug, Clone, Copy)]
pub enum Victim {
    /// A box office.
    Office(usize),
    /// It forgets everything.
    Redis,
    Postgres,
    /// The payment provider. It has a journal.
    Sandbox,
}

impl Victim {
    pub const ALL: [Self; 5] = [Self::Office(0), Self::Office(1), Self::Redis, Self::Postgres, Self::Sandbox];
}

pub struct Cast {
    pub offices: [OfficeProgram; 2],
    redis: Mutex<RedisServer>,
    postgres: Mutex<PostgresServer>,
    sandbox: Watched,
    pay_url: String,
    _dir: tempfile::TempDir,
}

impl Cast {
    pub async fn start(seed: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // As in earnest: what was committed is on the disk.
        let postgres = PostgresServer::start_with(&["fsync=on"]);
        let redis = RedisServer::start();
        let pay = format!("127.0.0.1:{}", lasting_port());
        let (pay_url, redis_url, database) = (format!("http://{pay}"), redis.url(), postgres.url());
        let (seats, general_admission) = (SEATS.to_string(), GENERAL_ADMISSION.to_string());
        #[rustfmt::skip]
        let args = [
            "--seats", &seats, "--general-admission", &general_admission, "--redis", &redis_url, "--database", &database,
            "--provider", &pay_url, "--provider-timeout", "1s", "--poll-after", "1s", "--hold-for", "5s",
        ];
        let offices = ["first", "second"].map(|name| OfficeProgram::start(dir.path(), name, &args));
        let sandbox = sandbox(dir.path(), &pay, &offices[0], seed);
        for office in &offices {
            office.audit_when("a box office", |_| true).await;
        }
        Self { offices, redis: Mutex::new(redis), postgres: Mutex::new(postgres), sandbox, pay_url, _dir: dir }
    }

    /// Kills somebody, who stays dead for a while. Nobody dies twice at once.
    pub async fn strike(&self, victim: Victim, down: Duration) {
        match victim {
            Victim::Office(number) => strike_program(&self.offices[number].program, down).await,
            Victim::Sandbox => strike_program(&self.sandbox, down).await,
            Victim::Redis => {
                let mut redis = self.redis.lock().await;
                block_in_place(|| redis.kill());
                sleep(down).await;
                block_in_place(|| redis.start_again());
            }
            Victim::Postgres => {
                let mut postgres = self.postgres.lock().await;
                block_in_place(|| postgres.kill());
                sleep(down).await;
                block_in_place(|| postgres.start_again());
            }
        }
    }

    /// What the provider says happened.
    pub async fn records(&self) -> Value {
        let (url, key) = (format!("{}/records", self.pay_url), format!("Bearer {KEY}"));
        eventually("the provider's records", || async {
            let answer = try_request(http::Method::GET, &url, &[("authorization", &key)], "").await.ok()?;
            (answer.status == 200).then(|| answer.json())
        })
        .await
    }

    /// What the ledger says, rows parted by lines and columns by `|`.
    pub async fn ledger(&self, query: &str) -> Vec<String> {
        let postgres = self.postgres.lock().await;
        let rows = block_in_place(|| postgres.sql(query));
        rows.lines().map(str::to_owned).collect()
    }

    pub fn office(&self, random: &mut impl rand::Rng) -> &OfficeProgram {
        &self.offices[random.random_range(0..self.offices.len())]
    }

    /// The ends of the box offices' logs.
    pub fn said(&self) -> String {
        self.offices.iter().map(OfficeProgram::said).collect::<Vec<_>>().join("\n---\n")
    }
}

async fn strike_program(program: &Watched, down: Duration) {
    program.keep_down();
    sleep(down).await;
    program.let_up();
}

/// A provider with every bad manner it knows, each now and then.
fn sandbox(dir: &std::path::Path, listen: &str, office: &OfficeProgram, seed: u64) -> Watched {
    let webhook = format!("http://{}/webhooks/payments", office.address);
    let (journal, seed) = (dir.join("journal"), seed.to_string());
    #[rustfmt::skip]
    let args = [
        "pay-sandbox", "--listen", listen, "--webhook", &webhook, "--journal", journal.to_str().unwrap(), "--seed", &seed,
        "--latency", "10ms..200ms", "--decline-ratio", "0.1", "--error-ratio", "0.06", "--busy-ratio", "0.02",
        "--stall-ratio", "0.02", "--drop-ratio", "0.03", "--lose-ratio", "0.1", "--late-ratio", "0.1", "--late-by", "1s..3s",
        "--reorder-ratio", "0.1", "--duplicate-ratio", "0.1", "--forge-ratio", "0.1",
    ];
    Watched::start(&dir.join("sandbox.log"), &args)
}
