//! `stanchion demo`: the whole system in one process.

use std::{
    io::{ErrorKind, Write as _},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use http::Method;
use tokio::net::TcpListener;

use super::{
    database::DatabaseArgs,
    gateway::{Keys, build, open_rooms, signing_keys},
    sale::{self, SaleArgs},
    store, until_signalled,
};
use crate::{
    admin::{self, AdminToken},
    box_office::{BoxOffice, BoxOfficeConfig, ProviderConfig},
    clock::{SharedClock, SystemClock},
    config::{
        BypassRule, RoomConfig, ServerConfig,
        origins::{Origins, parse_origin},
        problems::Problems,
        room::{MAX_PARALLEL, check_policy, default_burst},
    },
    gateway, listener,
    pay_sandbox::{Behaviour, PaySandbox, PaySandboxConfig},
    queue::{Policy, Schedule},
    shutdown::Shutdown,
};

/// Run the whole system in one process, with a sale that opens in seconds
///
/// Gateway, waiting room, box office and a payment sandbox, on embedded engines: nothing else need be installed.
/// The room is `main` and guards everything; the event is `demo`.
///
/// Examples:
///   stanchion demo
///   stanchion demo --seats 800 --opens-in 5s --capacity 200 --rate 100
///   stanchion demo --data ./demo-data            # survives a restart
///   stanchion demo --redis redis://127.0.0.1:6379
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The shop's public address, with the waiting room in front.
    #[arg(long, env = "STANCHION_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Private listener: health, rooms, audit.
    #[arg(long, env = "STANCHION_ADMIN", default_value = "127.0.0.1:9090", value_name = "ADDRESS")]
    admin: SocketAddr,
    /// The box office itself, behind the gateway.
    #[arg(long, default_value = "127.0.0.1:8081", value_name = "ADDRESS")]
    box_office_listen: SocketAddr,
    #[command(flatten)]
    sale: SaleArgs,
    /// How long until the sale opens. A restart on the same --data keeps the first opening.
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration, value_name = "DURATION")]
    opens_in: Duration,
    /// Most visitors inside at once.
    #[arg(long, default_value_t = 200)]
    capacity: u32,
    /// Most admissions per second.
    #[arg(long, default_value_t = 100.0)]
    rate: f64,
    /// Keep keys, ledger and payments here; a temporary directory when not given.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    store: store::StoreArgs,
    #[command(flatten)]
    database: DatabaseArgs,
    /// Token of the admin API; made and printed when not given.
    #[arg(long, env = "STANCHION_ADMIN_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    admin_token: Option<String>,
}

/// A sale further away is a slip of the finger.
const LONGEST_WAIT: Duration = Duration::from_hours(366 * 24);
const SESSION_CAP: Duration = Duration::from_mins(30);

/// The four listeners, all bound before anything starts, so that a taken port is the first thing said.
struct Listeners {
    public: TcpListener,
    admin: TcpListener,
    box_office: TcpListener,
    payments: TcpListener,
}

pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    check(&args)?;
    let listeners = Listeners {
        public: listener::bind(args.listen).await?,
        admin: listener::bind(args.admin).await?,
        box_office: listener::bind(args.box_office_listen).await?,
        payments: listener::bind((Ipv4Addr::LOCALHOST, 0).into()).await?,
    };
    let clock: SharedClock = Arc::new(SystemClock);
    let engine = store::open(args.store.redis.as_deref(), args.store.client(), &clock).await?;
    // Kept to the end: a temporary directory goes when this goes.
    let data = DataDir::open(args.data.as_deref())?;
    let (keyring, keys_are_fresh) = signing_keys(data.path())?;

    let shutdown = Shutdown::new();
    let sandbox = PaySandbox::open(payments(&data, listeners.box_office.local_addr()?)?)?;
    let office = BoxOffice::open(
        box_office(&args, &data, listeners.payments.local_addr()?)?,
        Arc::clone(&engine),
        Arc::clone(&clock),
    )
    .await?;
    // Written last, so that a start that fails for another reason does not fix the opening.
    let opens_at_ms = lasting_opening(&data.path().join("opens-at"), clock.unix_millis(), args.opens_in)?;
    let room = room(&args, listeners.box_office.local_addr()?, opens_at_ms)?;
    let keys = Keys { keyring: &keyring, are_fresh: keys_are_fresh, data: data.path() };
    let rooms = open_rooms(vec![room], &engine, &clock, &keys, &shutdown).await?;
    let admin_token = args.admin_token.clone().unwrap_or_else(crate::config::keys::generate);

    announce(&args, &listeners, &data, opens_at_ms.saturating_sub(clock.unix_millis()), &admin_token)?;
    sandbox.start(&shutdown);
    office.start(&shutdown);
    let gateway = build(&rooms, &ServerConfig::default())?;
    let admin = admin::router(rooms, AdminToken::new(admin_token), shutdown.clone())
        .merge(office.admin_router().reset_fallback());
    shutdown.spawn(listener::serve(listeners.payments, sandbox.router(), shutdown.clone()));
    shutdown.spawn(listener::serve(listeners.box_office, office.router(), shutdown.clone()));
    shutdown.spawn(listener::serve(listeners.admin, admin, shutdown.clone()));
    shutdown.spawn(gateway::serve(listeners.public, gateway, shutdown.clone()));
    until_signalled(&shutdown).await
}

/// What the parser of the arguments cannot know.
fn check(args: &Args) -> anyhow::Result<()> {
    let mut problems = Problems::default();
    check_policy(&policy(args, 0), SESSION_CAP, &|field| format!("--{field}"), &mut problems);
    problems.check(args.opens_in <= LONGEST_WAIT, || "--opens-in is more than a year away: use less".to_owned());
    Ok(problems.finish(Some(()))?)
}

/// Timings of a show: a minute shorter wherever production would wait a minute.
fn policy(args: &Args, opens_at_ms: u64) -> Policy {
    Policy {
        capacity: args.capacity,
        rate: args.rate,
        burst: default_burst(args.rate),
        claim_window: Duration::from_secs(30),
        session_ttl: Duration::from_mins(5),
        absent_after: Duration::from_secs(30),
        grace: Duration::from_mins(3),
        settle: Duration::from_secs(5),
        schedule: Schedule { opens_at_ms: Some(opens_at_ms), ..Schedule::default() },
    }
}

fn room(args: &Args, origin: SocketAddr, opens_at_ms: u64) -> anyhow::Result<RoomConfig> {
    let get = |prefix: &str| BypassRule {
        methods: vec![Method::GET],
        path_prefix: Some(prefix.to_owned()),
        ..BypassRule::default()
    };
    Ok(RoomConfig {
        name: "main".parse()?,
        hosts: Vec::new(),
        paths: vec!["/".to_owned()],
        origins: Origins::at(parse_origin(&format!("http://{origin}")).map_err(anyhow::Error::msg)?),
        policy: policy(args, opens_at_ms),
        adaptive: None,
        session_cap: SESSION_CAP,
        max_parallel: MAX_PARALLEL,
        queue_token_ttl: Duration::from_hours(24),
        queued_status: 503,
        // A buyer's session may end before the page of the order is read for the last time, and the page's own
        // address is the right to see it.
        bypass: vec![get("/orders"), get("/box-office/assets")],
        cache: Vec::new(),
        message: None,
        beacon: None,
        title: "The Stanchions, live".to_owned(),
        cookie_domain: None,
    })
}

fn box_office(args: &Args, data: &DataDir, provider: SocketAddr) -> anyhow::Result<BoxOfficeConfig> {
    let secret = sale::lasting_secret(&data.path().join("payment-secret"))?;
    Ok(BoxOfficeConfig {
        event: args.sale.event(),
        hold_ttl: args.sale.hold_for,
        database: args.database.address(data.path()),
        database_connections: args.database.database_connections,
        provider: ProviderConfig {
            webhook_secrets: vec![secret.as_str().into()],
            ..ProviderConfig::new(format!("http://{provider}"), secret.as_str().into())
        },
    })
}

