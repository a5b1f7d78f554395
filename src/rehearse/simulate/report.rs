//! What a simulation found.

use std::{fmt, time::Duration};

use serde::Serialize;

use super::{
    Scenario,
    book::People,
    bottleneck::{Bottleneck, Limit},
    figures::{Stretch, Waits, seconds},
    sale::{End, Played},
    what_if::WhatIf,
};
use crate::rehearse::verdict::{Judgement, Row};

/// What a simulation found. Serialises to the JSON of `--json`, displays as the tables on the terminal. Times are
/// seconds of virtual time, since the opening where they are moments.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether every guarantee held at every step.
    pub held: bool,
    /// Guarantee by guarantee.
    pub verdict: Vec<Row>,
    /// How the sale ended.
    pub end: End,
    /// When the last ticket was sold or, without tickets to run out of, the last visitor let in.
    pub seconds: f64,
    /// When the last visitor was let in; `None` when nobody was.
    pub last_admission: Option<f64>,
    /// How many were let in.
    pub admitted: u64,
    /// How many arrived no later than the last one called or let in: nobody behind them had a chance.
    pub reached: u64,
    /// What became of everybody.
    pub people: People,
    /// Tickets sold.
    pub tickets: u32,
    /// The most called and inside at once.
    pub peak_inside: u32,
    /// Waits by tenth of the crowd, in order of arrival.
    pub waits_by_tenth: Vec<Waits>,
    /// The waits of all.
    pub waits: Waits,
    /// The sale in ten stretches.
    pub over_time: Vec<Stretch>,
    /// What holds the sale up.
    pub bottleneck: Bottleneck,
    /// The same sale at other limits.
    pub what_if: Option<WhatIf>,
    /// What it takes to play the same again.
    pub settings: Settings,
}

/// The scenario.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "as in the scenario")]
pub struct Settings {
    pub users: u32,
    pub ramp_seconds: f64,
    pub capacity: u32,
    pub rate: f64,
    pub burst: u32,
    pub claim_window_seconds: f64,
    pub tickets: Option<u32>,
    pub visit_seconds: f64,
    pub buy_ratio: f64,
    pub tickets_per_buyer: f64,
    pub no_shows: f64,
    pub leave_early: f64,
    pub patience_seconds: f64,
    pub deadline_seconds: f64,
    pub seed: u64,
}

impl Settings {
    fn of(scenario: &Scenario) -> Self {
        let habits = scenario.habits;
        Self {
            users: scenario.users,
            ramp_seconds: scenario.arrivals.span().as_secs_f64(),
            capacity: scenario.capacity,
            rate: scenario.rate,
            burst: scenario.burst,
            claim_window_seconds: scenario.claim_window.as_secs_f64(),
            tickets: scenario.tickets,
            visit_seconds: habits.visit.as_secs_f64(),
            buy_ratio: habits.buy_ratio,
            tickets_per_buyer: habits.tickets_per_buyer,
            no_shows: habits.no_shows,
            leave_early: habits.leave_early,
            patience_seconds: habits.patience.as_secs_f64(),
            deadline_seconds: scenario.deadline.as_secs_f64(),
            seed: scenario.seed,
        }
    }
}

/// How long a sale took: to the last ticket, or to the last admission when tickets did not run out.
pub(super) fn duration_us(played: &Played) -> u64 {
    match played.end {
        End::SoldOut | End::Deadline => played.ended_us,
        End::EverybodyServed => played.tape.last_admission_us().unwrap_or_default(),
    }
}

impl Report {
    pub(super) fn new(scenario: &Scenario, played: Played, what_if: Option<WhatIf>) -> Self {
        let (waits_by_tenth, waits) = played.tape.waits();
        let duration_us = duration_us(&played);
        let mut verdict = played.verdict.clone();
        if let Some(other) = &what_if {
            verdict.push(Row::new("", "the same at other limits", other.held, format!("{} sales", other.rows.len())));
        }
        Self {
            held: verdict.iter().all(|row| row.judgement == Judgement::Held),
            verdict,
            end: played.end,
            seconds: seconds(duration_us),
            last_admission: played.tape.last_admission_us().map(seconds),
            admitted: played.tape.admissions(),
            reached: played.tape.reached(),
            people: played.people,
            tickets: played.sold,
            peak_inside: played.peak,
            waits_by_tenth,
            waits,
            over_time: played.tape.stretches(duration_us),
            bottleneck: Bottleneck::of(scenario),
            what_if,
            settings: Settings::of(scenario),
        }
    }

    /// Whether every guarantee held; the exit status of `stanchion rehearse --simulate` follows it.
    pub fn held(&self) -> bool {
        self.held
    }
}

/// Whole seconds in words, tenths below ten seconds.
fn lasting(seconds: f64) -> String {
    if seconds < 10.0 {
        return format!("{seconds:.1}s");
    }
    humantime::format_duration(Duration::from_secs_f64(seconds.round())).to_string()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.verdict {
            let mark = if row.judgement == Judgement::Held { "held" } else { "BROKEN" };
            writeln!(f, "{mark:>7}  {:<3}  {:<30} {}", row.guarantee, row.what, row.detail)?;
        }
        self.show_settings(f)?;
        self.show_end(f)?;
        writeln!(f, "bottleneck: {}", self.bottleneck)?;
        self.show_waits(f)?;
        self.show_time(f)?;
        self.what_if.iter().try_for_each(|what_if| show_what_if(f, what_if))?;
        writeln!(f, "\nadvice: {}", self.advice())?;
        writeln!(f, "\nplay it again with: --seed {}", self.settings.seed)?;
        let conclusion = if self.held { "Every guarantee held at every step." } else { "A guarantee was broken." };
        writeln!(f, "{conclusion}")
    }
}

