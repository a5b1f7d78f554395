//! Benchmarks of the line: `cargo bench --bench line`.
//!
//! Nothing here is an absolute number. Each figure is a ratio to a peer or a limit that ran in turn with it, on the same
//! machine, in the same minutes: rounds are interleaved in shuffled order, and the median of the paired ratios is told.
//! Everything it starts listens on loopback only, and ends with it.

mod args;
mod client;
mod draw;
mod figures;
mod figures_table;
mod joins;
mod polls;
#[expect(clippy::unwrap_used, clippy::expect_used, reason = "written for tests")]
#[expect(dead_code, reason = "the tests' own, which want more of it")]
#[path = "../integration/support/postgres.rs"]
mod postgres;
mod proxy;
#[expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "written for tests")]
#[expect(dead_code, reason = "the tests' own, which want more of it")]
#[path = "../integration/support/redis_server.rs"]
mod redis_server;
mod refresh;
mod script_times;
mod seat_clients;
mod seats;
mod servers;
mod size;
mod store;
mod visitors;
mod wrk;

use anyhow::Context as _;
use clap::Parser as _;

use self::{
    args::{Args, Benchmark},
    figures_table::Table,
};

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    servers::require_programs()?;
    let mut table = Table::default();
    for benchmark in args.chosen() {
        eprintln!("{benchmark} …");
        let rows = match benchmark {
            Benchmark::Refresh => refresh::run(&args),
            Benchmark::Polls => polls::run(&args),
            Benchmark::Joins => joins::run(&args),
            Benchmark::Rejoins => joins::run_again(&args),
            Benchmark::Size => size::run(&args),
            Benchmark::Scripts => script_times::run(&args),
            Benchmark::Seats => seats::run(&args),
            Benchmark::Draw => draw::run(&args),
            Benchmark::Proxy => proxy::run(&args),
        };
        table.add(benchmark, rows.with_context(|| format!("benchmark {benchmark}"))?);
    }
    print!("{table}");
    if let Some(file) = &args.json {
        std::fs::write(file, table.json()).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