fn payments(data: &DataDir, box_office: SocketAddr) -> anyhow::Result<PaySandboxConfig> {
    let secret = sale::lasting_secret(&data.path().join("payment-secret"))?;
    Ok(PaySandboxConfig {
        api_key: secret.as_str().into(),
        webhook_url: format!("http://{box_office}/webhooks/payments"),
        webhook_secret: secret.into(),
        behaviour: Behaviour::default(),
        journal: Some(data.path().join("payments.jsonl")),
    })
}

/// When the sale opens: said once per data directory, so that a restart in mid-sale does not close the doors again.
fn lasting_opening(file: &Path, now_ms: u64, opens_in: Duration) -> anyhow::Result<u64> {
    match std::fs::read_to_string(file) {
        Ok(text) => {
            return text.trim().parse().with_context(|| {
                format!("{} does not hold a time: remove it to plan the opening anew", file.display())
            });
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
    let opens_at_ms = now_ms.saturating_add(u64::try_from(opens_in.as_millis())?);
    std::fs::write(file, format!("{opens_at_ms}\n")).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(opens_at_ms)
}

fn announce(
    args: &Args,
    listeners: &Listeners,
    data: &DataDir,
    opens_in_ms: u64,
    admin_token: &str,
) -> anyhow::Result<()> {
    let [public, admin, box_office] =
        [&listeners.public, &listeners.admin, &listeners.box_office].map(TcpListener::local_addr);
    let (public, admin, box_office) = (public?, admin?, box_office?);
    let engines = if args.store.redis.is_some() { "Redis" } else { "embedded" };
    let opens = match Duration::from_millis(opens_in_ms).as_secs_f64() {
        0.0 => "open".to_owned(),
        seconds => format!("opens in {seconds:.1} s"),
    };
    let (seats, general_admission) = (args.sale.seats, args.sale.general_admission);
    let (capacity, rate, data) = (args.capacity, args.rate, data.describe());
    let said = format!(
        "Stanchion demo: {seats} seats, {general_admission} general admission.\n\
        \x20 shop         http://{public}/   ({opens})\n\
        \x20 admin        http://{admin}/api/rooms/main   http://{admin}/events/demo/audit\n\
        \x20 admin token  {admin_token}\n\
        \x20 box office   http://{box_office}/   (behind the waiting room; never public)\n\
        \x20 engine       {engines}; at most {capacity} inside, {rate} admissions per second\n\
        \x20 data         {data}\n\
        Play an opening against it:  stanchion rehearse http://{public} --admin http://{admin} --users 5000\n"
    );
    // Whoever closed the output, such as `head`, does not end the sale.
    let _unread = std::io::stdout().lock().write_all(said.as_bytes());
    Ok(())
}

/// The data directory: the one given, or one that goes with the process.
enum DataDir {
    Given(PathBuf),
    Temporary(PathBuf),
}

impl DataDir {
    fn open(given: Option<&Path>) -> anyhow::Result<Self> {
        let dir = match given {
            Some(path) => Self::Given(path.to_owned()),
            None => Self::Temporary(std::env::temp_dir().join(format!("stanchion-demo-{}", std::process::id()))),
        };
        std::fs::create_dir_all(dir.path())
            .with_context(|| format!("cannot make {}; choose another with --data", dir.path().display()))?;
        Ok(dir)
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(path) | Self::Temporary(path) => path,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Given(path) => path.display().to_string(),
            Self::Temporary(path) => format!("{} (removed at the end; keep it with --data DIR)", path.display()),
        }
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        if let Self::Temporary(path) = self
            && let Err(error) = std::fs::remove_dir_all(path)
        {
            tracing::warn!(%error, "the temporary data directory could not be removed");
        }
    }
}
