//! A whole sale on virtual time: the room's own Lua scripts on the in-process engine, the admission steps that a node
//! takes, and a crowd drawn by a seed. Hours pass in seconds, nothing sleeps, no network is touched, and the same
//! [`Scenario`] gives the same [`Report`] bit for bit.
//!
//! # What is real and what is modelled
//!
//! Every join, call, claim, release, leave and sweep is one run of the script that serves visitors, at the virtual time
//! it happens. People who come within the same tenth of a second join together, at its end, as a node's batched joins do.
//!
//! Presence is modelled: reporting a million waiting people every few seconds would be all the work there is. So nobody
//! counts as absent; whoever gives up says so ([`Habits::leave_early`]), and whoever vanishes just before the call lets
//! the claim window pass ([`Habits::no_shows`]). Renewals are modelled too: a session lasts as long as the visit. The
//! shop takes as many visitors as the capacity allows without getting slower.
//!
//! Where everybody is, is also kept in a [`book`] of the simulation's own, which predicts what the scripts must answer.
//! Where the two differ, a guarantee is broken, and the report says which.

pub mod report;
pub mod scenario;

mod book;
mod bottleneck;
mod checks;
mod crowd;
mod figures;
mod helm;
mod room;
mod sale;
mod what_if;

pub use book::People;
pub use bottleneck::{Bottleneck, Limit};
pub use figures::{Stretch, Waits};
pub use helm::{Gauges, Helm, Limits};
pub use report::Report;
pub use sale::End;
pub use scenario::{Habits, Scenario};
pub use what_if::WhatIf;

use std::thread;

use super::Progress;
use crate::{config::ConfigError, queue::QueueError};
use sale::Sale;

/// Why a sale could not be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The scenario makes no sense.
    #[error(transparent)]
    Scenario(ConfigError),
    /// A script failed.
    #[error(transparent)]
    Store(#[from] QueueError),
    /// The in-process engine did not answer at once, or a thread died: a defect.
    #[error("the simulation came to a halt: {0}")]
    Halted(&'static str),
}

/// Plays `scenario`, and the same sale at other limits when `what_if` is set. Takes as long as the processor needs, so
/// keep it off an asynchronous runtime's threads.
///
/// # Errors
/// When the scenario makes no sense. A broken guarantee is part of the [`Report`].
pub fn simulate(scenario: &Scenario, what_if: bool, progress: &dyn Progress) -> Result<Report, SimulateError> {
    scenario.check()?;
    thread::scope(|scope| {
        let others = what_if.then(|| scope.spawn(|| what_if::play(scenario)));
        let played = Sale::play(scenario, &mut |_| Limits::of(scenario), progress)?;
        let others = match others.map(thread::ScopedJoinHandle::join) {
            Some(Ok(others)) => Some(others?),
            Some(Err(_)) => return Err(SimulateError::Halted("the thread of the other limits died")),
            None => None,
        };
        Ok(Report::new(scenario, played, others))
    })
}

/// Plays `scenario` with limits that `helm` sets once a virtual second.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_steered(scenario: &Scenario, helm: Helm<'_>, progress: &dyn Progress) -> Result<Report, SimulateError> {
    scenario.check()?;
    Ok(Report::new(scenario, Sale::play(scenario, helm, progress)?, None))
}
