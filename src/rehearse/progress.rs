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
    /// Have tickets.
    pub bought: u64,
    /// Are gone, for whatever reason.
    pub done: u64,
    /// Requests answered.
    pub requests: u64,
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
    done: ProgressBar,
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::new();
        // A constant that the library accepts; its default is the fallback.
        let style = ProgressStyle::with_template("{prefix:>8} {wide_bar:.cyan/blue} {pos:>6}/{len}  {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = |name: &'static str| all.add(ProgressBar::new(0)).with_style(style.clone()).with_prefix(name);
        let (arrived, waiting, inside, bought, done) =
            (bar("arrived"), bar("waiting"), bar("inside"), bar("bought"), bar("gone"));
        Self { _all: all, arrived, waiting, inside, bought, done }
    }
}

impl Progress for Bars {
    fn show(&self, standing: &Standing) {
        for (bar, position) in [
            (&self.arrived, standing.arrived),
            (&self.waiting, standing.waiting),
            (&self.inside, standing.inside),
            (&self.bought, standing.bought),
            (&self.done, standing.done),
        ] {
            bar.set_length(standing.users);
            bar.set_position(position);
        }
        self.arrived.set_message(format!("{} requests", standing.requests));
    }

    fn finish(&self) {
        for bar in [&self.arrived, &self.waiting, &self.inside, &self.bought, &self.done] {
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
        let _ = writeln!(
            std::io::stderr(),
            "arrived {}/{}  waiting {}  inside {}  bought {}  gone {}  requests {}",
            standing.arrived,
            standing.users,
            standing.waiting,
            standing.inside,
            standing.bought,
            standing.done,
            standing.requests
        );
    }
}
