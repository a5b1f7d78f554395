//! Joins: through HTTP against the single-join script alone, and a repeat against a first one.

use std::process::Command;

use anyhow::Context as _;

use super::{
    args::Args,
    figures::{Goal, Row, Sample, Spread, count, in_turn},
    servers::{self, Server},
    store, visitors,
    wrk::Load,
};

const WAITING: u32 = 50_000;
/// How many come again.
const MEMBERS: u32 = 10_000;
/// So many that hardly anybody comes twice.
const STRANGERS: u32 = 1_000_000_000;
/// With twelve digits behind it, as long as a visitor's id.
const NEW: &str = "new-______";
const OLD: &str = "old-______";

/// Cookie-less visitors join over HTTP, and redis-benchmark runs the script for one visitor a call, 16 calls in flight on each
/// of 50 connections, in the same line.
pub fn run(args: &Args) -> anyhow::Result<Vec<Row>> {
    let redis = servers::redis()?;
    let mut connection = store::connect(&redis)?;
    let gateway = servers::gateway(&args.binary, &redis)?;
    store::fill(&mut connection, WAITING)?;
    std::thread::sleep(std::time::Duration::from_secs(3));
    let script = load_script(&mut connection)?;
    let head = ["Accept: application/json\nContent-Length: 0".to_owned()];
    let load = |connections| Load::new(("POST", "/__room/main/join", 202), &head, connections, args.time());
    let (few, many) = (load(args.connections)?, load(args.connections * 4)?);
    let mut calls = Calls::new(&redis, script, NEW);
    let samples = in_turn(
        args.rounds,
        vec![
            Box::new(|| few.run(&gateway, &redis)),
            Box::new(|| many.run(&gateway, &redis)),
            Box::new(|| calls.run(args, STRANGERS)),
        ],
    )?;
    let [few, many, calls] = &samples[..] else { anyhow::bail!("three subjects") };
    let row = |ours: &[Sample], connections: u32| {
        let ratio = Spread::of_ratios(ours, calls, |sample| sample.per_second);
        let measure =
            format!("joins over HTTP, {connections} connections ÷ redis-benchmark -P 16 of the script, per second");
        Row::new(measure, ratio, Goal::AtLeast(1.0))
    };
    let of_redis = Spread::of_ratios(many, calls, |sample| sample.per_cpu_second);
    Ok(vec![
        row(few, args.connections),
        row(many, args.connections * 4),
        Row::new("… per second of Redis on a processor", of_redis, Goal::None),
        Row::new(
            "joins a second by redis-benchmark",
            Spread::of(calls.iter().map(|sample| sample.per_second)),
            Goal::None,
        ),
    ])
}

/// Members of the line join again, and newcomers join, both by redis-benchmark.
pub fn run_again(args: &Args) -> anyhow::Result<Vec<Row>> {
    let redis = servers::redis()?;
    let mut connection = store::connect(&redis)?;
    // Only to configure the room.
    drop(servers::gateway(&args.binary, &redis)?);
    let script = load_script(&mut connection)?;
    store::fill(&mut connection, WAITING)?;
    let members = (0..MEMBERS).map(|index| (format!("{OLD}{index:012}"), visitors::score(WAITING + index).0));
    store::add(&mut connection, &members.collect::<Vec<_>>())?;
    let (mut first, mut again) = (Calls::new(&redis, script.clone(), NEW), Calls::new(&redis, script, OLD));
    let samples =
        in_turn(args.rounds, vec![Box::new(|| again.run(args, MEMBERS)), Box::new(|| first.run(args, STRANGERS))])?;
    let [again, first] = &samples[..] else { anyhow::bail!("two subjects") };
    let ratio = |value: fn(&Sample) -> f64| Spread::of_ratios(again, first, value);
    Ok(vec![
        Row::new(
            "repeated joins ÷ first joins, redis-benchmark -P 16, per second",
            ratio(|sample| sample.per_second),
            Goal::AtLeast(3.0),
        ),
        Row::new("… per second of Redis on a processor", ratio(|sample| sample.per_cpu_second), Goal::AtLeast(3.0)),
    ])
}

fn load_script(connection: &mut redis::Connection) -> anyhow::Result<String> {
    Ok(redis::cmd("SCRIPT").arg("LOAD").arg(store::JOIN).query(connection)?)
}

/// The join of one visitor a call.
struct Calls<'a> {
    redis: &'a Server,
    script: String,
    prefix: &'static str,
    per_round: u32,
}

impl<'a> Calls<'a> {
    fn new(redis: &'a Server, script: String, prefix: &'static str) -> Self {
        Self { redis, script, prefix, per_round: 10_000 }
    }

    /// One round, with as many calls as the last round says fill the time. `visitors` is how many different ones come.
    fn run(&mut self, args: &Args, visitors: u32) -> anyhow::Result<Sample> {
        let before = self.redis.cpu_seconds()?;
        let (port, calls, visitors) = (self.redis.port.to_string(), self.per_round.to_string(), visitors.to_string());
        let keys = ["line", "seen", "called", "inside", "state", "notes", "over", "roster"]
            .map(|part| format!("stanchion:{{main}}:{part}"));
        let output = Command::new("redis-benchmark")
            .args(["-h", "127.0.0.1", "-p", &port, "-c", "50", "-P", "16", "-n", &calls, "-r", &visitors, "--csv"])
            .args(["EVALSHA", &self.script, "8"])
            .args(keys)
            .args([&format!("{}__rand_int__", self.prefix), "", "", "1", "0"])
            .output()?;
        let cpu = self.redis.cpu_seconds()? - before;
        let said = String::from_utf8_lossy(&output.stdout);
        let per_second =
            said.lines().last().and_then(|line| line.rsplit("\",\"").nth(6)?.trim_matches('"').parse::<f64>().ok());
        let per_second = per_second
            .with_context(|| format!("redis-benchmark said {said} {}", String::from_utf8_lossy(&output.stderr)))?;
        let sample = Sample { per_second, per_cpu_second: f64::from(self.per_round) / cpu, p99_ms: f64::NAN };
        self.per_round = count(per_second * args.time().as_secs_f64()).max(1_000);
        Ok(sample)
    }
}
