//! `stanchion race`: every strategy but naive sells a seat once, and the race would show it if one did not.

use std::{
    process::{Child, Output, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;
use stanchion::{
    clock::SystemClock,
    race::{self, Arrivals, Plan, Strategy},
    shutdown::Shutdown,
    store::in_process::InProcess,
};

use crate::support::{
    postgres::PostgresServer,
    program::{command, stanchion},
    redis_server::{RedisServer, free_port},
};

const SAFE: [&str; 6] = ["pessimistic", "skip-locked", "optimistic", "redis-lock", "set-nx", "lua-decrement"];

/// What all strategies sell from.
struct Ground {
    postgres: PostgresServer,
    redis: RedisServer,
}

impl Ground {
    fn new() -> Self {
        Self { postgres: PostgresServer::start(), redis: RedisServer::start() }
    }

    /// Races on both, and must end with status 0.
    fn race(&self, args: &[&str]) -> Value {
        let (database, redis) = (self.postgres.url(), self.redis.url());
        let output = stanchion(&[&["race", "--json", "--database", &database, "--redis", &redis], args].concat());
        assert_eq!(output.status.code(), Some(0), "{}{}", said(&output), complaint(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn assert_nothing_is_left(&self) {
        assert_eq!(self.schemas(), "", "a race's schema is left");
        assert_eq!(self.redis.command("DBSIZE"), ":0\r\n", "a race's keys are left");
    }

    fn schemas(&self) -> String {
        self.postgres.sql("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'stanchion_race_%'")
    }
}

fn of<'a>(report: &'a Value, strategy: &str) -> &'a Value {
    let all = report["strategies"].as_array().unwrap();
    all.iter().find(|figures| figures["strategy"] == strategy).unwrap_or_else(|| panic!("no {strategy} in {report}"))
}

fn number(figures: &Value, name: &str) -> u64 {
    figures[name].as_u64().unwrap_or_else(|| panic!("no {name} in {figures}"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// G7, the race for one seat. How often naive sells it is left to chance here.
fn one_seat_is_sold_once(buyers: u64) {
    let ground = Ground::new();
    let report = ground.race(&["--burst", &buyers.to_string()]);
    for strategy in SAFE {
        let figures = of(&report, strategy);
        let told = number(figures, "conflicts") + number(figures, "errors");
        assert_eq!((number(figures, "sold"), number(figures, "duplicates")), (1, 0), "{figures}");
        assert_eq!((number(figures, "total"), &figures["free"]), (1, &0.into()), "{figures}");
        assert!(told == buyers - 1 || number(figures, "errors") > 0 && told == buyers, "{figures}");
        assert!(figures["mean_ms"].as_f64().unwrap() > 0.0 && figures["p99_ms"].as_f64().is_some(), "{figures}");
    }
    let naive = of(&report, "naive");
    assert_eq!(number(naive, "duplicates") + 1, number(naive, "sold"), "{naive}");
    assert_eq!(number(naive, "sold") + number(naive, "conflicts") + number(naive, "errors"), buyers, "{naive}");
    ground.assert_nothing_is_left();
}

#[test]
fn fifty_buyers_at_a_barrier_for_one_seat() {
    one_seat_is_sold_once(50);
}

#[test]
fn two_hundred_buyers_at_a_barrier_for_one_seat() {
    one_seat_is_sold_once(200);
}

/// The check that the check can fail: one buyer on each connection has read "free" before any of them writes.
#[tokio::test(flavor = "multi_thread")]
async fn naive_sells_a_seat_as_often_as_there_are_connections() {
    let postgres = PostgresServer::start();
    for (buyers, pool, sold) in [(50, 16, 16), (200, 16, 16), (5, 16, 5), (50, 1, 1)] {
        let plan = Plan {
            strategies: vec![Strategy::Naive],
            database: Some(postgres.url()),
            embedded: true,
            seats: 1,
            spread: false,
            attempts: buyers,
            arrivals: Arrivals::Burst,
            pool,
            rounds: 2,
            seed: 7,
            deadline: Duration::from_mins(2),
            naive_meet: true,
        };
        let engine = Arc::new(InProcess::new(Arc::new(SystemClock)));
        let report = race::run(&plan, engine, &Shutdown::new()).await.unwrap();
        let naive = &report.strategies[0];
        assert_eq!((naive.sold, naive.duplicates), (2 * sold, 2 * (sold - 1)), "{naive:?}");
        assert_eq!((naive.conflicts, naive.errors), (2 * (u64::from(buyers) - sold), 0), "{naive:?}");
        assert!(report.held, "that naive sells twice is no fault of the race: {naive:?}");
    }
}

/// G7 and G8 in the long race: as many as there are, none twice, none lost.
#[test]
fn five_thousand_attempts_sell_eight_hundred_seats_exactly() {
    let ground = Ground::new();
    let strategies = SAFE.map(|strategy| ["--strategy", strategy]).concat();
    let race = ["--attempts", "5000", "--clients", "200", "--seats", "800", "--deadline", "5m"];
    let report = ground.race(&[&race[..], &strategies].concat());
    assert_eq!(report["strategies"].as_array().unwrap().len(), SAFE.len());
    for strategy in SAFE {
        let figures = of(&report, strategy);
        let counts = ["sold", "duplicates", "free", "total"].map(|name| number(figures, name));
        assert_eq!(counts, [800, 0, 0, 800], "{figures}");
        // Who was told so has a seat, and the other way round, but for those who were told nothing.
        let unknown = number(figures, "errors");
        assert!((4_200 - unknown..=4_200).contains(&number(figures, "conflicts")), "{figures}");
    }
    ground.assert_nothing_is_left();
}

#[test]
fn seats_that_nobody_wants_stay_free() {
    let ground = Ground::new();
    let hot = ground.race(&["--burst", "20", "--seats", "30"]);
    let spread = ground.race(&["--ramp", "100ms", "--buyers", "20", "--seats", "30", "--spread"]);
    for strategy in SAFE {
        // A counter of tickets knows no hot one.
        let sold = if strategy == "lua-decrement" { 20 } else { 1 };
        let figures = of(&hot, strategy);
        assert_eq!((number(figures, "sold"), number(figures, "free")), (sold, 30 - sold), "{figures}");
        let figures = of(&spread, strategy);
        assert_eq!((number(figures, "sold"), number(figures, "free")), (20, 10), "{figures}");
    }
    assert_eq!((&spread["settings"]["arrivals"], &spread["settings"]["seats"]), (&"ramp".into(), &30.into()));
}

#[test]
fn the_same_database_keeps_what_it_had() {
    let ground = Ground::new();
    ground.redis.command("SET stanchion-box:{demo}:seat:A1 o_1");
    ground.postgres.sql("CREATE TABLE seats (id bigint); INSERT INTO seats VALUES (0); CREATE TABLE sales (id bigint)");
    ground.race(&["--burst", "20"]);
    assert_eq!(ground.postgres.sql("SELECT * FROM seats"), "0");
    assert_eq!(ground.postgres.sql("SELECT count(*) FROM sales"), "0");
    assert_eq!(ground.redis.command("GET stanchion-box:{demo}:seat:A1"), "$3\r\no_1\r\n");
    assert_eq!((ground.schemas(), ground.redis.command("DBSIZE")), (String::new(), ":1\r\n".to_owned()));
}

#[test]
fn the_table_names_every_strategy_and_what_it_sold() {
    let ground = Ground::new();
    let (database, redis) = (ground.postgres.url(), ground.redis.url());
    let output = stanchion(&["race", "--burst", "20", "--database", &database, "--redis", &redis]);
    let table = said(&output);
    assert!(output.status.success(), "{table}{}", complaint(&output));
    for strategy in SAFE {
        let row = table.lines().find(|line| line.starts_with(strategy)).unwrap_or_else(|| panic!("{table}"));
        let columns: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(columns[1..3], ["1", "0"], "{row}");
    }
    assert!(table.contains("--seed 1") && table.contains("duplicates"), "{table}");
}

#[test]
fn without_servers_it_races_what_it_can_and_says_so() {
    let output = stanchion(&["race", "--burst", "20"]);
    let table = said(&output);
    assert!(output.status.success(), "{table}{}", complaint(&output));
    assert!(
        table.contains("there is no --database: naive, pessimistic, skip-locked, optimistic, redis-lock"),
        "{table}"
    );
    assert!(table.contains("there is no --redis: set-nx, lua-decrement"), "{table}");
    let output = stanchion(&["race", "--burst", "20", "--json", "--strategy", "set-nx"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["strategies"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!((&of(&report, "set-nx")["sold"], &of(&report, "set-nx")["on"]), (&1.into(), &"embedded".into()));
}

#[test]
fn what_cannot_be_raced_is_said_with_its_cure() {
    let postgres = PostgresServer::start_with(&["max_connections=20"]);
    let (url, nobody) = (postgres.url(), free_port());
    let wrong = url.replace("correct-horse", "wrong-horse");
    let (no_database, no_redis) = (format!("postgres://127.0.0.1:{nobody}/x"), format!("redis://127.0.0.1:{nobody}"));
    let cases: [(i32, &[&str], &[&str]); 11] = [
        (2, &["--strategy", "naive"], &["naive", "--database postgres://"]),
        (2, &["--strategy", "set-nx", "--strategy", "optimistic"], &["optimistic", "--database postgres://"]),
        (2, &["--strategy", "hopeful"], &["hopeful", "skip-locked"]),
        (2, &["--database", "sqlite:ledger.sqlite"], &["PostgreSQL", "postgres://"]),
        (2, &["--burst", "0"], &["use 1 to"]),
        (2, &["--ramp", "999999999999999999s"], &["24 hours", "--ramp"]),
        (2, &["--burst", "5", "--ramp", "1s"], &["--burst", "--ramp"]),
        (1, &["--database", &no_database], &["Is PostgreSQL running", "--database"]),
        (1, &["--database", &wrong], &["password", "--database"]),
        (1, &["--database", &url, "--pool", "100"], &["connections left", "--pool", "max_connections"]),
        (1, &["--strategy", "set-nx", "--redis", &no_redis], &["no Redis at", "--redis"]),
    ];
    for (status, args, words) in cases {
        let output = stanchion(&[&["race"], args].concat());
        let told = complaint(&output);
        assert_eq!(output.status.code(), Some(status), "{args:?} said {told}");
        assert!(words.iter().all(|word| told.contains(word)), "{args:?} said {told}");
        assert!(!told.contains("horse") && !told.contains("panicked"), "{args:?} said {told}");
    }
    assert_eq!(postgres.sql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'stanchion_race_%'"), "0");
}

/// Ctrl-C in the middle: the schema and the keys go too.
#[test]
fn an_interrupted_race_cleans_up() {
    let ground = Ground::new();
    let (database, redis) = (ground.postgres.url(), ground.redis.url());
    for strategy in ["pessimistic", "set-nx"] {
        let race = ["race", "--ramp", "1h", "--deadline", "1h", "--strategy", strategy];
        let mut child = command(&race)
            .args(["--database", &database, "--redis", &redis])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let is_racing = || match strategy {
            "set-nx" => ground.redis.command("DBSIZE") != ":0\r\n",
            _ => ground.schemas().contains("stanchion_race_"),
        };
        until(&mut child, "race", is_racing);
        let asked = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(asked.success());
        assert_eq!(child.wait().unwrap().code(), Some(1), "{strategy}");
        ground.assert_nothing_is_left();
    }
}

/// Buyers come over an hour: the deadline ends the race before most of them, and that is told.
#[test]
fn a_race_ends_by_its_deadline() {
    let ground = Ground::new();
    let begun = Instant::now();
    let race = ["--ramp", "1h", "--buyers", "10", "--deadline", "2s", "--strategy", "pessimistic"];
    let report = ground.race(&race);
    assert!(begun.elapsed() < Duration::from_mins(1), "{report}");
    let figures = of(&report, "pessimistic");
    assert_eq!((number(figures, "sold"), number(figures, "errors")), (1, 9), "{figures}");
    assert_eq!(figures["failures"]["not done by the deadline"], 9, "{figures}");
    ground.assert_nothing_is_left();
}

fn until(child: &mut Child, what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !condition() {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "it does not {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
