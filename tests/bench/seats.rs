//! Seats: the box office's holds over HTTP against the bare Redis command, and against a database's best.

use std::sync::Arc;

use anyhow::Context as _;
use stanchion::{
    clock::SystemClock,
    race::{self, Arrivals, Plan, Strategy},
    shutdown::Shutdown,
    store::{SharedEngine, in_process::InProcess, redis_engine::RedisEngine},
};
use tokio::runtime::Runtime;

use super::{
    args::Args,
    figures::{Goal, Row, Spread, in_turn},
    postgres::PostgresServer,
    seat_clients::{self, Protocol},
    servers::{self, Server},
};

/// The race of each round.
pub const ATTEMPTS: u32 = 5_000;
/// Seats there are; every attempt wants one of them, all wanted equally often.
pub const SEATS: u32 = 800;
/// Each makes one attempt at a time.
pub const CLIENTS: u32 = 200;
const POOL: u32 = 16;

/// 5,000 attempts for 800 seats by 200 clients, each way in turn. Every subject has its goods laid out anew each round.
pub fn run(args: &Args) -> anyhow::Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (redis, postgres) = (servers::redis()?, PostgresServer::start());
    let client = redis::Client::open(("127.0.0.1", redis.port))?;
    let race = |strategy, database| race(&runtime, &redis, strategy, database);
    let samples = in_turn(
        args.rounds,
        vec![
            Box::new(|| {
                flush(&client)?;
                let office = servers::box_office(&args.binary, &redis, SEATS)?;
                runtime.block_on(seat_clients::race(office.port, Protocol::Http))
            }),
            Box::new(|| {
                flush(&client)?;
                runtime.block_on(seat_clients::race(redis.port, Protocol::Redis))
            }),
            Box::new(|| race(Strategy::SkipLocked, Some(postgres.url()))),
            Box::new(|| race(Strategy::SetNx, None)),
            Box::new(|| {
                flush(&client)?;
                runtime.block_on(seat_clients::race_multiplexed(&client))
            }),
        ],
    )?;
    let [http, raw, skip_locked, set_nx, multiplexed] = &samples[..] else { anyhow::bail!("five subjects") };
    let ratio = |ours: &[f64], theirs: &[f64]| Spread::of_ratios(ours, theirs, |per_second| *per_second);
    let told = |measure: &str, samples: &[f64]| Row::new(measure, Spread::of(samples.iter().copied()), Goal::None);
    Ok(vec![
        Row::new("holds over HTTP ÷ bare SET NX EX, the same client, per second", ratio(http, raw), Goal::AtLeast(0.5)),
        Row::new(
            "holds over HTTP ÷ SKIP LOCKED with a pool of 16, per second",
            ratio(http, skip_locked),
            Goal::AtLeast(10.0),
        ),
        Row::new(
            "the box office's scripts, holding and selling ÷ SET NX EX, both through one Redis connection",
            ratio(set_nx, multiplexed),
            Goal::AtLeast(0.5),
        ),
        Row::new("… ÷ SKIP LOCKED with a pool of 16", ratio(set_nx, skip_locked), Goal::AtLeast(10.0)),
        told("attempts a second by bare SET NX EX", raw),
        told("attempts a second by SKIP LOCKED", skip_locked),
    ])
}

fn flush(client: &redis::Client) -> anyhow::Result<()> {
    Ok(redis::cmd("FLUSHALL").exec(&mut client.get_connection()?)?)
}

/// Attempts per second of a strategy, which must have sold everything once.
fn race(runtime: &Runtime, redis: &Server, strategy: Strategy, database: Option<String>) -> anyhow::Result<f64> {
    let plan = Plan {
        strategies: vec![strategy],
        embedded: database.is_some(),
        database,
        seats: SEATS,
        spread: true,
        attempts: ATTEMPTS,
        arrivals: Arrivals::Clients(CLIENTS),
        pool: POOL,
        rounds: 1,
        seed: 1,
        deadline: std::time::Duration::from_mins(1),
        naive_meet: false,
    };
    let url = format!("redis://127.0.0.1:{}", redis.port);
    let raced = async {
        let engine: SharedEngine = match plan.database {
            Some(_) => Arc::new(InProcess::new(Arc::new(SystemClock))),
            None => Arc::new(RedisEngine::connect(&url).await?),
        };
        anyhow::Ok(race::run(&plan, engine, &Shutdown::new()).await?)
    };
    let report = runtime.block_on(raced)?;
    let figures = report.strategies.first().context("no figures")?;
    anyhow::ensure!(
        report.held && figures.sold == u64::from(SEATS) && figures.errors == 0,
        "not a race to compare with: {figures:?}"
    );
    Ok(figures.attempts_per_second)
}
