//! How long one run of a script keeps Redis from everything else, in a long line.

use std::{sync::Arc, time::Duration};

use redis::Connection;
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
const LEAST: &str = "local popped = redis.call('ZPOPMIN', KEYS[1], 50)
for i = 1, #popped, 2 do redis.call('SET', 'stanchion:{main}:' .. popped[i], '1', 'EX', 60) end
return #popped";
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

    let (runtime, queue) = (&runtime, &queue);
    let mut rows = calls(&redis, &mut connection, &mut || {
        // The bucket fills within a moment.
        std::thread::sleep(Duration::from_millis(2));
        Ok(runtime.block_on(queue.call(50))?.called)
    })?;
    let mut measure = |name: &str, mut script: Box<dyn FnMut(u32) -> anyhow::Result<()>>| {
        // Once for the connection and the script to be known.
        script(0)?;
        let micros: anyhow::Result<Vec<f64>> =
            (1..=RUNS).map(|round| store::blocked(&mut connection, &mut || script(round))).collect();
        rows.push(Row::new(format!("µs that Redis is blocked by {name}"), Spread::of(micros?), Goal::None));
        anyhow::Ok(())
    };
    let batch = u32::try_from(BATCH)?;
    measure(
        "100 joins at once",
        Box::new(|_| {
            let arrival = |_| Arrival { visitor: VisitorId::random(), proof: None, may_enter: true };
            runtime.block_on(queue.join(&(0..batch).map(arrival).collect::<Vec<_>>()))?;
            Ok(())
        }),
    )?;
    let members = |round: u32| (0..batch).map(move |index| args.waiting / 2 + round * batch + index);
    measure(
        "100 who join again",
        Box::new(|round| {
            let arrival = |index| Arrival { visitor: visitors::id(index), proof: None, may_enter: true };
            runtime.block_on(queue.join(&members(round).map(arrival).collect::<Vec<_>>()))?;
            Ok(())
        }),
    )?;
    measure(
        "100 who are present",
        Box::new(|round| {
            let seen = |index| (visitors::id(index), Proof { score: visitors::score(index), issued_at_ms: 1 });
            runtime.block_on(queue.seen(&members(round).map(seen).collect::<Vec<_>>()))?;
            Ok(())
        }),
    )?;
    measure(
        "a snapshot",
        Box::new(|_| {
            runtime.block_on(queue.snapshot(0))?;
            Ok(())
        }),
    )?;
    Ok(rows)
}

/// Calls of 50, in turn with the least that an admission of 50 by a script can be.
fn calls(
    redis: &servers::Server,
    connection: &mut Connection,
    call: &mut dyn FnMut() -> anyhow::Result<u32>,
) -> anyhow::Result<Vec<Row>> {
    let mut other = store::connect(redis)?;
    let least: String = redis::cmd("SCRIPT").arg("LOAD").arg(LEAST).query(&mut other)?;
    call()?;
    let (mut calls, mut leasts) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        calls.push(store::blocked(connection, &mut || {
            let called = call()?;
            anyhow::ensure!(called == 50, "{called} called");
            Ok(())
        })?);
        leasts.push(store::blocked(connection, &mut || {
            Ok(redis::cmd("EVALSHA").arg(&least).arg(1).arg("stanchion:{main}:line").exec(&mut other)?)
        })?);
    }
    let ratio = Spread::of_ratios(&calls, &leasts, |micros| *micros);
    Ok(vec![
        Row::new("µs that Redis is blocked by a call of 50", Spread::of(calls), Goal::AtMost(MOST_MICROS)),
        Row::new("… ÷ a script of one ZPOPMIN of 50 and 50 SETs", ratio, Goal::None),
        Row::new("… that script, in µs", Spread::of(leasts), Goal::None),
    ])
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
