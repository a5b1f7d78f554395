//! `stanchion rehearse`: an opening, played against a running system, or simulated on virtual time.

mod simulate;

use std::{
    fmt::Display,
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use http::Uri;
use serde::Serialize;

use crate::rehearse::{self, Arrivals, Mix, Plan};

/// Play an opening against a running system, or simulate a whole sale, and check every guarantee
///
/// Thousands of visitors with cookie jars join, wait, poll as told, choose seats, retry, order and
/// pay. Some open five tabs, press F5 without end, leave early or abandon their seats. Exit status 1
/// when a guarantee broke or could not be checked.
///
/// Buyers speak the API of the reference box office (GET /events/{event}, POST /events/{event}/holds,
/// DELETE /holds/{hold}, POST /orders, GET /orders/{order}); another shop needs the same to be
/// rehearsed. When the sale sells out, a run takes at least as long as the box office holds seats:
/// abandoned ones come back only then, and somebody waits for them. A sale can be rehearsed once: when
/// it is sold out, start it anew.
///
/// With --simulate no system is needed: the room's own scripts run on virtual time, so that a sale of
/// hours takes seconds, and it says how long the sale takes, how long people wait, what holds it up,
/// and what other limits would change. Without more flags: everybody comes within 5 s for 50,000
/// tickets; a visit takes 2 minutes, 60 % of visitors buy 2 tickets each, 5 % do not come when called
/// (their slot is empty for 90 s), 3 % give up after 10 minutes or so. Guesses: put in your own.
///
/// Examples:
///   stanchion rehearse http://127.0.0.1:8080 --users 5000
///   stanchion rehearse http://127.0.0.1:8080 --users 5000 --burst --redis redis://127.0.0.1:6379 --json run.json
///   stanchion rehearse http://127.0.0.1:8080 --users 1000 --ramp 30s --no-audit --capacity 200
///   stanchion rehearse http://127.0.0.1:8080 --box-office-admin http://127.0.0.1:9091
///   stanchion rehearse --simulate --users 1000000 --capacity 2000 --rate 100
///   stanchion rehearse --simulate --users 20000 --capacity 300 --rate 5 --seats 0 --visit 1m --no-shows 0.1
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The shop, as visitors see it.
    #[arg(required_unless_present = "simulate", conflicts_with = "simulate")]
    url: Option<Uri>,
    /// How many people come.
    #[arg(long, default_value_t = 5_000)]
    users: u32,
    /// All come at the same instant.
    #[arg(long, conflicts_with = "ramp")]
    burst: bool,
    /// They come spread over this long.
    #[arg(long, default_value = "5s", value_parser = humantime::parse_duration, value_name = "DURATION")]
    ramp: Duration,
    /// Decides who does what: the same seed plays the same people.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The private listener, for the room's limits.
    #[arg(long, env = "STANCHION_ADMIN_URL", default_value = "http://127.0.0.1:9090", value_name = "URL")]
    admin: Uri,
    /// The private listener of a box office that is a program of its own, for the audit [default: the one of --admin].
    #[arg(long, env = "STANCHION_BOX_OFFICE_ADMIN_URL", value_name = "URL", value_parser = boxed)]
    box_office_admin: Option<Box<Uri>>,
    /// Leave out what only the private listeners know.
    #[arg(long, conflicts_with = "simulate")]
    no_audit: bool,
    /// The system's Redis: counts who is inside there too, many times a second.
    #[arg(long, env = "STANCHION_REDIS", value_name = "URL", hide_env_values = true)]
    redis: Option<String>,
    /// The waiting room's name.
    #[arg(long, default_value = "main", conflicts_with = "simulate")]
    room: String,
    /// The event to buy [default: where the shop's front page leads].
    #[arg(long, conflicts_with = "simulate")]
    event: Option<String>,
    /// Capacity to hold the room to, or to simulate [default: ask the private listener].
    #[arg(long)]
    capacity: Option<u32>,
    /// Admissions per second to hold the room to, or to simulate [default: ask the private listener].
    #[arg(long)]
    rate: Option<f64>,
    /// Admissions at once to hold the room to [default: ask the private listener; simulated: a quarter of the rate].
    #[arg(long = "rate-burst")]
    rate_burst: Option<u32>,
    /// Share of visitors with five tabs.
    #[arg(long, conflicts_with = "simulate", default_value_t = 0.05, value_name = "SHARE")]
    five_tabs: f64,
    /// Share of visitors who press F5 without end.
    #[arg(long, conflicts_with = "simulate", default_value_t = 0.05, value_name = "SHARE")]
    f5: f64,
    /// Share of visitors who leave the line.
    #[arg(long, default_value_t = 0.03, value_name = "SHARE")]
    leave_early: f64,
    /// Share of buyers who take seats and do not pay.
    #[arg(long, conflicts_with = "simulate", default_value_t = 0.05, value_name = "SHARE")]
    abandon_hold: f64,
    /// Give up on whoever is still there after this long [default: 15m; simulated: 48h].
    #[arg(long, value_parser = humantime::parse_duration, value_name = "DURATION")]
    deadline: Option<Duration>,
    /// Write the whole report here.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    simulation: Box<simulate::Args>,
}

pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    // A file that cannot be written is better known now than after the run.
    let json = args.json.clone().map(|file| Ok::<_, anyhow::Error>((open(&file)?, file))).transpose()?;
    let Some(url) = args.url.clone() else {
        let report = args.simulate().await?;
        return tell(&report, json, report.held());
    };
    let report = rehearse::play(args.into_plan(url)).await?;
    tell(&report, json, report.held())
}

fn tell(report: &(impl Display + Serialize), json: Option<(File, PathBuf)>, held: bool) -> anyhow::Result<ExitCode> {
    super::tell(&report.to_string())?;
    if let Some((mut file, path)) = json {
        let text = serde_json::to_string_pretty(report)?;
        replace(&mut file, &text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How long a rehearsal may take.
const DEADLINE: Duration = Duration::from_mins(15);

/// An address that keeps the arguments small.
fn boxed(url: &str) -> Result<Box<Uri>, http::uri::InvalidUri> {
    url.parse().map(Box::new)
}

/// Opens the file for the report; what it held stays until there is a new one.
fn open(path: &Path) -> anyhow::Result<File> {
    let options = File::options().write(true).create(true).truncate(false).open(path);
    options.with_context(|| format!("cannot write {}", path.display()))
}

fn replace(file: &mut File, text: &str) -> io::Result<()> {
    // A pipe has no length.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(text.as_bytes())
}

impl Args {
    fn arrivals(&self) -> Arrivals {
        if self.burst { Arrivals::Burst } else { Arrivals::Ramp(self.ramp) }
    }

    fn into_plan(self, url: Uri) -> Plan {
        Plan {
            url,
            users: self.users,
            arrivals: self.arrivals(),
            seed: self.seed,
            admin: Some(self.admin),
            audit: self.box_office_admin.map(|url| *url),
            no_audit: self.no_audit,
            redis: self.redis,
            event: self.event,
            room: self.room,
            prefix: "/__room".to_owned(),
            capacity: self.capacity,
            rate: self.rate,
            burst: self.rate_burst,
            mix: Mix {
                five_tabs: self.five_tabs,
                f5: self.f5,
                leave_early: self.leave_early,
                abandon_hold: self.abandon_hold,
            },
            deadline: self.deadline.unwrap_or(DEADLINE),
            think: Duration::from_millis(200)..=Duration::from_secs(2),
        }
    }
}
