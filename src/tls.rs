//! TLS for listeners: certificates from files, checked when they are read, and replaced without a restart.

mod files;
mod validity;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};

pub use self::files::{CertificateError, CertificateFiles};
use self::files::{Digest, Loaded};
use crate::shutdown::Shutdown;

/// How often the files are looked at without being told to.
pub const LOOK_EVERY: Duration = Duration::from_secs(30);

/// A certificate in use. Connections that are open keep the one they began with; new ones get the newest.
#[derive(Debug)]
pub struct Certificate {
    files: CertificateFiles,
    current: ArcSwap<CertifiedKey>,
    /// Of the files as last looked at, good or bad, so that a bad pair is complained of once.
    seen: Mutex<Digest>,
    valid_until_s: ArcSwap<Option<i64>>,
}

/// What a look at the files found.
#[derive(Debug)]
pub enum Reloaded {
    /// They are as before.
    Unchanged,
    /// A new certificate is in use.
    Replaced,
    /// They are no good; the old certificate stays in use.
    Kept(CertificateError),
}

impl Certificate {
    /// Reads the files.
    ///
    /// # Errors
    /// When one is missing or unreadable, holds nothing usable, or the two do not belong together.
    pub fn open(files: CertificateFiles) -> Result<Arc<Self>, CertificateError> {
        let Loaded { key, digest, valid_until_s } = files.load()?;
        Ok(Arc::new(Self {
            files,
            current: ArcSwap::from_pointee(key),
            seen: Mutex::new(digest),
            valid_until_s: ArcSwap::from_pointee(valid_until_s),
        }))
    }

    /// What is likely not meant, such as a certificate that has run out by `now_s` (Unix seconds).
    pub fn warning(&self, now_s: i64) -> Option<String> {
        let until = (**self.valid_until_s.load())?;
        let file = self.files.certificate.display();
        let days = (until - now_s) / 86_400;
        match until - now_s {
            left if left <= 0 => Some(format!("the certificate in {file} has expired: browsers refuse it; renew it")),
            left if left < 7 * 86_400 => Some(format!("the certificate in {file} expires in {days} days: renew it")),
            _ => None,
        }
    }

    /// Looks at the files, and takes them into use when they changed and are good.
    pub fn reload(&self) -> Reloaded {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (digest, loaded) = self.files.load_unless(*seen);
        *seen = digest;
        match loaded {
            None => Reloaded::Unchanged,
            Some(Ok(loaded)) => {
                self.current.store(Arc::new(loaded.key));
                self.valid_until_s.store(Arc::new(loaded.valid_until_s));
                Reloaded::Replaced
            }
            Some(Err(error)) => Reloaded::Kept(error),
        }
    }

    /// Looks at the files on SIGHUP and every [`LOOK_EVERY`], until `shutdown`.
    pub async fn keep(self: Arc<Self>, shutdown: Shutdown) {
        let mut hang_up = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())
            .inspect_err(|error| tracing::warn!(%error, "SIGHUP cannot be listened for; certificates are looked at now and then"))
            .ok();
        loop {
            let told = async {
                match &mut hang_up {
                    Some(signal) => _ = signal.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = shutdown.stopped() => return,
                () = told => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let this = Arc::clone(&self);
            if let Ok(found) = tokio::task::spawn_blocking(move || this.reload()).await {
                self.tell(&found);
            }
        }
    }

    fn tell(&self, found: &Reloaded) {
        let file = self.files.certificate.display();
        match found {
            Reloaded::Unchanged => return,
            Reloaded::Replaced => tracing::info!(%file, "a new certificate is in use"),
            Reloaded::Kept(error) => tracing::error!(%error, "the old certificate stays in use"),
        }
        let now_s = jiff::Timestamp::now().as_second();
        if let Some(warning) = self.warning(now_s) {
            tracing::warn!("{warning}");
        }
    }

    /// What a listener needs to speak TLS 1.2 and 1.3 with this certificate, and HTTP/2 or HTTP/1.1 by ALPN.
    ///
    /// # Errors
    /// Never in practice: the provider supports both versions and has randomness.
    pub fn server_config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13, &TLS12])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Current(Arc::clone(self))));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Who comes back resumes without our remembering them: a crowd's sessions would not fit any cache.
        config.ticketer = rustls::crypto::ring::Ticketer::new()?;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 1;
        Ok(Arc::new(config))
    }
}

/// The newest certificate, whatever name is asked for: a browser complains itself when it does not fit.
#[derive(Debug)]
struct Current(Arc<Certificate>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current.load_full())
    }
}
