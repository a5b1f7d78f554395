//! Plays an opening against a running system from outside, over HTTP only, and judges every guarantee it can check.
//!
//! A [`Plan`] says who comes. Each person is a task with a browser's habits: a cookie jar, one kept-alive connection a
//! tab, polls when told to. What they live through becomes a [`record::Record`], and the [`verdict`] is a pure function
//! of all records, of the room's limits and of the box office's audit. Nothing is taken from the system's own counters
//! that a visitor's tokens can tell.
//!
//! [`simulate`] plays no system at all: a whole sale on virtual time, with the room's own scripts, in seconds.

pub mod audit;
pub mod figures;
pub mod personality;
pub mod plan;
pub mod progress;
pub mod record;
pub mod redis_probe;
pub mod report;
pub mod simulate;
pub mod verdict;

mod buyer;
mod client;
mod jar;
mod line;
mod shop;
mod tabs;
mod tally;
mod visitor;

pub use plan::{Arrivals, Mix, Plan, RehearseError};
pub use progress::{Progress, Standing};
pub use report::Report;

use std::{
    sync::{Arc, OnceLock, atomic::Ordering},
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock as _, SystemClock};
use audit::{Admin, Audit, Limits};
use client::Target;
use figures::Figures;
use personality::Personality;
use record::Record;
use redis_probe::Samples;
use tally::Tally;
use verdict::{Evidence, Known, judge};
use visitor::World;

/// Plays `plan`, with progress on the terminal, and judges what happened. Dropping the future ends every visitor.
///
/// # Errors
/// When the rehearsal cannot be played at all; a broken guarantee is part of the [`Report`].
pub async fn play(plan: Plan) -> Result<Report, RehearseError> {
    play_showing(plan, &*progress::terminal()).await
}

/// Like [`play`], with progress shown by `progress`.
///
/// # Errors
/// As [`play`].
pub async fn play_showing(plan: Plan, progress: &dyn Progress) -> Result<Report, RehearseError> {
    plan.check()?;
    allow_sockets(&plan)?;
    let target = Arc::new(Target::find(&plan.url).await?);
    let admin = plan.admin.clone().filter(|_| !plan.no_audit).map(Admin::at);
    let limits = limits(&plan, admin.as_ref()).await;
    let office = plan.audit.clone().or_else(|| plan.admin.clone()).filter(|_| !plan.no_audit).map(Admin::at);
    let audit_before = match &office {
        Some(office) => office.audit(plan.event.as_deref().unwrap_or("demo")).await.ok(),
        None => None,
    };

    let stop = CancellationToken::new();
    let probe = tokio::spawn(probe(plan.redis.clone(), plan.room.clone(), stop.child_token()));
    let tally = Arc::new(Tally::default());
    let world = Arc::new(World {
        plan,
        target,
        tally: Arc::clone(&tally),
        start: Instant::now() + Duration::from_millis(200),
        stop: stop.clone(),
        hopeless: OnceLock::new(),
    });
    let records = run(&world, progress).await;
    let took = world.start.elapsed();
    stop.cancel();
    if let Some(error) = world.hopeless.get() {
        return Err(error.clone());
    }

    let plan = &world.plan;
    let event = plan.event.clone().or_else(|| tally.main_event()).unwrap_or_else(|| "demo".to_owned());
    let figures = Figures::of(&records, &tally, took, tally.take_unexpected());
    let evidence = Evidence {
        limits,
        audit_before,
        audit_after: audit(plan, office.as_ref(), &event).await,
        redis: probe.await.ok().flatten(),
        unexpected: figures.unexpected.clone(),
        network_errors: figures.network_errors.values().sum(),
        records,
    };
    Ok(Report::new(judge(&evidence), figures, plan))
}

