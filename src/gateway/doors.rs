//! Where visitors come in.

use std::sync::Arc;

use rustls::ServerConfig;
use tokio::net::TcpListener;

/// One listener, and what is spoken on it before HTTP.
#[derive(Debug)]
pub struct Door {
    pub(super) listener: TcpListener,
    pub(super) welcome: Welcome,
}

/// What is spoken before HTTP.
#[derive(Debug, Clone, Default)]
pub(super) struct Welcome {
    pub(super) tls: Option<Arc<ServerConfig>>,
    pub(super) proxy_protocol: bool,
}

/// Every listener of a gateway.
#[derive(Debug)]
pub struct Doors(pub(super) Vec<Door>);

impl Door {
    /// A listener that speaks plain HTTP.
    pub fn plain(listener: TcpListener) -> Self {
        Self { listener, welcome: Welcome::default() }
    }

    /// Speaks TLS.
    #[must_use]
    pub fn with_tls(mut self, tls: Arc<ServerConfig>) -> Self {
        self.welcome.tls = Some(tls);
        self
    }

    /// Wants a PROXY header first, and takes it from trusted proxies only.
    #[must_use]
    pub fn with_proxy_protocol(mut self) -> Self {
        self.welcome.proxy_protocol = true;
        self
    }
}

impl From<TcpListener> for Doors {
    fn from(listener: TcpListener) -> Self {
        Self(vec![Door::plain(listener)])
    }
}

impl From<Door> for Doors {
    fn from(door: Door) -> Self {
        Self(vec![door])
    }
}

impl From<Vec<Door>> for Doors {
    fn from(doors: Vec<Door>) -> Self {
        Self(doors)
    }
}
