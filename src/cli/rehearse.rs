//! `stanchion rehearse`: an opening, played against a running system.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use http::Uri;

use crate::rehearse::{self, Arrivals, Mix, Plan};

/// Play an opening against a running system, and check every guarantee
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
/// Examples:
///   stanchion rehearse http://127.0.0.1:8080 --users 5000
///   stanchion rehearse http://127.0.0.1:8080 --users 5000 --burst --redis redis://127.0.0.1:6379 --json run.json
///   stanchion rehearse http://127.0.0.1:8080 --users 1000 --ramp 30s --no-audit --capacity 200
///   stanchion rehearse http://127.0.0.1:8080 --box-office-admin http://127.0.0.1:9091
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The shop, as visitors see it.
    url: Uri,
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
    #[arg(long)]
    no_audit: bool,
    /// The system's Redis: counts who is inside there too, many times a second.
    #[arg(long, env = "STANCHION_REDIS", value_name = "URL", hide_env_values = true)]
    redis: Option<String>,
    /// The waiting room's name.
    #[arg(long, default_value = "main")]
    room: String,
    /// The event to buy [default: where the shop's front page leads].
    #[arg(long)]
    event: Option<String>,
    /// Capacity to hold the room to [default: ask the private listener].
    #[arg(long)]
    capacity: Option<u32>,
    /// Admissions per second to hold the room to [default: ask the private listener].
    #[arg(long)]
    rate: Option<f64>,
    /// Admissions at once to hold the room to [default: ask the private listener].
    #[arg(long = "rate-burst")]
    rate_burst: Option<u32>,
    /// Share of visitors with five tabs.
    #[arg(long, default_value_t = 0.05, value_name = "SHARE")]
    five_tabs: f64,
    /// Share of visitors who press F5 without end.
    #[arg(long, default_value_t = 0.05, value_name = "SHARE")]
    f5: f64,
    /// Share of visitors who leave the line.
    #[arg(long, default_value_t = 0.03, value_name = "SHARE")]
    leave_early: f64,
    /// Share of buyers who take seats and do not pay.
    #[arg(long, default_value_t = 0.05, value_name = "SHARE")]
    abandon_hold: f64,
    /// Give up on whoever is still there after this long.
    #[arg(long, default_value = "15m", value_parser = humantime::parse_duration, value_name = "DURATION")]
    deadline: Duration,
    /// Write the whole report here.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    // A file that cannot be written is better known now than after the run.
    let json = args.json.clone().map(|file| Ok::<_, anyhow::Error>((open(&file)?, file))).transpose()?;
    let report = rehearse::play(args.into_plan()).await?;
    print!("{report}");
    if let Some((mut file, path)) = json {
        let text = serde_json::to_string_pretty(&report)?;
        replace(&mut file, &text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(if report.held() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

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
    fn into_plan(self) -> Plan {
        Plan {
            url: self.url,
            users: self.users,
            arrivals: if self.burst { Arrivals::Burst } else { Arrivals::Ramp(self.ramp) },
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
            deadline: self.deadline,
            think: Duration::from_millis(200)..=Duration::from_secs(2),
        }
    }
}