/// Plays every visitor, showing progress, until all are gone or the deadline passes.
async fn run(world: &Arc<World>, progress: &dyn Progress) -> Vec<Record> {
    let mut visitors = JoinSet::new();
    for number in 0..world.plan.users {
        visitors.spawn(visitor::play(Arc::clone(world), number));
    }
    let mut records = Vec::with_capacity(visitors.len());
    let deadline = sleep_until(world.start + world.plan.deadline);
    tokio::pin!(deadline);
    let mut ticks = interval(Duration::from_millis(200));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            finished = visitors.join_next() => match finished {
                Some(Ok(record)) => records.push(record),
                // A panic: the default record says "unfinished", which breaks the verdict.
                Some(Err(_)) => records.push(Record::default()),
                None => break,
            },
            _ = ticks.tick() => progress.show(&standing(world)),
            () = &mut deadline, if !world.stop.is_cancelled() => world.stop.cancel(),
        }
    }
    progress.show(&standing(world));
    progress.finish();
    records
}

fn standing(world: &World) -> Standing {
    let tally = &world.tally;
    Standing {
        users: u64::from(world.plan.users),
        arrived: tally.arrived.load(Ordering::Relaxed),
        waiting: tally.waiting.load(Ordering::Relaxed),
        inside: tally.inside.load(Ordering::Relaxed),
        hoping: tally.hoping.load(Ordering::Relaxed),
        hold_seconds: tally.hold_seconds.load(Ordering::Relaxed),
        bought: tally.bought.load(Ordering::Relaxed),
        gone: tally.gone.load(Ordering::Relaxed),
        requests: tally.requests.load(Ordering::Relaxed),
    }
}

const NO_ADMIN: &str = "the private listener was not asked";
const CURE_LIMITS: &str = "give the gateway's --admin URL, or all of --capacity, --rate and --rate-burst, or --no-audit \
                           to leave this out";
const CURE_AUDIT: &str = "give the private listener of the box office with --box-office-admin URL, or --no-audit to \
                          leave this out";

async fn limits(plan: &Plan, admin: Option<&Admin>) -> Known<Limits> {
    if let (Some(capacity), Some(rate), Some(burst)) = (plan.capacity, plan.rate, plan.burst) {
        return Known::Is(Limits { capacity, rate, burst });
    }
    match admin {
        None if plan.no_audit => Known::LeftOut,
        None => Known::Missing { why: NO_ADMIN.to_owned(), cure: CURE_LIMITS },
        Some(admin) => match admin.limits(&plan.room).await {
            Ok(told) => Known::Is(Limits {
                capacity: plan.capacity.unwrap_or(told.capacity),
                rate: plan.rate.unwrap_or(told.rate),
                burst: plan.burst.unwrap_or(told.burst),
            }),
            Err(why) => Known::Missing { why, cure: CURE_LIMITS },
        },
    }
}

async fn audit(plan: &Plan, office: Option<&Admin>, event: &str) -> Known<Audit> {
    match office {
        None if plan.no_audit => Known::LeftOut,
        None => Known::Missing { why: NO_ADMIN.to_owned(), cure: CURE_AUDIT },
        Some(office) => match office.quiet_audit(event).await {
            Ok(audit) => Known::Is(audit),
            Err(why) => Known::Missing { why, cure: CURE_AUDIT },
        },
    }
}

async fn probe(redis: Option<String>, room: String, stop: CancellationToken) -> Option<Result<Samples, String>> {
    match redis_probe::connect(&redis?).await {
        Ok(redis) => Some(Ok(redis_probe::watch(redis, room, stop).await)),
        Err(why) => Some(Err(why)),
    }
}

/// Sockets besides those of visitors: the runtime's own, the terminal, Redis, the private listener, and connections
/// that are just closing.
const SPARE_SOCKETS: u64 = 256;

/// Raises the limit of open files to what the plan needs: one a tab.
fn allow_sockets(plan: &Plan) -> Result<(), RehearseError> {
    let people = (0..u64::from(plan.users)).map(|number| Personality::of(plan.mix, plan.seed, number));
    let needed = people.map(Personality::tabs).sum::<u64>() + SPARE_SOCKETS;
    // A system that cannot tell its limit has none we could raise.
    let allowed = rlimit::increase_nofile_limit(needed).unwrap_or(needed);
    if allowed < needed { Err(RehearseError::Files { needed, allowed }) } else { Ok(()) }
}

fn now_ms() -> u64 {
    SystemClock.unix_millis()
}

/// A count as a real number; exact below 2^53, which no count or time of ours reaches.
#[expect(clippy::cast_precision_loss, reason = "see above")]
fn real(count: u64) -> f64 {
    count as f64
}
