//! `stanchion box-office`: the reference ticket backend alone.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;

use super::{database::DatabaseArgs, sale::SaleArgs, store, until_signalled};
use crate::{
    box_office::{BoxOffice, BoxOfficeConfig, ProviderConfig},
    clock::{SharedClock, SystemClock},
    listener,
    shutdown::Shutdown,
};

/// Run the reference box office alone
///
/// It sells the event `demo` and asks a payment provider such as `stanchion pay-sandbox` for the money. Put the gateway
/// in front of it with `stanchion serve --origin http://127.0.0.1:8081`.
///
/// Example:
///   export STANCHION_PROVIDER_KEY=a-key STANCHION_WEBHOOK_SECRET=sixteen-or-more-characters
///   stanchion box-office --seats 800 --provider http://127.0.0.1:8082 --data ./box-office
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Where buyers reach it; put the gateway in front.
    #[arg(long, default_value = "127.0.0.1:8081", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Private listener: audit.
    #[arg(long, default_value = "127.0.0.1:9091", value_name = "ADDRESS")]
    admin: SocketAddr,
    #[command(flatten)]
    sale: SaleArgs,
    /// Where the ledger is kept unless --database says otherwise.
    #[arg(long, default_value = "box-office-data", value_name = "DIR")]
    data: PathBuf,
    #[command(flatten)]
    store: store::StoreArgs,
    #[command(flatten)]
    database: DatabaseArgs,
    /// The payment provider.
    #[arg(long, default_value = "http://127.0.0.1:8082", value_name = "URL")]
    provider: String,
    /// Key for the provider's API.
    #[arg(long, env = "STANCHION_PROVIDER_KEY", hide_env_values = true, value_name = "KEY")]
    provider_key: String,
    /// Secrets that sign the provider's webhooks, the newest first: several while they are rotated, with a comma between or
    /// the option given again.
    #[arg(long, env = "STANCHION_WEBHOOK_SECRET", hide_env_values = true, value_delimiter = ',', required = true)]
    webhook_secret: Vec<String>,
    /// Most calls to the provider a second, of all box offices on one Redis together; more of them queue. [default: no
    /// limit]
    #[arg(long, value_name = "NUMBER")]
    provider_tps: Option<f64>,
    /// Wait this long for the provider's answer, then call again. A worker that dies in a call is replaced after twice this
    /// and five seconds.
    #[arg(long, default_value = "5s", value_parser = humantime::parse_duration, value_name = "DURATION")]
    provider_timeout: Duration,
    /// Ask the provider about an order of which nothing was heard for this long.
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration, value_name = "DURATION")]
    poll_after: Duration,
    /// Give an unpaid order up after this long, once the provider confirms that nothing was paid.
    #[arg(long, default_value = "15m", value_parser = humantime::parse_duration, value_name = "DURATION")]
    payment_ttl: Duration,
}

pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (public, private) = (listener::bind(args.listen).await?, listener::bind(args.admin).await?);
    let clock: SharedClock = Arc::new(SystemClock);
    let engine = store::open(args.store.redis.as_deref(), args.store.client(), &clock).await?;
    std::fs::create_dir_all(&args.data)
        .with_context(|| format!("cannot make {}; choose another with --data", args.data.display()))?;
    let config = BoxOfficeConfig {
        event: args.sale.event(),
        hold_ttl: args.sale.hold_for,
        database: args.database.address(&args.data),
        database_connections: args.database.database_connections,
        provider: ProviderConfig {
            webhook_secrets: args.webhook_secret.into_iter().map(Into::into).collect(),
            timeout: args.provider_timeout,
            most_per_second: args.provider_tps,
            poll_after: args.poll_after,
            payment_ttl: args.payment_ttl,
            ..ProviderConfig::new(args.provider, args.provider_key.into())
        },
    };
    let office = BoxOffice::open(config, engine, clock).await?;
    tracing::info!(address = %public.local_addr()?, "box office listening");
    tracing::info!(address = %private.local_addr()?, "admin listening");
    let shutdown = Shutdown::new();
    office.start(&shutdown);
    shutdown.spawn(listener::serve(public, office.router(), shutdown.clone()));
    let admin = office.admin_router().merge(office.metrics_router());
    shutdown.spawn(listener::serve(private, admin, shutdown.clone()));
    until_signalled(&shutdown).await
}
