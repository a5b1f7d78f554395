//! What to play, and why a rehearsal could not be played.

use std::{ops::RangeInclusive, time::Duration};

use http::Uri;

/// A rehearsal: who comes, when, and what they are up to. The same plan against the same system makes the same people
/// do the same things; only the timing differs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The shop as visitors see it, `http://` only.
    pub url: Uri,
    /// How many people come, 1 to 50,000.
    pub users: u32,
    /// When they come.
    pub arrivals: Arrivals,
    /// Decides who does what, which seats they want and how long they think.
    pub seed: u64,
    /// The private listener: the room's limits. `None` asks nobody, and the rows that need it are unknown unless
    /// [`Plan::no_audit`].
    pub admin: Option<Uri>,
    /// The box office's private listener: the audit. `None` asks [`Plan::admin`], which knows both where the gateway and
    /// the box office are one program.
    pub audit: Option<Uri>,
    /// Leave out what only the private listener knows.
    pub no_audit: bool,
    /// The system's Redis, to count who is inside by its own sets.
    pub redis: Option<String>,
    /// The event on sale; `None` follows the shop's redirect, and takes `demo` where there is none.
    pub event: Option<String>,
    /// The waiting room's name, part of cookies and paths.
    pub room: String,
    /// Where the waiting room's endpoints live.
    pub prefix: String,
    /// Capacity to hold the room to, instead of what the private listener says.
    pub capacity: Option<u32>,
    /// Rate per second to hold the room to, instead of what the private listener says.
    pub rate: Option<f64>,
    /// Burst to hold the room to, instead of what the private listener says.
    pub burst: Option<u32>,
    /// How many are difficult.
    pub mix: Mix,
    /// When to give up on whoever is still there.
    pub deadline: Duration,
    /// How long a buyer looks at the basket before paying.
    pub think: RangeInclusive<Duration>,
}

/// When people come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// All at one instant.
    Burst,
    /// Spread evenly at random over this long.
    Ramp(Duration),
}

impl Arrivals {
    /// The longest time between the first and the last.
    pub(super) fn span(self) -> Duration {
        match self {
            Self::Burst => Duration::ZERO,
            Self::Ramp(span) => span,
        }
    }
}

/// The shares of people who do not simply wait and buy; each 0 to 1, together at most 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// Wait with five tabs open.
    pub five_tabs: f64,
    /// Reload the page without end.
    pub f5: f64,
    /// Give up while waiting.
    pub leave_early: f64,
    /// Take seats and do not buy them.
    pub abandon_hold: f64,
}

impl Default for Mix {
    fn default() -> Self {
        Self { five_tabs: 0.05, f5: 0.05, leave_early: 0.03, abandon_hold: 0.05 }
    }
}

impl Mix {
    /// Everyone waits and buys.
    pub const fn polite() -> Self {
        Self { five_tabs: 0.0, f5: 0.0, leave_early: 0.0, abandon_hold: 0.0 }
    }

    fn is_sound(self) -> bool {
        let shares = [self.five_tabs, self.f5, self.leave_early, self.abandon_hold];
        shares.iter().all(|share| (0.0..=1.0).contains(share)) && shares.iter().sum::<f64>() <= 1.0 + 1e-9
    }
}

impl Plan {
    /// The usual plan: `users` people within five seconds at `url`, room `main`, a quarter of an hour at most.
    pub fn new(url: Uri, users: u32) -> Self {
        Self {
            url,
            users,
            arrivals: Arrivals::Ramp(Duration::from_secs(5)),
            seed: 1,
            admin: Some(Uri::from_static("http://127.0.0.1:9090")),
            audit: None,
            no_audit: false,
            redis: None,
            event: None,
            room: "main".to_owned(),
            prefix: "/__room".to_owned(),
            capacity: None,
            rate: None,
            burst: None,
            mix: Mix::default(),
            deadline: Duration::from_mins(15),
            think: Duration::from_millis(200)..=Duration::from_secs(2),
        }
    }

    /// Finds what cannot be played.
    ///
    /// # Errors
    /// [`RehearseError::Plan`], naming the first thing wrong.
    pub fn check(&self) -> Result<(), RehearseError> {
        let wrong = |what: &str| Err(RehearseError::Plan(what.to_owned()));
        if self.url.scheme_str() != Some("http") || self.url.authority().is_none() {
            return wrong("the address must look like http://127.0.0.1:8080 (TLS is not spoken here)");
        }
        if !(1..=50_000).contains(&self.users) {
            return wrong("users must be between 1 and 50000");
        }
        if !self.mix.is_sound() {
            return wrong(
                "each share of difficult visitors must be between 0 and 1, and all of them together at most 1",
            );
        }
        if self.think.start() > self.think.end() {
            return wrong("the think time must be a range from short to long");
        }
        if self.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            return wrong("the rate must be above 0 per second");
        }
        Ok(())
    }

    /// The page a visitor opens.
    pub(super) fn page(&self) -> String {
        match (self.url.path_and_query().map_or("/", |path| path.as_str()), &self.event) {
            ("/" | "", Some(event)) => format!("/events/{event}"),
            ("", None) => "/".to_owned(),
            (path, _) => path.to_owned(),
        }
    }

    /// A waiting-room endpoint.
    pub(super) fn endpoint(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.prefix, self.room)
    }
}

/// Why a rehearsal could not be played at all.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RehearseError {
    /// The plan makes no sense.
    #[error("{0}")]
    Plan(String),
    /// The operating system gives this process too few sockets.
    #[error(
        "{needed} open sockets are needed and this process may have {allowed}: raise the limit (ulimit -n {needed}), or bring fewer users"
    )]
    Files {
        /// How many are needed.
        needed: u64,
        /// How many the hard limit allows.
        allowed: u64,
    },
    /// Nothing answers at the address.
    #[error("nothing answers at {address} ({reason}): start the system first, for example with `stanchion demo`")]
    Unreachable {
        /// Host and port.
        address: String,
        /// What the connection attempt said.
        reason: String,
    },
    /// The shop does not speak the API that visitors buy with.
    #[error(
        "GET {path} answered with {answer}, not with the event: `rehearse` buys through the reference box office's API \
         (GET /events/{{event}}, POST /events/{{event}}/holds, DELETE /holds/{{hold}}, POST /orders, \
         GET /orders/{{order}}). If the event has another name, give --event NAME; another shop can stand behind the \
         waiting room, but it needs these five to be rehearsed"
    )]
    NotTheBoxOffice {
        /// What was asked for.
        path: String,
        /// What came instead.
        answer: String,
    },
}
