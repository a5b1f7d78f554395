//! `stanchion pay-sandbox`: a payment provider to test against.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use super::until_signalled;
use crate::{
    listener,
    pay_sandbox::{Behaviour, PaySandbox, PaySandboxConfig, Spread},
    shutdown::Shutdown,
};

/// Run a payment provider to test against
///
/// Charges are captured after --latency and announced by a signed webhook. Key and secret are the box office's too.
///
/// It can be told to misbehave. Every RATIO is 0 (never) to 1 (always), and whom it hits follows from --seed. At run time
/// PUT /behaviour changes all of it, and GET /records tells what was captured and paid back, to compare with.
///
/// Examples:
///   export STANCHION_PROVIDER_KEY=a-key STANCHION_WEBHOOK_SECRET=sixteen-or-more-characters
///   stanchion pay-sandbox --webhook http://127.0.0.1:8081/webhooks/payments --decline-ratio 0.1
///   stanchion pay-sandbox --latency 100ms..2s --rate-limit 50 --stall-ratio 0.05 --lose-ratio 0.1 --seed 7
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Where the API listens.
    #[arg(long, default_value = "127.0.0.1:8082", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Where outcomes are announced.
    #[arg(long, default_value = "http://127.0.0.1:8081/webhooks/payments", value_name = "URL")]
    webhook: String,
    #[command(flatten)]
    behaviour: BehaviourArgs,
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

#[derive(Debug, clap::Args)]
struct BehaviourArgs {
    /// Decides whom the ratios hit: the same seed and the same calls, the same faults.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    seed: u64,
    /// How long a charge takes: a duration, or a range such as 100ms..2s, evenly spread.
    #[arg(long, default_value = "300ms", value_name = "DURATION")]
    latency: Spread,
    /// Orders whose charges are declined.
    #[arg(long, default_value_t = 0.0, value_parser = ratio, value_name = "RATIO")]
    decline_ratio: f64,
    /// Calls answered with 500 (after doing what was asked), 502 or 503 (without doing it).
    #[arg(long, default_value_t = 0.0, value_parser = ratio, value_name = "RATIO", help_heading = "Calls")]
    error_ratio: f64,
    /// Calls answered with 429 and Retry-After.
    #[arg(long, default_value_t = 0.0, value_parser = ratio, value_name = "RATIO", help_heading = "Calls")]
    busy_ratio: f64,
    /// Calls a second beyond which all are answered with 429 and Retry-After.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), value_name = "NUMBER", help_heading = "Calls")]
    rate_limit: Option<u32>,
    /// Calls that are carried out and never answered.
    #[arg(long, default_value_t = 0.0, value_parser = ratio, value_name = "RATIO", help_heading = "Calls")]
    stall_ratio: f64,
    /// Calls that are carried out, and the connection closed.
    #[arg(long, default_value_t = 0.0, value_parser = ratio, value_name = "RATIO", help_heading = "Calls")]
    drop_ratio: f64,
    /// Webhooks that are never sent.
    #[arg(long, default_value_t = 0.0, value_parser = ratio, value_name = "RATIO", help_heading = "Webhooks")]
    lose_ratio: f64,
    /// Webhooks that are late.
    #[arg(long, default_value_t = 0.0, value_parser = ratio, value_name = "RATIO", help_heading = "Webhooks")]
    late_ratio: f64,
    /// How late: a duration or a range.
    #[arg(long, default_value = "5s", value_name = "DURATION", help_heading = "Webhooks")]
    late_by: Spread,
    /// Webhooks behind which older, contrary news of the same charge arrives.
    #[arg(long, default_value_t = 0.0, value_parser = ratio, value_name = "RATIO", help_heading = "Webhooks")]
    reorder_ratio: f64,
    /// Webhooks that are sent twice at once.
    #[arg(long, default_value_t = 0.0, value_parser = ratio, value_name = "RATIO", help_heading = "Webhooks")]
    duplicate_ratio: f64,
    /// Webhooks before which forged ones are sent.
    #[arg(long, default_value_t = 0.0, value_parser = ratio, value_name = "RATIO", help_heading = "Webhooks")]
    forge_ratio: f64,
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| "use 0 (never) to 1 (always)".to_owned())
}

impl From<BehaviourArgs> for Behaviour {
    fn from(args: BehaviourArgs) -> Self {
        Self {
            seed: args.seed,
            latency: args.latency,
            decline_ratio: args.decline_ratio,
            error_ratio: args.error_ratio,
            busy_ratio: args.busy_ratio,
            stall_ratio: args.stall_ratio,
            drop_ratio: args.drop_ratio,
            rate_limit: args.rate_limit,
            lose_ratio: args.lose_ratio,
            late_ratio: args.late_ratio,
            late_by: args.late_by,
            reorder_ratio: args.reorder_ratio,
            duplicate_ratio: args.duplicate_ratio,
            forge_ratio: args.forge_ratio,
        }
    }
}

pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(args.webhook_secret.len() >= 16, "--webhook-secret: use 16 characters or more, as the shop does");
    let behaviour = Behaviour::from(args.behaviour);
    behaviour.check()?;
    let listener = listener::bind(args.listen).await?;
    let sandbox = PaySandbox::open(PaySandboxConfig {
        api_key: args.provider_key.into(),
        webhook_url: args.webhook,
        webhook_secret: args.webhook_secret.into(),
        behaviour,
        journal: args.journal,
    })?;
    tracing::info!(address = %listener.local_addr()?, "payment sandbox listening");
    let shutdown = Shutdown::new();
    sandbox.start(&shutdown);
    shutdown.spawn(listener::serve(listener, sandbox.router(), shutdown.clone()));
    until_signalled(&shutdown).await
}