impl Report {
    /// What to change, in a sentence.
    fn advice(&self) -> String {
        let Settings { rate, capacity, .. } = self.settings;
        let (limit, higher) = match self.bottleneck.limit {
            Limit::Capacity => ("capacity", (rate, f64::from(capacity) * 2.0)),
            Limit::Rate => ("rate", (rate * 2.0, f64::from(capacity))),
            Limit::Arrivals => return "these limits suffice for a crowd that comes so slowly".to_owned(),
        };
        let now = lasting(self.seconds);
        let gain = self.what_if.iter().flat_map(|what_if| &what_if.rows);
        let gain = gain.into_iter().find(|row| row.end != End::Deadline && (row.rate, row.capacity) == higher);
        let gain = gain.map_or_else(String::new, |row| {
            format!(": twice the {limit} would end the sale after {} instead of {now}", lasting(row.seconds))
        });
        let other = if limit == "capacity" { "rate" } else { "capacity" };
        format!("the {limit} decides; raise it as far as the shop can stand{gain}. A higher {other} alone gains nothing")
    }

    fn show_settings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { users, ramp_seconds, capacity, rate, burst, tickets, .. } = &self.settings;
        let come =
            if *ramp_seconds > 0.0 { format!("within {}", lasting(*ramp_seconds)) } else { "at once".to_owned() };
        let tickets = tickets.map_or_else(|| "tickets without end".to_owned(), |tickets| format!("{tickets} tickets"));
        writeln!(
            f,
            "\n{users} people come {come}; {tickets}; capacity {capacity}, rate {rate} a second (burst {burst})"
        )
    }

    fn show_end(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let people = &self.people;
        let after = lasting(self.seconds);
        match self.end {
            End::SoldOut => write!(f, "the last ticket is sold after {after}")?,
            End::EverybodyServed => write!(f, "the last visitor is let in after {after}")?,
            End::Deadline => write!(f, "NOT OVER after {after}")?,
        }
        writeln!(f, "; {} were let in, at most {} called and inside", self.admitted, self.peak_inside)?;
        writeln!(
            f,
            "people: {} bought {} tickets, {} looked and did not buy, {} did not come when called, {} gave up waiting",
            people.bought, self.tickets, people.browsed, people.no_shows, people.gave_up
        )?;
        let late = people.turned_away + people.still_called + people.still_inside;
        if late > 0 {
            writeln!(
                f,
                "        {} left with nothing at the end ({} in line or not yet come, {} called, {} inside); number {} of the crowd was the last whose turn came",
                late, people.turned_away, people.still_called, people.still_inside, self.reached
            )?;
        }
        Ok(())
    }

    fn show_waits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nwait from arrival to the door, by tenth of the crowd in order of arrival")?;
        writeln!(
            f,
            "  {:<5} {:>9} {:>13} {:>13} {:>13} {:>13}",
            "tenth", "let in", "median", "90 %", "99 %", "longest"
        )?;
        let numbered = self.waits_by_tenth.iter().zip(1..).map(|(waits, tenth)| (tenth.to_string(), waits));
        for (tenth, waits) in numbered.chain([("all".to_owned(), &self.waits)]) {
            let times = [waits.p50, waits.p90, waits.p99, waits.max];
            let [p50, p90, p99, max] = times.map(|time| if waits.people > 0 { lasting(time) } else { "-".to_owned() });
            writeln!(f, "  {tenth:<5} {:>9} {p50:>13} {p90:>13} {p99:>13} {max:>13}", waits.people)?;
        }
        Ok(())
    }

    fn show_time(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n  {:<13} {:>17} {:>9} {:>9}", "until", "let in per second", "inside", "waiting")?;
        self.over_time.iter().try_for_each(|stretch| {
            let Stretch { until, admitted_per_second, waiting, inside } = stretch;
            writeln!(f, "  {:<13} {admitted_per_second:>17.1} {inside:>9} {waiting:>9}", lasting(*until))
        })
    }
}

fn show_what_if(f: &mut fmt::Formatter<'_>, what_if: &WhatIf) -> fmt::Result {
    let how = match what_if.scaled_down_by {
        1 => "the same crowd".to_owned(),
        by => format!("by a crowd, tickets and limits of 1/{by} the size"),
    };
    writeln!(f, "\nwhat if: the same sale at other limits ({how})")?;
    // Higher than what the capacity serves in the long run: at the opening all of it is free.
    let heads = ["rate", "capacity", "over after", "median wait", "mean let in per s"];
    writeln!(f, "  {:>9} {:>9} {:>13} {:>13} {:>18}", heads[0], heads[1], heads[2], heads[3], heads[4])?;
    what_if.rows.iter().try_for_each(|row| {
        let over = if row.end == End::Deadline { "not over".to_owned() } else { lasting(row.seconds) };
        let (wait, flow) = (lasting(row.median_wait), row.admitted_per_second);
        writeln!(f, "  {:>9} {:>9} {over:>13} {wait:>13} {flow:>18.1}", row.rate, row.capacity)
    })
}
