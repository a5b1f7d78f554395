//! `stanchion pay-sandbox`: a payment provider to test against.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use super::until_signalled;
use crate::{
    listener,
    pay_sandbox::{PaySandbox, PaySandboxConfig},
    shutdown::Shutdown,
};

/// Run a payment provider to test against
///
/// Charges are captured after --latency and announced by a signed webhook. Key and secret are the box office's too.
///
/// Example:
///   export STANCHION_PROVIDER_KEY=a-key STANCHION_WEBHOOK_SECRET=sixteen-or-more-characters
///   stanchion pay-sandbox --webhook http://127.0.0.1:8081/webhooks/payments --decline-ratio 0.1
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Where the API listens.
    #[arg(long, default_value = "127.0.0.1:8082", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Where outcomes are announced.
    #[arg(long, default_value = "http://127.0.0.1:8081/webhooks/payments", value_name = "URL")]
    webhook: String,
    /// How long a charge takes.
    #[arg(long, default_value = "300ms", value_parser = humantime::parse_duration, value_name = "DURATION")]
    latency: Duration,
    /// Share of charges that are declined, 0 to 1.
    #[arg(long, default_value_t = 0.0)]
    decline_ratio: f64,
    /// Remember every charge in this file; forgotten at the end when not given.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Key that callers of the API must show.
    #[arg(long, env = "STANCHION_PROVIDER_KEY", hide_env_values = true, value_name = "KEY")]
    provider_key: String,
    /// Secret that signs the webhooks.
    #[arg(long, env = "STANCHION_WEBHOOK_SECRET", hide_env_values = true, value_name = "SECRET")]
    webhook_secret: String,
}

pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!((0.0..=1.0).contains(&args.decline_ratio), "--decline-ratio must be between 0 and 1");
    anyhow::ensure!(args.webhook_secret.len() >= 16, "--webhook-secret: use 16 characters or more, as the shop does");
    let listener = listener::bind(args.listen).await?;
    let sandbox = PaySandbox::open(PaySandboxConfig {
        api_key: args.provider_key.into(),
        webhook_url: args.webhook,
        webhook_secret: args.webhook_secret.into(),
        latency: args.latency,
        decline_ratio: args.decline_ratio,
        journal: args.journal,
    })?;
    tracing::info!(address = %listener.local_addr()?, "payment sandbox listening");
    let shutdown = Shutdown::new();
    sandbox.start(&shutdown);
    shutdown.spawn(listener::serve(listener, sandbox.router(), shutdown.clone()));
    until_signalled(&shutdown).await
}
