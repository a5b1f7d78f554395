//! A million waiting against a thousand: nothing that a visitor notices, and nothing in the gateway, grows with the line.

use std::{thread, time::Duration};

use super::{
    args::Args,
    client,
    figures::{Goal, Row, Spread},
    servers::{self, Server},
    store, visitors,
};

const FEW: u32 = 1_000;
const VISITORS: u32 = 500;
/// Far below what one core answers, so that what is measured is not a queue of our own making.
const PER_SECOND: f64 = 500.0;

/// One gateway with its Redis.
struct Line {
    gateway: Server,
    cookies: Vec<String>,
    _redis: Server,
}

impl Line {
    fn start(args: &Args, waiting: u32) -> anyhow::Result<Self> {
        let redis = servers::redis()?;
        let gateway = servers::gateway(&args.binary, &redis)?;
        store::fill(&mut store::connect(&redis)?, waiting)?;
        Ok(Self { gateway, cookies: visitors::cookies(VISITORS, waiting)?, _redis: redis })
    }

    /// The 99th percentile of a round, in milliseconds.
    fn p99(&self, args: &Args) -> anyhow::Result<f64> {
        let mut took = client::poll_at_rate(self.gateway.port, &self.cookies, PER_SECOND, args.time())?;
        took.sort_unstable();
        let slow = took.get(took.len() * 99 / 100).copied().unwrap_or(Duration::MAX);
        Ok(slow.as_secs_f64() * 1e3)
    }
}

/// Both at the same time, so that both meet with whatever else the machine does.
fn round(long: &Line, short: &Line, args: &Args) -> anyhow::Result<(f64, f64)> {
    thread::scope(|scope| {
        let of_long = scope.spawn(|| long.p99(args));
        let of_short = short.p99(args)?;
        Ok((of_long.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??, of_short))
    })
}

pub fn run(args: &Args) -> anyhow::Result<Vec<Row>> {
    let (long, short) = (Line::start(args, args.waiting)?, Line::start(args, FEW)?);
    thread::sleep(Duration::from_secs(3));
    round(&long, &short, args)?;
    let p99s: Vec<(f64, f64)> = (0..args.rounds).map(|_| round(&long, &short, args)).collect::<Result<_, _>>()?;
    let (of_long, of_short): (Vec<f64>, Vec<f64>) = p99s.into_iter().unzip();
    let (memory, less) = (long.gateway.resident_mib()?, short.gateway.resident_mib()?);
    let count = args.waiting;
    let single = |measure: String, value: f64, goal| Row::new(measure, Spread::of([value]), goal);
    Ok(vec![
        Row::new(
            format!("p99 of a poll at 500 a second: {count} waiting ÷ {FEW} waiting"),
            Spread::of_ratios(&of_long, &of_short, |p99| *p99),
            Goal::AtMost(1.2),
        ),
        Row::new(format!("… in ms, {count} waiting"), Spread::of(of_long.iter().copied()), Goal::None),
        Row::new(format!("… in ms, {FEW} waiting"), Spread::of(of_short.iter().copied()), Goal::None),
        single(format!("memory of the gateway: {count} waiting ÷ {FEW} waiting"), memory / less, Goal::AtMost(1.2)),
        single(format!("… in MiB, {count} waiting"), memory, Goal::None),
    ])
}
