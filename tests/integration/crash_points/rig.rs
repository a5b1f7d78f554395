//! A real box office behind trapped lines, and its buyer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::SystemTime,
};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use stanchion::{box_office::audit::Audit, shutdown::Shutdown};

use super::trap::{Line, Moment, Step, Trap};
use crate::support::{
    box_office::{event, sign},
    eventually::eventually_within,
    fake_provider::FakeProvider,
    http::Answer,
    postgres::PostgresServer,
    redis_server::RedisServer,
    watched_program::{OfficeProgram, PATIENCE},
};

/// What all rigs of a test share. Each has its own part of it.
pub struct Servers {
    redis: RedisServer,
    postgres: PostgresServer,
    rigs: AtomicU32,
    /// Each rig's ledger is a file of its own, not a database on the server.
    ledgers_are_files: bool,
}

impl Servers {
    pub fn start(ledgers_are_files: bool) -> Arc<Self> {
        let redis = RedisServer::start_with(&["--databases", "64"]);
        Arc::new(Self {
            redis,
            postgres: PostgresServer::start_with(&["max_connections=200"]),
            rigs: AtomicU32::new(0),
            ledgers_are_files,
        })
    }

    /// A new database at the far end of a trapped line.
    async fn trapped_database(&self, number: u32, trap: &Arc<Trap>) -> String {
        let line = Line::Postgres.to(self.postgres.port(), trap).await;
        let address = self.postgres.database(&format!("crash_{number}"));
        let address = address.replace(&self.postgres.port().to_string(), &line.port().to_string());
        // Without its cache every statement is spelt out each time, by which the trap knows it.
        format!("{address}?statement-cache-capacity=0")
    }

