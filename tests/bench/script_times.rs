//! How long one run of a script keeps Redis from everything else, in a long line.

use std::{sync::Arc, time::Duration};

use stanchion::{
    queue::{Arrival, Past, Policy, Proof, Queue, Schedule, VisitorId, scripts::BATCH},
    store::redis_engine::RedisEngine,
};

use super::{
    args::Args,
    figures::{Goal, Row, Spread},
    servers, store, visitors,
};

/// Runs of each script.
const RUNS: u32 = 60;
/// The most that a batch of calls may take, in microseconds.
const MOST_MICROS: f64 = 400.0;

pub fn run(args: &Args) -> anyhow::Result<Vec<Row>> {
    let redis = servers::redis()?;
    let mut connection = store::connect(&redis)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let url = format!("redis://127.0.0.1:{}", redis.port);
    let engine = runtime.block_on(RedisEngine::connect(&url))?;
    let queue = Queue::new(Arc::new(engine), &"main".parse()?);
    runtime.block_on(queue.configure(&policy(), Past::Blank))?;
    store::fill(&mut connection, args.waiting)?;

    let mut rows = Vec::new();
    let mut measure = |name: &str, goal, mut script: Box<dyn FnMut(u32) -> anyhow::Result<()>>| {
        // Once for the connection and the script to be known.
        script(0)?;
        let mut micros = Vec::new();
        for round in 1..=RUNS {
            let before = store::scripts(&mut connection)?;
            script(round)?;
            let after = store::scripts(&mut connection)?;
            anyhow::ensure!(after.runs == before.runs + 1, "{name} was not one run");
            micros.push(after.micros - before.micros);
        }
        rows.push(Row::new(format!("µs that Redis is blocked by {name}"), Spread::of(micros), goal));
        anyhow::Ok(())
    };
    let (runtime, queue) = (&runtime, &queue);
    let batch = u32::try_from(BATCH)?;
    measure(
        "a call of 50",
        Goal::AtMost(MOST_MICROS),
        Box::new(|_| {
            // The bucket fills within a moment.
            std::thread::sleep(Duration::from_millis(2));
            let called = runtime.block_on(queue.call(50))?.called;
            anyhow::ensure!(called == 50, "{called} called");
            Ok(())
        }),
    )?;
    measure(
        "100 joins at once",
        Goal::None,
        Box::new(|_| {
            let arrival = |_| Arrival { visitor: VisitorId::random(), proof: None, may_enter: true };
            runtime.block_on(queue.join(&(0..batch).map(arrival).collect::<Vec<_>>()))?;
            Ok(())
        }),
    )?;
    let members = |round: u32| (0..batch).map(move |index| args.waiting / 2 + round * batch + index);
    measure(
        "100 who join again",
        Goal::None,
        Box::new(|round| {
            let arrival = |index| Arrival { visitor: visitors::id(index), proof: None, may_enter: true };
            runtime.block_on(queue.join(&members(round).map(arrival).collect::<Vec<_>>()))?;
            Ok(())
        }),
    )?;
    measure(
        "100 who are present",
        Goal::None,
        Box::new(|round| {
            let seen = |index| (visitors::id(index), Proof { score: visitors::score(index), issued_at_ms: 1 });
            runtime.block_on(queue.seen(&members(round).map(seen).collect::<Vec<_>>()))?;
            Ok(())
        }),
    )?;
    measure(
        "a snapshot",
        Goal::None,
        Box::new(|_| {
            runtime.block_on(queue.snapshot(0))?;
            Ok(())
        }),
    )?;
    Ok(rows)
}

fn policy() -> Policy {
    Policy {
        capacity: u32::MAX,
        rate: 1e6,
        burst: 50,
        claim_window: Duration::from_hours(1),
        session_ttl: Duration::from_hours(1),
        absent_after: Duration::from_hours(1),
        grace: Duration::from_hours(2),
        settle: Duration::ZERO,
        schedule: Schedule::default(),
    }
}
