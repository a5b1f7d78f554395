//! The box office with a payment provider, as `demo` and `box-office` start it.

use std::time::Duration;

use anyhow::Context as _;

use crate::box_office::{EventConfig, ProviderConfig};

/// What is sold.
#[derive(Debug, Clone, clap::Args)]
pub struct SaleArgs {
    /// Numbered seats on sale.
    #[arg(long, default_value_t = 800)]
    pub seats: u32,
    /// Tickets without a seat on sale.
    #[arg(long, default_value_t = 0)]
    pub general_admission: u32,
    /// How long a buyer's seats stay theirs before they are paid for.
    #[arg(long, default_value = "2m", value_parser = humantime::parse_duration, value_name = "DURATION")]
    pub hold_for: Duration,
}

impl SaleArgs {
    /// The event `demo`.
    pub fn event(&self) -> EventConfig {
        EventConfig {
            id: "demo".to_owned(),
            name: "The Stanchions, live".to_owned(),
            currency: "EUR".to_owned(),
            price_minor: 4_500,
            seats: self.seats,
            general_admission: self.general_admission,
            per_hold_limit: 10,
        }
    }
}

/// The provider at `url`, without webhook secrets.
pub fn provider(url: String, api_key: &str) -> ProviderConfig {
    ProviderConfig { url, api_key: api_key.into(), webhook_secrets: Vec::new(), timeout: Duration::from_secs(5) }
}

/// The secret in `file`, made on the first start, so that what was signed before a crash still verifies after it.
pub fn lasting_secret(file: &std::path::Path) -> anyhow::Result<String> {
    match std::fs::read_to_string(file) {
        Ok(secret) if secret.trim().len() >= 32 => return Ok(secret.trim().to_owned()),
        Ok(_) => anyhow::bail!("{} does not hold a secret: remove it to have one made", file.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
    let secret = crate::config::keys::generate();
    crate::config::keys::write_secret(file, &secret)?;
    Ok(secret)
}
