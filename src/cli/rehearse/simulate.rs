//! `stanchion rehearse --simulate`: its own flags.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::{
    config::room::default_burst,
    rehearse::{
        progress,
        simulate::{self, Habits, Report, Scenario},
    },
};

/// What only a simulation knows.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Simulation")]
#[group(skip)]
pub struct Args {
    /// Simulate the sale on virtual time, without any system.
    #[arg(long, requires_all = ["capacity", "rate"])]
    simulate: bool,
    /// Tickets there are; 0 never sells out.
    #[arg(long, default_value_t = 50_000, requires = "simulate", value_name = "TICKETS")]
    seats: u32,
    /// Mean time a visitor stays inside.
    #[arg(long, default_value = "2m", requires = "simulate", value_parser = humantime::parse_duration, value_name = "DURATION")]
    visit: Duration,
    /// Share of visitors inside who want to buy.
    #[arg(long, default_value_t = 0.6, requires = "simulate", value_name = "SHARE")]
    buy_ratio: f64,
    /// Tickets a buyer takes, on average.
    #[arg(long, default_value_t = 2.0, requires = "simulate", value_name = "TICKETS")]
    tickets_per_buyer: f64,
    /// Share of called visitors who never come.
    #[arg(long, default_value_t = 0.05, requires = "simulate", value_name = "SHARE")]
    no_shows: f64,
    /// How long a called visitor has to come.
    #[arg(long, default_value = "90s", requires = "simulate", value_parser = humantime::parse_duration, value_name = "DURATION")]
    claim_window: Duration,
    /// Mean time after which those who leave early do.
    #[arg(long, default_value = "10m", requires = "simulate", value_parser = humantime::parse_duration, value_name = "DURATION")]
    patience: Duration,
    /// Leave out the same sale at other limits.
    #[arg(long, requires = "simulate")]
    no_what_if: bool,
}

impl super::Args {
    pub(super) async fn simulate(self) -> anyhow::Result<Report> {
        let what_if = !self.simulation.no_what_if;
        let scenario = self.into_scenario()?;
        // A scenario that makes no sense is said before anything is shown.
        scenario.check()?;
        let begun = Instant::now();
        let played =
            tokio::task::spawn_blocking(move || simulate::simulate(&scenario, what_if, &*progress::terminal()));
        let report = played.await.context("the simulation died")??;
        // Not on standard output, which is the same for the same seed.
        eprintln!("simulated in {:.1} s", begun.elapsed().as_secs_f64());
        Ok(report)
    }

    fn into_scenario(self) -> anyhow::Result<Scenario> {
        let arrivals = self.arrivals();
        let of_room = "--simulate needs --capacity and --rate";
        let (capacity, rate) = (self.capacity.context(of_room)?, self.rate.context(of_room)?);
        let own = self.simulation;
        Ok(Scenario {
            arrivals,
            burst: self.rate_burst.unwrap_or_else(|| default_burst(rate)),
            claim_window: own.claim_window,
            tickets: (own.seats > 0).then_some(own.seats),
            habits: Habits {
                visit: own.visit,
                buy_ratio: own.buy_ratio,
                tickets_per_buyer: own.tickets_per_buyer,
                no_shows: own.no_shows,
                leave_early: self.leave_early,
                patience: own.patience,
            },
            deadline: self.deadline.unwrap_or(Scenario::LONGEST_SALE),
            seed: self.seed,
            ..Scenario::new(self.users, capacity, rate)
        })
    }
}