    /// The names by which Redis will know a script, which it has from now on: nobody has to send it first.
    async fn load(&self, script: &str) -> Vec<String> {
        let read = |file| std::fs::read_to_string(format!("{}/lua/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let (text, holds) = (read(script), read("holds.lua"));
        let client = redis::Client::open(self.redis.url()).unwrap();
        let mut redis = client.get_multiplexed_async_connection().await.unwrap();
        let mut names = Vec::new();
        for head in ["", "#!lua flags=allow-oom\n", &holds] {
            let mut load = redis::cmd("SCRIPT");
            load.arg("LOAD").arg(format!("{head}{text}"));
            names.push(load.query_async(&mut redis).await.unwrap());
        }
        names
    }
}

/// One box office with 10 seats and 10 general-admission tickets.
pub struct Rig {
    pub office: OfficeProgram,
    pub provider: FakeProvider,
    pub trap: Arc<Trap>,
    what: String,
    _dir: tempfile::TempDir,
}

impl Rig {
    pub async fn start(servers: &Servers, (step, moment): (Step, Moment), args: &[&str]) -> Self {
        let what = format!("{moment:?} {step:?}");
        let names = if let Step::Script(script) = step { servers.load(script).await } else { Vec::new() };
        let trap = Trap::new(step, moment, names);
        let number = servers.rigs.fetch_add(1, Relaxed);
        let dir = tempfile::tempdir().unwrap();
        let provider = FakeProvider::start(&Shutdown::new()).await;

        let redis = Line::Redis.to(servers.redis.port(), &trap).await;
        let redis = format!("redis://{redis}/{number}");
        let ledger = if servers.ledgers_are_files {
            dir.path().join("ledger.sqlite").display().to_string()
        } else {
            servers.trapped_database(number, &trap).await
        };
        let pay = provider.url.rsplit_once(':').unwrap().1.parse().unwrap();
        let pay = format!("http://{}", Line::Provider.to(pay, &trap).await);

        let own = [
            "--seats",
            "10",
            "--general-admission",
            "10",
            "--redis",
            &redis,
            "--database",
            &ledger,
            "--database-connections",
            "6",
            "--provider",
            &pay,
            "--provider-timeout",
            "500ms",
        ];
        let office = OfficeProgram::start(dir.path(), "office", &[&own, args].concat());
        trap.set_for(office.program.clone());
        office.audit_when("a box office", |_| true).await;
        Self { office, provider, trap, what, _dir: dir }
    }

    /// Asks until there is an answer that is no passing trouble.
    async fn insist(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let what = format!("an answer to {method} {path}, {}", self.what);
        eventually_within(PATIENCE, &what, || self.office.ask(method.clone(), path, headers, body)).await
    }

    /// Asks for tickets until they are to be had.
    pub async fn held(&self, wish: &Value) -> String {
        let what = format!("{wish} to be free, {}", self.what);
        eventually_within(PATIENCE, &what, || async {
            let answer = self.try_hold(wish).await;
            (answer.status == 201).then(|| answer.json()["hold"].as_str().unwrap().to_owned())
        })
        .await
    }

    pub async fn try_hold(&self, wish: &Value) -> Answer {
        self.insist(Method::POST, "/events/demo/holds", &[], &wish.to_string()).await
    }

    /// Orders under a key, again and again until there is an answer. The order's name, and whether it was a replay.
    pub async fn ordered(&self, key: &str, hold: &str) -> (String, bool) {
        let body = json!({ "hold": hold }).to_string();
        let answer = self.insist(Method::POST, "/orders", &[("idempotency-key", key)], &body).await;
        assert_eq!(answer.status, 202, "{}: {}", self.what, answer.text());
        (answer.json()["order"].as_str().unwrap().to_owned(), answer.headers.contains_key("idempotency-replayed"))
    }

    pub async fn status(&self, order: &str) -> String {
        let answer = self.insist(Method::GET, &format!("/orders/{order}"), &[], "").await;
        assert_eq!(answer.status, 200, "{}: {}", self.what, answer.text());
        answer.json()["status"].as_str().unwrap().to_owned()
    }

    pub async fn becomes(&self, order: &str, status: &str) {
        let what = format!("{order} to be {status}, {}", self.what);
        eventually_within(PATIENCE, &what, || async { (self.status(order).await == status).then_some(()) }).await;
    }

    /// The charge for an order, once the provider was asked for it.
    pub async fn charge(&self, order: &str) -> String {
        let what = format!("the charge of {order}, {}", self.what);
        eventually_within(PATIENCE, &what, || async { self.charge_now(order) }).await
    }

    pub fn charge_now(&self, order: &str) -> Option<String> {
        let charges = self.provider.charges();
        let mine = charges.iter().find(|charge| charge["order"] == order)?;
        Some(mine["charge"].as_str().unwrap().to_owned())
    }

    /// Tells of an event until it is taken, as a provider does.
    pub async fn tell(&self, kind: &str, order: &str, charge: &str, tickets: u64) {
        let mut event = event(&format!("evt_{kind}_{order}"), kind, order, charge);
        event["amount_minor"] = json!(4500 * tickets);
        let body = event.to_string();
        let what = format!("{kind} to be taken, {}", self.what);
        eventually_within(PATIENCE, &what, || async {
            let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
            let signature = format!("t={time},v1={}", sign(time, &body));
            let headers = [("stanchion-pay-signature", signature.as_str())];
            let answer = self.office.ask(Method::POST, "/webhooks/payments", &headers, &body).await?;
            (answer.status == StatusCode::NO_CONTENT).then_some(())
        })
        .await;
    }

    pub async fn killed(&self) {
        self.until("the process to be killed", || self.trap.has_sprung()).await;
    }

    pub async fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let what = format!("{what}, {}", self.what);
        eventually_within(PATIENCE, &what, || async { is_so().then_some(()) }).await;
    }

    /// Waits until the process was killed and everything is settled after that: nothing pending, nothing held, and every
    /// guarantee kept.
    pub async fn settled(&self) -> Audit {
        self.killed().await;
        let settled = |audit: &Audit| {
            assert!(audit.g7_one_seat_one_buyer && audit.g9_money, "{}: {audit:?}", self.what);
            let at_rest = audit.orders.pending == 0 && audit.held == 0 && audit.refunds_owed == 0;
            at_rest && audit.sold == i64::try_from(audit.tickets_confirmed).unwrap()
        };
        let audit = self.office.audit_when(&format!("all to be settled, killed {}", self.what), settled).await;
        assert!(audit.g8_conservation, "{}: {audit:?}", self.what);
        assert_eq!(audit.free + audit.sold, 20, "{}: {audit:?}", self.what);
        audit
    }
}
