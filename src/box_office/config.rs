//! What the box office sells, where it keeps the ledger, who takes the money.

use std::{num::NonZeroU32, time::Duration};

use http::Uri;

use super::seats::MOST_SEATS;
use crate::config::{ConfigError, Secret, problems::Problems};

/// Everything a box office needs.
#[derive(Debug, Clone)]
pub struct BoxOfficeConfig {
    /// What is sold.
    pub event: EventConfig,
    /// How long a buyer may think before paying: 1 s to 24 h.
    pub hold_ttl: Duration,
    /// Path of the `SQLite` file, or `sqlite:PATH`, created when missing (its folder must exist); or
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    pub database: Secret,
    /// Most connections to a `PostgreSQL` server; a quarter of those it grants, at most 16, unless given.
    pub database_connections: Option<NonZeroU32>,
    /// Who takes the money.
    pub provider: ProviderConfig,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventConfig {
    /// Part of paths and keys: 1 to 32 of `a-z`, `0-9` and `-`, starting with a letter.
    pub id: String,
    /// Title.
    pub name: String,
    /// ISO 4217 code: three capital letters.
    pub currency: String,
    /// Price of one ticket in the currency's minor unit; at least 1.
    pub price_minor: u64,
    /// Numbered seats, 0 to 100,000.
    pub seats: u32,
    /// Tickets without a seat, 0 to 1,000,000.
    pub general_admission: u32,
    /// Most tickets in one hold, 1 to 100.
    pub per_hold_limit: u32,
}

/// The payment provider.
#[derive(Debug, Clone)]
pub struct ProviderConfig {
    /// Base address, such as `http://127.0.0.1:9100`. Plain HTTP: keep the provider, or a TLS tunnel to it, on this host.
    pub url: String,
    /// Sent as a bearer token.
    pub api_key: Secret,
    /// Any of them may sign a webhook, so that they can be rotated; at least one.
    pub webhook_secrets: Vec<Secret>,
    /// Deadline of one call: 100 ms to 60 s. A call that took longer may still have been carried out.
    pub timeout: Duration,
    /// Most calls a second, 0.1 to 10,000, of all box offices on one store together. `None`: as many as there are.
    pub most_per_second: Option<f64>,
    /// The provider is asked about an order whose outcome has not been heard of for this long, and as often after that:
    /// 100 ms to 1 min.
    pub poll_after: Duration,
    /// An unpaid order is given up after this long, once the provider confirms that nothing was paid: 1 s to 24 h.
    pub payment_ttl: Duration,
    /// A charge that stayed unclear this often is given up, once the provider confirms that it has none; at least 1.
    /// A refund never is: it is owed.
    pub charge_attempts: u32,
}

impl BoxOfficeConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// All problems at once, each with its cure.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        self.event.check(&mut problems);
        self.provider.check(&mut problems);
        problems.check(within(self.hold_ttl, Duration::from_secs(1), DAY), || "hold_ttl: use 1 s to 24 h".to_owned());
        problems.finish(Some(()))
    }
}

const DAY: Duration = Duration::from_hours(24);

fn within(value: Duration, least: Duration, most: Duration) -> bool {
    (least..=most).contains(&value)
}

impl EventConfig {
    fn check(&self, problems: &mut Problems) {
        let id_fits = (1..=32).contains(&self.id.len())
            && self.id.starts_with(|first: char| first.is_ascii_lowercase())
            && self.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        problems.check(id_fits, || {
            format!("event.id {:?}: use 1 to 32 of a-z, 0-9 and '-', starting with a letter", self.id)
        });
        problems.check(!self.name.trim().is_empty() && self.name.chars().count() <= 200, || {
            "event.name: use 1 to 200 characters".to_owned()
        });
        problems.check(self.currency.len() == 3 && self.currency.bytes().all(|byte| byte.is_ascii_uppercase()), || {
            format!("event.currency {:?}: use an ISO 4217 code such as EUR", self.currency)
        });
        problems.check((1..=100_000_000).contains(&self.price_minor), || {
            "event.price_minor: use 1 to 100000000 (cents)".to_owned()
        });
        problems.check(self.seats <= MOST_SEATS, || format!("event.seats: use 0 to {MOST_SEATS}"));
        problems.check(self.general_admission <= 1_000_000, || "event.general_admission: use 0 to 1000000".to_owned());
        problems.check(self.seats > 0 || self.general_admission > 0, || {
            "event: nothing to sell; set seats (--seats), general_admission (--general-admission) or both".to_owned()
        });
        problems.check((1..=100).contains(&self.per_hold_limit), || {
            "event.per_hold_limit: use 1 to 100 tickets".to_owned()
        });
    }
}

impl ProviderConfig {
    /// The provider at `url`, with no webhook secret yet and everything else as usual.
    pub fn new(url: String, api_key: Secret) -> Self {
        Self {
            url,
            api_key,
            webhook_secrets: Vec::new(),
            timeout: Duration::from_secs(5),
            most_per_second: None,
            poll_after: Duration::from_secs(10),
            payment_ttl: Duration::from_mins(15),
            // More than six minutes of retries.
            charge_attempts: 20,
        }
    }

    fn check(&self, problems: &mut Problems) {
        problems.check(self.base().is_some(), || {
            "provider.url: use http://HOST:PORT without a path, such as http://127.0.0.1:9100".to_owned()
        });
        problems.check(!self.api_key.expose().is_empty(), || "provider.api_key: it is empty".to_owned());
        problems.check(self.api_key.expose().bytes().all(|byte| byte.is_ascii_graphic()), || {
            "provider.api_key: use visible ASCII characters only".to_owned()
        });
        let strong = self.webhook_secrets.iter().all(|secret| secret.expose().len() >= 16);
        problems.check(!self.webhook_secrets.is_empty() && strong, || {
            "provider.webhook_secrets (--webhook-secret): give at least one, of 16 characters or more".to_owned()
        });
        problems.check(within(self.timeout, Duration::from_millis(100), Duration::from_mins(1)), || {
            "provider.timeout (--provider-timeout): use 100 ms to 60 s".to_owned()
        });
        problems.check(self.most_per_second.is_none_or(|calls| (0.1..=10_000.0).contains(&calls)), || {
            "provider.most_per_second (--provider-tps): use 0.1 to 10000 calls a second".to_owned()
        });
        problems.check(within(self.poll_after, Duration::from_millis(100), Duration::from_mins(1)), || {
            "provider.poll_after (--poll-after): use 100 ms to 1 min".to_owned()
        });
        problems.check(within(self.payment_ttl, Duration::from_secs(1), DAY), || {
            "provider.payment_ttl (--payment-ttl): use 1 s to 24 h".to_owned()
        });
        problems.check(self.charge_attempts > 0, || "provider.charge_attempts: use 1 or more".to_owned());
    }

    /// Scheme and authority of the provider.
    pub(crate) fn base(&self) -> Option<Uri> {
        let uri: Uri = self.url.parse().ok()?;
        let bare = uri.scheme_str() == Some("http") && uri.authority().is_some() && uri.path() == "/";
        (bare && uri.query().is_none()).then_some(uri)
    }
}
