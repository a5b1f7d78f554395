//! `stanchion race`: one seat, many buyers, under one strategy after another.

use std::{process::ExitCode, sync::Arc, time::Duration};

use clap::ValueEnum as _;

use super::store;
use crate::{
    clock::{SharedClock, SystemClock},
    race::{self, Arrivals, Plan, RaceError, Report, Strategy},
    shutdown::Shutdown,
};

/// Let many buyers race for one seat, under one locking strategy after another
///
/// For each strategy it tells how often the seat was sold, who was told what, and how long that took. Sales are
/// counted from the database's rows and from Redis, not from what buyers were told. Exit status 1 when a
/// strategy other than naive sold anything twice, or free + sold is not what there was.
///
/// naive sells a seat up to as often as there are connections: that is how you know that the race is one. The
/// others sell it once. What sets them apart is what they do with those who come too late, who are nearly all:
/// compare the column "losers".
///
/// In PostgreSQL it works in a schema of its own, stanchion_race_…, in Redis on an event of its own, race-…; both are
/// removed at the end. set-nx and lua-decrement run the very scripts of the box office.
///
/// Examples:
///   stanchion race --database postgres://shop:secret@127.0.0.1/shop --redis redis://127.0.0.1:6379
///   stanchion race --burst 200 --strategy naive --strategy pessimistic --database postgres://127.0.0.1/shop
///   stanchion race --ramp 10s --buyers 2000 --seats 800 --spread --redis redis://127.0.0.1:6379
///   stanchion race --attempts 5000 --clients 200 --seats 800 --database postgres://127.0.0.1/shop --json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// A way to sell; may be given several times [default: all].
    #[arg(long, value_enum, value_name = "NAME")]
    strategy: Vec<Strategy>,
    /// PostgreSQL, for all but set-nx and lua-decrement: postgres://USER:PASSWORD@HOST:PORT/DATABASE.
    #[arg(long, env = "STANCHION_DATABASE", value_name = "URL", hide_env_values = true)]
    database: Option<String>,
    #[command(flatten)]
    store: store::StoreArgs,
    /// So many buyers come at the same instant [default: 50, unless --ramp or --attempts says otherwise].
    #[arg(long, value_name = "BUYERS", group = "arrivals")]
    burst: Option<u32>,
    /// The buyers come evenly spread over this long.
    #[arg(long, value_parser = humantime::parse_duration, value_name = "DURATION", group = "arrivals")]
    ramp: Option<Duration>,
    /// How many come over a --ramp [default: 1000].
    #[arg(long, requires = "ramp")]
    buyers: Option<u32>,
    /// So many attempts for any seat, as fast as --clients can make them.
    #[arg(long, group = "arrivals", value_name = "N")]
    attempts: Option<u32>,
    /// How many make --attempts at once [default: 200].
    #[arg(long, requires = "attempts", value_name = "N")]
    clients: Option<u32>,
    /// Any seat will do, as always with --attempts; else all want the same one.
    #[arg(long)]
    spread: bool,
    /// Seats there are [default: 1; 800 when any will do].
    #[arg(long)]
    seats: Option<u32>,
    /// Connections to the database.
    #[arg(long, default_value_t = 16, value_name = "CONNECTIONS")]
    pool: u32,
    /// How often each strategy is raced, in another order each time; counts are summed.
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Decides the order of the strategies and how long buyers wait before they try again.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// When a race ends, whoever is still waiting for an answer [default: 60s, after the end of a --ramp].
    #[arg(long, value_parser = humantime::parse_duration, value_name = "DURATION")]
    deadline: Option<Duration>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// How long after the last buyer came a race ends.
const DEADLINE: Duration = Duration::from_mins(1);
/// What is wrong with the arguments taken together.
const USAGE: u8 = 2;

pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (redis, client, json) = (args.store.redis.clone(), args.store.client(), args.json);
    let plan = match args.into_plan() {
        Ok(plan) => plan,
        Err(why) => {
            eprintln!("stanchion: {why}");
            return Ok(ExitCode::from(USAGE));
        }
    };
    let clock: SharedClock = Arc::new(SystemClock);
    let needs_store = plan.runnable().any(Strategy::needs_store);
    let engine = store::open(redis.as_deref().filter(|_| needs_store), client, &clock).await?;
    let report = until_signalled(&plan, engine).await?;
    super::tell(&if json { serde_json::to_string_pretty(&report)? + "\n" } else { report.to_string() })?;
    Ok(if report.held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Races; Ctrl-C ends it with what it made removed.
async fn until_signalled(plan: &Plan, engine: crate::store::SharedEngine) -> anyhow::Result<Report> {
    let stop = Shutdown::new();
    let racing = race::run(plan, engine, &stop);
    tokio::pin!(racing);
    tokio::select! {
        report = &mut racing => return Ok(report?),
        signalled = Shutdown::signal() => signalled?,
    }
    stop.stop();
    Ok(racing.await?)
}

impl Args {
    fn into_plan(self) -> Result<Plan, String> {
        let (arrivals, attempts) = match (self.ramp, self.attempts) {
            (Some(span), _) => (Arrivals::Ramp(span), self.buyers.unwrap_or(1_000)),
            (_, Some(attempts)) => (Arrivals::Clients(self.clients.unwrap_or(200)), attempts),
            _ => (Arrivals::Burst, self.burst.unwrap_or(50)),
        };
        let spread = self.spread || self.attempts.is_some();
        let wanted = |strategy: &&Strategy| self.strategy.is_empty() || self.strategy.contains(strategy);
        let strategies = Strategy::value_variants().iter().filter(wanted).copied().collect();
        let plan = Plan {
            strategies,
            database: self.database,
            embedded: self.store.redis.is_none(),
            seats: self.seats.unwrap_or(if spread { 800 } else { 1 }),
            spread,
            attempts,
            arrivals,
            pool: self.pool,
            rounds: self.rounds,
            seed: self.seed,
            deadline: self.deadline.unwrap_or(self.ramp.unwrap_or_default().saturating_add(DEADLINE)),
            naive_meet: false,
        };
        plan.check().map_err(|error| error.to_string())?;
        let named = self.strategy.iter().find(|strategy| strategy.needs_database());
        match (named, &plan.database) {
            (Some(named), None) => Err(format!(
                "{} sells from a database: give PostgreSQL's address with --database postgres://USER:PASSWORD@HOST/DATABASE",
                named.name()
            )),
            (_, Some(url)) if !race::is_postgresql(url) => Err(RaceError::Address.to_string()),
            _ => Ok(plan),
        }
    }
}
