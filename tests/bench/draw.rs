//! The draw of a long roster, as a node carries it out: how long it takes, and how long each step blocks Redis.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use stanchion::{
    queue::{Method, Past, Policy, Queue, Schedule, Score, lottery::Seed, scripts::BATCH},
    store::redis_engine::RedisEngine,
};

use super::{
    args::Args,
    figures::{Goal, Row, Spread},
    servers, store, visitors,
};

/// Read at once, as a node does.
const PAGE: u32 = 1_000;
const EPOCH: u64 = 1;
/// Every so many steps one is timed on its own.
const TIMED: u32 = 50;

pub fn run(args: &Args) -> anyhow::Result<Vec<Row>> {
    let redis = servers::redis()?;
    let mut connection = store::connect(&redis)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let engine = runtime.block_on(RedisEngine::connect(&format!("redis://127.0.0.1:{}", redis.port)))?;
    let queue = Queue::new(Arc::new(engine), &"main".parse()?);
    runtime.block_on(queue.configure(&policy()?, Past::Blank))?;
    fill(&mut connection, args.waiting)?;
    let seed = Seed::new([7; 32]);
    for facts in
        [[Some("a commitment"), None, None], [None, Some("a digest"), None], [None, None, Some("a public value")]]
    {
        runtime.block_on(queue.seal(EPOCH, facts, Some(args.waiting.into())))?;
    }

    let draws = seed.with("a public value");
    let (mut pages, mut stretches, mut steps) = (Vec::new(), Vec::new(), 0_u32);
    let (mut after, began) = (Score(0), Instant::now());
    loop {
        let mut page = Vec::new();
        let micros = store::blocked(&mut connection, &mut || {
            page = runtime.block_on(queue.roster(after, PAGE))?;
            Ok(())
        })?;
        let Some(&(_, last)) = page.last() else { break };
        pages.push(micros);
        for stretch in page.chunks(BATCH) {
            let scores: Vec<_> = stretch.iter().map(|&(visitor, _)| (visitor, draws.of(visitor))).collect();
            let until = stretch.last().map_or(last, |&(_, arrival)| arrival);
            let mut step = || {
                let is_under_way = runtime.block_on(queue.draw(EPOCH, until, false, &scores))?;
                anyhow::ensure!(is_under_way, "no draw is under way");
                Ok(())
            };
            if steps.is_multiple_of(TIMED) {
                stretches.push(store::blocked(&mut connection, &mut step)?);
            } else {
                step()?;
            }
            steps += 1;
        }
        after = last;
    }
    runtime.block_on(queue.draw(EPOCH, after, true, &[]))?;
    let took = began.elapsed().as_secs_f64();
    let line = runtime.block_on(queue.snapshot(0))?.line;
    anyhow::ensure!(line == u64::from(args.waiting), "{line} drew, not {}", args.waiting);
    Ok(vec![
        Row::new(format!("seconds until {} drew, one node at a time", args.waiting), Spread::of([took]), Goal::None),
        Row::new(format!("µs that Redis is blocked by {BATCH} who draw"), Spread::of(stretches), Goal::None),
        Row::new(format!("µs that Redis is blocked by {PAGE} of the roster"), Spread::of(pages), Goal::None),
    ])
}

/// A lottery whose pre-queue is over.
fn policy() -> anyhow::Result<Policy> {
    let now_ms = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    Ok(Policy {
        capacity: 0,
        rate: 1.0,
        burst: 1,
        claim_window: Duration::from_hours(1),
        session_ttl: Duration::from_hours(1),
        absent_after: Duration::from_hours(1),
        grace: Duration::from_hours(2),
        settle: Duration::ZERO,
        schedule: Schedule {
            prequeue_at_ms: Some(now_ms - 2_000),
            opens_at_ms: Some(now_ms - 1_000),
            closes_at_ms: None,
            method: Method::Lottery,
        },
    })
}

/// Puts the first `count` visitors in the roster of the room `main`.
fn fill(connection: &mut redis::Connection, count: u32) -> anyhow::Result<()> {
    for first in (0..count).step_by(10_000) {
        let mut command = redis::cmd("ZADD");
        command.arg(store::key("roster"));
        for index in first..count.min(first + 10_000) {
            command.arg(visitors::score(index).0).arg(visitors::id(index).to_string());
        }
        command.exec(connection)?;
    }
    Ok(())
}
