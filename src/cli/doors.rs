//! Opens the public listeners that the configuration tells of.

use std::sync::Arc;

use anyhow::Context as _;

use crate::{
    config::ListenerConfig,
    gateway::Door,
    listener,
    shutdown::Shutdown,
    tls::{Certificate, CertificateError},
};

/// Listeners that are bound, and the certificates they use.
pub struct Open {
    doors: Vec<Door>,
    certificates: Vec<Arc<Certificate>>,
}

/// The certificate of each listener that has one. Warns of what is likely not meant.
pub fn certificates(listeners: &[ListenerConfig]) -> Result<Vec<Option<Arc<Certificate>>>, CertificateError> {
    listeners.iter().map(|listener| listener.tls.clone().map(Certificate::open).transpose()).collect()
}

/// What is likely not meant about certificates.
pub fn warnings(certificates: &[Option<Arc<Certificate>>]) -> Vec<String> {
    let now_s = jiff::Timestamp::now().as_second();
    certificates.iter().flatten().filter_map(|certificate| certificate.warning(now_s)).collect()
}

/// Reads the certificates, then binds.
pub async fn open(listeners: &[ListenerConfig]) -> anyhow::Result<Open> {
    let certificates = certificates(listeners)?;
    for warning in warnings(&certificates) {
        tracing::warn!("{warning}");
    }
    let mut doors = Vec::with_capacity(listeners.len());
    for (listener, certificate) in listeners.iter().zip(&certificates) {
        let bound = listener::bind(listener.address).await?;
        tracing::info!(
            address = %bound.local_addr()?,
            tls = certificate.is_some(),
            proxy_protocol = listener.proxy_protocol,
            "public listener"
        );
        let mut door = Door::plain(bound);
        if let Some(certificate) = certificate {
            door = door.with_tls(certificate.server_config().context("TLS cannot be set up")?);
        }
        if listener.proxy_protocol {
            door = door.with_proxy_protocol();
        }
        doors.push(door);
    }
    Ok(Open { doors, certificates: certificates.into_iter().flatten().collect() })
}

impl Open {
    /// The listeners; their certificates are looked after until `shutdown`.
    pub fn into_doors(self, shutdown: &Shutdown) -> Vec<Door> {
        for certificate in self.certificates {
            shutdown.spawn(certificate.keep(shutdown.clone()));
        }
        self.doors
    }
}
