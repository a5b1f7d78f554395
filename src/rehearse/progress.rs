//! Shows how far the rehearsal is.

use std::{
    io::{IsTerminal as _, Write as _},
    sync::Mutex,
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::time::Instant;

/// Who is where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Everybody the plan brings.
    pub users: u64,
    /// Came so far.
    pub arrived: u64,
    /// Wait in the line.
    pub waiting: u64,
    /// Are in the shop.
    pub inside: u64,
    /// Are in the shop and find every seat sold or held, so they wait for held ones to come back.
    pub hoping: u64,
    /// The longest a hold lasts, as far as anybody was told; 0 before.
    pub hold_seconds: u64,
    /// Have tickets.
    pub bought: u64,
    /// Are gone without tickets, for whatever reason.
    pub gone: u64,
    /// Requests answered.
    pub requests: u64,
}

impl Standing {
    /// Why little moves just now, where that is known: seats that are held and never paid for come back in their time.
    fn patience(&self) -> Option<String> {
        (self.hoping > 0).then(|| {
            let Self { hoping, hold_seconds, .. } = self;
            let lasts = if *hold_seconds > 0 { format!(" (a hold lasts {hold_seconds} s)") } else { String::new() };
            format!("{hoping} waiting for held seats to come back{lasts}")
        })
    }

    fn line(&self) -> String {
        let patience = self.patience().map_or_else(String::new, |why| format!("  {why}"));
        format!(
            "arrived {}/{}  waiting {}  inside {}  bought {}  gone without {}  requests {}{patience}",
            self.arrived, self.users, self.waiting, self.inside, self.bought, self.gone, self.requests
        )
    }
}

/// Something that shows a [`Standing`] a few times a second.
pub trait Progress: Send + Sync {
    /// Shows it.
    fn show(&self, standing: &Standing);

    /// Nothing more comes.
    fn finish(&self) {}
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn show(&self, _: &Standing) {}
}

/// Bars on a terminal, otherwise a line on standard error every five seconds.
pub fn terminal() -> Box<dyn Progress> {
    if std::io::stderr().is_terminal() { Box::new(Bars::new()) } else { Box::new(Lines::default()) }
}

struct Bars {
    _all: MultiProgress,
    arrived: ProgressBar,
    waiting: ProgressBar,
    inside: ProgressBar,
    bought: ProgressBar,
    gone: ProgressBar,
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::new();
        // A constant that the library accepts; its default is the fallback.
        let style = ProgressStyle::with_template("{prefix:>12} {wide_bar:.cyan/blue} {pos:>6}/{len}  {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = |name: &'static str| all.add(ProgressBar::new(0)).with_style(style.clone()).with_prefix(name);
        let (arrived, waiting, inside, bought, gone) =
            (bar("arrived"), bar("waiting"), bar("inside"), bar("bought"), bar("gone without"));
        Self { _all: all, arrived, waiting, inside, bought, gone }
    }
}

impl Progress for Bars {
    fn show(&self, standing: &Standing) {
        for (bar, position) in [
            (&self.arrived, standing.arrived),
            (&self.waiting, standing.waiting),
            (&self.inside, standing.inside),
            (&self.bought, standing.bought),
            (&self.gone, standing.gone),
        ] {
            bar.set_length(standing.users);
            bar.set_position(position);
        }
        self.arrived.set_message(format!("{} requests", standing.requests));
        self.inside.set_message(standing.patience().unwrap_or_default());
    }

    fn finish(&self) {
        for bar in [&self.arrived, &self.waiting, &self.inside, &self.bought, &self.gone] {
            bar.abandon();
        }
    }
}

#[derive(Default)]
struct Lines {
    last: Mutex<Option<Instant>>,
}

const LINE_EVERY: Duration = Duration::from_secs(5);

impl Progress for Lines {
    fn show(&self, standing: &Standing) {
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if last.is_some_and(|last| last.elapsed() < LINE_EVERY) {
            return;
        }
        *last = Some(Instant::now());
        // Nobody reads progress on a closed pipe.
        let _ = writeln!(std::io::stderr(), "{}", standing.line());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_buyers_apart_and_says_why_nothing_moves() {
        let mut standing = Standing { users: 9, arrived: 9, inside: 2, bought: 6, gone: 1, ..Standing::default() };
        assert!(standing.line().ends_with("bought 6  gone without 1  requests 0"), "{}", standing.line());
        (standing.hoping, standing.hold_seconds) = (2, 120);
        let patience = "2 waiting for held seats to come back (a hold lasts 120 s)";
        assert!(standing.line().ends_with(patience), "{}", standing.line());
    }
}
