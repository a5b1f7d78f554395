//! `stanchion serve`: the gateway in front of a shop.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;

use super::{doors, stop, store};
use crate::{
    admin::{self, AdminToken},
    admission::{LiveRoom, Rooms},
    clock::{SharedClock, SystemClock},
    config::{self, Overrides, RoomConfig, ServeConfig, ServerConfig},
    gateway::{self, DEFAULT_PREFIX, Gateway, Trust, gate::Gate, limits::Limits, proxy::Proxy},
    listener, room,
    shutdown::Shutdown,
    store::SharedEngine,
    tokens::Keyring,
};

/// Put the waiting room in front of a shop
///
/// With --origin alone this is a complete, working setup: one room named `main` that guards everything, on the
/// embedded engine, with its signing keys in the state directory.
///
/// Examples:
///   stanchion serve --origin http://127.0.0.1:3000
///   stanchion serve --origin http://127.0.0.1:3000 --capacity 500 --rate 40 --redis redis://127.0.0.1:6379
///   stanchion serve --config stanchion.toml
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Configuration file; flags win over it.
    #[arg(long, env = "STANCHION_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// The shop to protect, such as http://127.0.0.1:3000.
    #[arg(long, env = "STANCHION_ORIGIN", value_name = "URL")]
    origin: Option<String>,
    /// Public listener, or several with commas between, over plain HTTP [default: 127.0.0.1:8080].
    #[arg(long, env = "STANCHION_LISTEN", value_name = "ADDRESS", value_delimiter = ',')]
    listen: Option<Vec<SocketAddr>>,
    /// Private listener; never expose it [default: 127.0.0.1:9090].
    #[arg(long, env = "STANCHION_ADMIN", value_name = "ADDRESS")]
    admin: Option<SocketAddr>,
    /// Most visitors inside at once [default: 200].
    #[arg(long, env = "STANCHION_CAPACITY")]
    capacity: Option<u32>,
    /// Most admissions per second [default: 20].
    #[arg(long, env = "STANCHION_RATE")]
    rate: Option<f64>,
    #[command(flatten)]
    store: store::StoreArgs,
    /// Where the signing keys are kept, and what is published of a lottery's draw [default: the state directory]; several
    /// gateways need the same keys. STANCHION_KEYS, if set, holds the keys instead (hex, the newest first, commas between).
    #[arg(long, env = "STANCHION_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Token of the admin API; without one, its changing calls are refused.
    #[arg(long, env = "STANCHION_ADMIN_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    admin_token: Option<String>,
}

/// For what is still to be told to the store when the last connection has ended.
const LEFTOVERS: Duration = Duration::from_secs(5);

pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let client = args.store.client();
    let overrides = Overrides {
        listen: args.listen,
        admin: args.admin,
        data: args.data,
        redis: args.store.redis,
        origin: args.origin,
        capacity: args.capacity,
        rate: args.rate,
    };
    let config = ServeConfig::load(args.config.as_deref(), overrides)?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let (public, private) = (doors::open(&config.listeners).await?, listener::bind(config.admin).await?);
    let clock: SharedClock = Arc::new(SystemClock);
    let engine = store::open(config.redis.as_deref(), client, &clock).await?;
    let (keyring, keys_are_fresh) = signing_keys(&config.data)?;

    let shutdown = Shutdown::new();
    let keys = Keys { keyring: &keyring, are_fresh: keys_are_fresh, data: &config.data };
    let rooms = open_rooms(config.rooms, &engine, &clock, &keys, &shutdown).await?;
    tracing::info!(data = %config.data.display(), "signing keys");
    tracing::info!(rooms = rooms.len(), "gateway listening");
    tracing::info!(address = %private.local_addr()?, "admin listening");
    let public = public.into_doors(&shutdown);
    shutdown.spawn(gateway::serve(public, build(&rooms, &config.server)?, shutdown.clone()));
    let admin = admin::router(rooms, AdminToken::new(args.admin_token.unwrap_or_default()), shutdown.clone());
    // The private listener outlives the public ones, so that whoever watches sees them go.
    let afterwards = Shutdown::new();
    afterwards.spawn(listener::serve(private, admin, afterwards.clone()));
    drain_when_signalled(&shutdown, &config.server).await?;
    stop(&afterwards, Duration::from_secs(1)).await;
    Ok(ExitCode::SUCCESS)
}

/// Waits for SIGTERM or Ctrl-C; says so for a while, and then stops. A second signal ends the waiting.
async fn drain_when_signalled(shutdown: &Shutdown, server: &ServerConfig) -> anyhow::Result<()> {
    Shutdown::signal().await?;
    shutdown.announce();
    tracing::info!(drain_delay_s = server.drain_delay.as_secs(), "stopping");
    tokio::select! {
        () = tokio::time::sleep(server.drain_delay) => {}
        _ = Shutdown::signal() => {}
    }
    // The gateway cuts off at its deadline itself; what it hands to others takes a moment more.
    stop(shutdown, server.drain_deadline + LEFTOVERS).await;
    Ok(())
}

/// The signing keys of `data`, made on the first start. The flag says whether they were made just now.
pub fn signing_keys(data: &std::path::Path) -> anyhow::Result<(Keyring, bool)> {
    if let Ok(keys) = std::env::var("STANCHION_KEYS") {
        return Ok((config::keys::from_env_value(&keys).context("STANCHION_KEYS")?, false));
    }
    std::fs::create_dir_all(data)
        .with_context(|| format!("cannot make the data directory {}; choose another with --data", data.display()))?;
    Ok(config::keys::load_or_create(&data.join("keys"))?)
}

/// What a gateway signs with, and where it keeps what must outlive it.
pub struct Keys<'a> {
    /// The signing keys.
    pub keyring: &'a Keyring,
    /// Whether they were made just now.
    pub are_fresh: bool,
    /// The data directory.
    pub data: &'a Path,
}

/// Opens every room and starts its tasks.
pub async fn open_rooms(
    configs: Vec<RoomConfig>,
    engine: &SharedEngine,
    clock: &SharedClock,
    keys: &Keys<'_>,
    shutdown: &Shutdown,
) -> anyhow::Result<Rooms> {
    let mut rooms = Vec::with_capacity(configs.len());
    for config in configs {
        let (engine, clock) = (Arc::clone(engine), Arc::clone(clock));
        let keyring = keys.keyring.clone();
        let room = LiveRoom::open(config, engine, clock, keyring, keys.are_fresh, Some(keys.data)).await?;
        room.start(shutdown);
        rooms.push(room);
    }
    Ok(rooms.into())
}

/// The public stack over these rooms.
pub fn build(rooms: &Rooms, server: &ServerConfig) -> anyhow::Result<Gateway<Gate>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let limits = Limits { cores, ..Limits::of(server) };
    let trust = Trust::new(server.trusted_proxies.clone(), server.forwarded_header);
    let proxy = Proxy::new(rooms.iter().map(|room| (room.name().clone(), room.config().origins.clone())), &limits)?;
    let gate = Gate::new(Arc::clone(rooms), DEFAULT_PREFIX);
    let at_once = room::at_once(Arc::clone(rooms), DEFAULT_PREFIX);
    let endpoints = room::router(Arc::clone(rooms), DEFAULT_PREFIX);
    Ok(Gateway::new(gate, proxy, endpoints, limits).with_at_once(at_once).with_trust(trust))
}
