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
//! | `GET /records` | the same, for every order too, and how often it misbehaved since its start |
//! | `GET /behaviour`, `PUT /behaviour` | its [`Behaviour`] as JSON; `PUT` replaces it as a whole, until the next start |
//!
//! It can be told to misbehave: to fail, refuse, stall and hang up, and to send webhooks twice, late, out of order, never, or
//! with forged ones among them. What befalls whom follows from a seed.
//!
//! It shares no code with the box office, the signature included, so that each keeps the other honest.

mod api;
mod behaviour;
mod book;
mod clerk;
mod faults;
mod forge;
mod journal;
mod outbox;
mod problem;
mod records;
mod settle;
mod signature;
mod spread;
mod tally;
mod webhooks;

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock},
};

use http::Uri;
use tokio::sync::Notify;

pub use self::{
    behaviour::{Behaviour, BehaviourError},
    spread::{Spread, SpreadError},
};
use self::{book::Book, clerk::Clerk, faults::Memory, journal::Journal, signature::Signer, tally::Tally};
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
    /// How it treats its callers, until they are told otherwise by `PUT /behaviour`.
    pub behaviour: Behaviour,
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
    /// The behaviour makes no sense.
    #[error(transparent)]
    Behaviour(#[from] BehaviourError),
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
    behaviour: RwLock<Behaviour>,
    memory: Memory,
    tally: Mutex<Tally>,
    shutdown: OnceLock<Shutdown>,
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
        config.behaviour.check()?;
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
            behaviour: RwLock::new(config.behaviour),
            memory: Memory::default(),
            tally: Mutex::default(),
            shutdown: OnceLock::new(),
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
        let _first = self.0.shutdown.set(shutdown.clone());
        shutdown.spawn(settle::run(Arc::clone(&self.0), shutdown.clone()));
        shutdown.spawn(webhooks::run(Arc::clone(&self.0), shutdown.clone()));
    }
}

impl Provider {
    fn behaviour(&self) -> Behaviour {
        *self.behaviour.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.write().unwrap_or_else(PoisonError::into_inner) = behaviour;
    }

    fn tally<T>(&self, count: impl FnOnce(&mut Tally) -> T) -> T {
        count(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Resolves when the process stops.
    async fn stopping(&self) {
        match self.shutdown.get() {
            Some(shutdown) => shutdown.stopped().await,
            None => std::future::pending().await,
        }
    }
}
