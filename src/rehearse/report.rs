//! The outcome of a rehearsal: a verdict, and the figures around it.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde::Serialize;

use super::{
    figures::{Figures, Spread},
    plan::{Arrivals, Plan},
    verdict::{Judgement, Row},
};

/// What a rehearsal found. Serialises to the JSON of `--json`, displays as the table on the terminal.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether no guarantee was broken and none stayed unknown.
    pub held: bool,
    /// The verdict, guarantee by guarantee.
    pub verdict: Vec<Row>,
    /// What happened, in figures.
    pub figures: Figures,
    /// What it takes to play the same again.
    pub settings: Settings,
}

/// The plan, as far as it decides what people do.
#[derive(Debug, Serialize)]
pub struct Settings {
    url: String,
    users: u32,
    arrivals: &'static str,
    ramp_seconds: f64,
    seed: u64,
    room: String,
    event: Option<String>,
    five_tabs: f64,
    f5: f64,
    leave_early: f64,
    abandon_hold: f64,
    deadline_seconds: f64,
    think_ms: [u64; 2],
}

impl Settings {
    pub(super) fn of(plan: &Plan) -> Self {
        let millis = |duration: &Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            url: plan.url.to_string(),
            users: plan.users,
            arrivals: if plan.arrivals == Arrivals::Burst { "burst" } else { "ramp" },
            ramp_seconds: plan.arrivals.span().as_secs_f64(),
            seed: plan.seed,
            room: plan.room.clone(),
            event: plan.event.clone(),
            five_tabs: plan.mix.five_tabs,
            f5: plan.mix.f5,
            leave_early: plan.mix.leave_early,
            abandon_hold: plan.mix.abandon_hold,
            deadline_seconds: plan.deadline.as_secs_f64(),
            think_ms: [millis(plan.think.start()), millis(plan.think.end())],
        }
    }
}

impl Report {
    pub(super) fn new(verdict: Vec<Row>, figures: Figures, plan: &Plan) -> Self {
        let held = verdict.iter().all(|row| !matches!(row.judgement, Judgement::Broken | Judgement::Unknown));
        Self { held, verdict, figures, settings: Settings::of(plan) }
    }

    /// Whether no guarantee was broken and none stayed unknown, as nothing is passed over in silence; the exit status of `stanchion rehearse` follows it.
    pub fn held(&self) -> bool {
        self.held
    }

    fn conclusion(&self) -> String {
        let unknown: Vec<String> =
            self.verdict.iter().filter(|row| row.judgement == Judgement::Unknown).map(label).collect();
        let broken = self.verdict.iter().any(|row| row.judgement == Judgement::Broken);
        match (broken, unknown.as_slice()) {
            (false, []) => "Every guarantee that was checked held.".to_owned(),
            (true, []) => "A guarantee was broken.".to_owned(),
            (true, _) => {
                format!("A guarantee was broken, and {} could not be checked: {}.", unknown.len(), unknown.join("; "))
            }
            (false, _) => {
                format!("No guarantee broke, but {} could not be checked: {}.", unknown.len(), unknown.join("; "))
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.verdict {
            let mark = match row.judgement {
                Judgement::Held => "held",
                Judgement::Broken => "BROKEN",
                Judgement::Unknown => "unknown",
                Judgement::NotChecked => "-",
            };
            writeln!(f, "{mark:>7}  {:<3}  {:<53} {}", row.guarantee, row.what, row.detail)?;
        }
        writeln!(f)?;
        show_figures(f, &self.figures)?;
        let settings = &self.settings;
        writeln!(f, "\nplay it again with: --users {} --seed {}", settings.users, settings.seed)?;
        writeln!(f, "{}", self.conclusion())
    }
}

fn label(row: &Row) -> String {
    if row.guarantee.is_empty() { row.what.to_owned() } else { format!("{} {}", row.guarantee, row.what) }
}

fn show_figures(f: &mut fmt::Formatter<'_>, figures: &Figures) -> fmt::Result {
    writeln!(
        f,
        "{:.1} s, {} requests, {:.0} per second, at most {} inside",
        figures.seconds, figures.requests, figures.requests_per_second, figures.peak_inside
    )?;
    let outcomes: Vec<String> = figures.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    writeln!(f, "people: {}; {} tickets", outcomes.join(", "), figures.tickets)?;
    for (what, count) in figures.unexpected.iter().chain(&figures.network_errors) {
        writeln!(f, "      {count} × {what}")?;
    }
    if let Some(waits) = &figures.wait_ms {
        writeln!(f, "wait from arrival to the door: {}", spread(waits))?;
    }
    for (kind, latency) in &figures.latency_ms {
        let statuses = figures.statuses.get(kind).map(show_statuses).unwrap_or_default();
        writeln!(f, "{kind:>13}: {}  {statuses}", spread(latency))?;
    }
    Ok(())
}

fn spread(spread: &Spread) -> String {
    format!(
        "{:>7} × median {:>8.1} ms, 99 % {:>8.1} ms, max {:>8.1} ms",
        spread.count, spread.p50, spread.p99, spread.max
    )
}

fn show_statuses(statuses: &BTreeMap<u16, u64>) -> String {
    statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect::<Vec<_>>().join(", ")
}
