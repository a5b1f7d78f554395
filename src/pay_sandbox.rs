//! A payment provider to test against.
//!
//! It takes charges and refunds over HTTP, decides charges a set time later, and reports by signed webhook until the
//! report is acknowledged. With a journal it forgets nothing on `kill -9`: what an answer says is on disk before the
//! answer is sent, pending charges settle after the restart, and unacknowledged webhooks are sent again.
//!
//! | call | answer |
//! | --- | --- |
//! | `POST /charges` | 202, the charge; the same `Idempotency-Key` gives the same charge, with another body 422 |
//! | `GET /charges/{charge}`, `GET /charges?order=…` | the charge, `{"charges":[…]}` |
//! | `POST /refunds` | 202, the refund; idempotent likewise, never above what was captured |
//! | `GET /summary` | counts and sums; the only call that needs no API key, since it names nobody |
//!
//! It shares no code with the box office, the signature included, so that each keeps the other honest.

mod api;
mod behaviour;
mod book;
mod clerk;
mod journal;
mod outbox;
mod problem;
mod records;
mod settle;
mod signature;
mod webhooks;

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use http::Uri;
use tokio::sync::Notify;

use self::{behaviour::Behaviour, book::Book, clerk::Clerk, journal::Journal, signature::Signer};
use crate::{
    clock::{SharedClock, SystemClock},
    config::Secret,
    shutdown::Shutdown,
};

/// How the provider is set up.
#[derive(Debug, Clone)]
pub struct PaySandboxConfig {
    /// What callers present as `Authorization: Bearer …`.
    pub api_key: Secret,
    /// Where webhooks go: an absolute `http://` URL.
    pub webhook_url: String,
    /// What webhooks are signed with.
    pub webhook_secret: Secret,
    /// Time between a charge's `POST` and its capture or decline.
    pub latency: Duration,
    /// The share of orders whose charges are declined, 0 to 1. Which ones follows from the order's id, so a run can be
    /// repeated.
    pub decline_ratio: f64,
    /// The file that outlives the process; `None` keeps everything in memory.
    pub journal: Option<PathBuf>,
}

/// Why the provider does not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The API key or the webhook secret is empty.
    #[error("the payment sandbox needs a non-empty {0}")]
    Empty(&'static str),
    /// The webhook URL is not absolute, or not plain HTTP.
    #[error("the webhook URL must look like http://127.0.0.1:8081/webhooks/payments (plain http only)")]
    WebhookUrl,
    /// The ratio is outside 0 to 1.
    #[error("a decline ratio of {0} makes no sense: use 0 (decline none) to 1 (decline all)")]
    DeclineRatio(f64),
    /// The journal cannot be used.
    #[error("payment journal {}: {source}", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// The operating system gave no thread.
    #[error("cannot start the payment sandbox's thread: {0}")]
    Thread(io::Error),
}

/// A running provider. Clones are the same one.
#[derive(Debug, Clone)]
pub struct PaySandbox(Arc<Provider>);

/// What the API and the background tasks share.
#[derive(Debug)]
struct Provider {
    clerk: Clerk,
    behaviour: Behaviour,
    api_key: Secret,
    webhook_url: Uri,
    signer: Signer,
    clock: SharedClock,
    /// A charge is there to settle.
    charge_made: Notify,
    /// A webhook is there to send.
    event_made: Notify,
}

impl PaySandbox {
    /// Reads the journal, if one is set. Nothing settles and no webhook leaves before [`Self::start`].
    pub fn open(config: PaySandboxConfig) -> Result<Self, OpenError> {
        if config.api_key.expose().is_empty() {
            return Err(OpenError::Empty("API key"));
        }
        if config.webhook_secret.expose().is_empty() {
            return Err(OpenError::Empty("webhook secret"));
        }
        let webhook_url: Uri = config.webhook_url.parse().map_err(|_| OpenError::WebhookUrl)?;
        if webhook_url.scheme_str() != Some("http") || webhook_url.authority().is_none() {
            return Err(OpenError::WebhookUrl);
        }
        if !(0.0..=1.0).contains(&config.decline_ratio) {
            return Err(OpenError::DeclineRatio(config.decline_ratio));
        }
        let mut book = Book::default();
        let journal = match config.journal {
            None => None,
            Some(path) => match Journal::open(&path, &mut book) {
                Ok(journal) => Some(journal),
                Err(source) => return Err(OpenError::Journal { path, source }),
            },
        };
        Ok(Self(Arc::new(Provider {
            clerk: Clerk::start(book, journal).map_err(OpenError::Thread)?,
            behaviour: Behaviour { latency: config.latency, decline_ratio: config.decline_ratio },
            api_key: config.api_key,
            webhook_url,
            signer: Signer::new(config.webhook_secret.expose()),
            clock: Arc::new(SystemClock),
            charge_made: Notify::new(),
            event_made: Notify::new(),
        })))
    }

    /// The provider's HTTP API.
    pub fn router(&self) -> axum::Router {
        api::router(Arc::clone(&self.0))
    }

    /// Runs what happens by itself: charges settle, webhooks leave.
    pub fn start(&self, shutdown: &Shutdown) {
        shutdown.spawn(settle::run(Arc::clone(&self.0), shutdown.clone()));
        shutdown.spawn(webhooks::run(Arc::clone(&self.0), shutdown.clone()));
    }
}
