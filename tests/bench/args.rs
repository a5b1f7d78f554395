//! What to measure, and how long.

use std::{fmt, path::PathBuf, time::Duration};

use clap::{Parser, ValueEnum};

/// One benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Benchmark {
    /// Redis commands that polls cause.
    Refresh,
    /// Polls against a constant answer, and against nginx.
    Polls,
    /// Joins through HTTP against redis-benchmark.
    Joins,
    /// The repeat of a join against a first one.
    Rejoins,
    /// A million waiting against a thousand.
    Size,
    /// How long one run of a script blocks Redis.
    Scripts,
    /// Holds through HTTP against the bare Redis command and against a database.
    Seats,
    /// The draw of a long roster.
    Draw,
    /// Requests of admitted visitors, proxied, against nginx and `HAProxy` before the same origin.
    Proxy,
}

impl fmt::Display for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}

/// Benchmarks of the line, as ratios to peers and limits that run in turn on this machine.
#[derive(Debug, Parser)]
pub struct Args {
    /// Which ones; all of them when none is named.
    benchmarks: Vec<Benchmark>,
    /// How many interleaved rounds.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Seconds of each subject in each round.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// Keep-alive connections; joins use four times as many too.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub connections: u32,
    /// How many wait in the long line.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(10_000..=5_000_000))]
    pub waiting: u32,
    /// The gateway's program.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_stanchion"))]
    pub binary: PathBuf,
    /// Also writes every figure to this file.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// What cargo says to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Args {
    /// The benchmarks asked for.
    pub fn chosen(&self) -> Vec<Benchmark> {
        if self.benchmarks.is_empty() { Benchmark::value_variants().to_vec() } else { self.benchmarks.clone() }
    }

    /// How long each subject runs in each round.
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }
}
