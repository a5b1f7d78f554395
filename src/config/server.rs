//! The public side: where visitors come in, whom they may come through, and how much of them is borne.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use ipnet::IpNet;
use serde::Deserialize;

use super::{
    file::{ListenerTable, ServerTable},
    problems::Problems,
};
use crate::tls::CertificateFiles;

/// One address that visitors come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerConfig {
    /// Where.
    pub address: SocketAddr,
    /// Speaks TLS with this certificate; plain HTTP when `None`.
    pub tls: Option<CertificateFiles>,
    /// Whether every connection begins with a header of the PROXY protocol, versions 1 and 2.
    pub proxy_protocol: bool,
}

/// The header in which trusted proxies tell whom they speak for. Only one is believed, because a proxy that sets the one
/// passes on whatever its client wrote into the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`, and `X-Forwarded-Proto` and `-Host` with it.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// The `[server]` table, checked. [`ServerConfig::default`] holds the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Peers whose word about their clients is taken.
    pub trusted_proxies: Vec<IpNet>,
    /// Where they put it.
    pub forwarded_header: ForwardedHeader,
    /// Most connections at once.
    pub max_connections: usize,
    /// Most connections of one address (of one /64 for IPv6), enforced only while the gateway is nearly full.
    pub max_connections_per_address: usize,
    /// Most bytes of a request's target and header fields together.
    pub max_header_bytes: usize,
    /// Most header fields.
    pub max_headers: usize,
    /// Most bytes of a request's target.
    pub max_target_bytes: usize,
    /// Most bytes of a request's body on its way to the origin.
    pub max_body_bytes: u64,
    /// Most bytes of the origins' answers that are kept for the routes which rooms name.
    pub cache_bytes: usize,
    /// For the PROXY header, and for the TLS handshake.
    pub handshake_deadline: Duration,
    /// For a complete request head.
    pub header_deadline: Duration,
    /// How long a connection is kept open without a request.
    pub keep_alive: Duration,
    /// Between two pieces of a body.
    pub body_idle: Duration,
    /// Bytes per second that a request's body has to come with after a grace, on average. 0: no such bound.
    pub min_body_rate: u64,
    /// A client that takes nothing for this long is cut off.
    pub write_deadline: Duration,
    /// From the wish to stop until the listeners close; `/readyz` answers 503 meanwhile.
    pub drain_delay: Duration,
    /// From closing the listeners until what still runs is cut off.
    pub drain_deadline: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            trusted_proxies: Vec::new(),
            forwarded_header: ForwardedHeader::default(),
            max_connections: 20_000,
            max_connections_per_address: 500,
            max_header_bytes: 16 * 1_024,
            max_headers: 100,
            max_target_bytes: 8 * 1_024,
            max_body_bytes: 16 * 1_024 * 1_024,
            cache_bytes: 64 * 1_024 * 1_024,
            handshake_deadline: Duration::from_secs(10),
            header_deadline: Duration::from_secs(10),
            keep_alive: Duration::from_mins(1),
            body_idle: Duration::from_mins(1),
            min_body_rate: 240,
            write_deadline: Duration::from_mins(1),
            drain_delay: Duration::ZERO,
            drain_deadline: Duration::from_secs(20),
        }
    }
}

/// Above this a deadline is none.
const LONGEST: Duration = Duration::from_hours(1);

impl ServerConfig {
    pub(super) fn check(table: &ServerTable, problems: &mut Problems) -> Self {
        let default = Self::default();
        let networks = |names: &[String], problems: &mut Problems| {
            names.iter().filter_map(|name| problems.take("server: trusted_proxies", network(name))).collect()
        };
        let mut durations = Durations { problems };
        let config = Self {
            handshake_deadline: durations.pick(
                "handshake_deadline",
                table.handshake_deadline,
                default.handshake_deadline,
            ),
            header_deadline: durations.pick("header_deadline", table.header_deadline, default.header_deadline),
            keep_alive: durations.pick("keep_alive", table.keep_alive, default.keep_alive),
            body_idle: durations.pick("body_idle", table.body_idle, default.body_idle),
            write_deadline: durations.pick("write_deadline", table.write_deadline, default.write_deadline),
            drain_deadline: durations.pick("drain_deadline", table.drain_deadline, default.drain_deadline),
            drain_delay: table.drain_delay.unwrap_or(default.drain_delay),
            trusted_proxies: networks(&table.trusted_proxies, problems),
            forwarded_header: table.forwarded_header.unwrap_or_default(),
            max_connections: table.max_connections.unwrap_or(default.max_connections),
            max_connections_per_address: table
                .max_connections_per_address
                .unwrap_or(default.max_connections_per_address),
            max_header_bytes: table.max_header_bytes.unwrap_or(default.max_header_bytes),
            max_headers: table.max_headers.unwrap_or(default.max_headers),
            max_target_bytes: table.max_target_bytes.unwrap_or(default.max_target_bytes),
            max_body_bytes: table.max_body_bytes.unwrap_or(default.max_body_bytes),
            cache_bytes: table.cache_bytes.unwrap_or(default.cache_bytes),
            min_body_rate: table.min_body_rate.unwrap_or(default.min_body_rate),
        };
        config.check_numbers(problems);
        config
    }

    fn check_numbers(&self, problems: &mut Problems) {
        let mut within = |name: &str, value: usize, least: usize, most: usize| {
            problems
                .check((least..=most).contains(&value), || format!("server: {name} {value}: use {least} to {most}"));
        };
        within("max_connections", self.max_connections, 16, 1_000_000);
        within("max_connections_per_address", self.max_connections_per_address, 1, 1_000_000);
        // What browsers send at least, and what fits into the buffer of a connection.
        within("max_header_bytes", self.max_header_bytes, 2_048, 65_536);
        within("max_headers", self.max_headers, 20, 100);
        within("max_target_bytes", self.max_target_bytes, 256, self.max_header_bytes.max(256));
        // Less would not hold a few pages; more is surely a typing error.
        within("cache_bytes", self.cache_bytes, 1 << 20, 1 << 36);
        problems
            .check(self.drain_delay <= LONGEST, || "server: drain_delay is longer than an hour: use less".to_owned());
        problems.check(self.min_body_rate <= 1_000_000, || {
            format!(
                "server: min_body_rate {}: use bytes per second up to 1000000, or 0 for no bound",
                self.min_body_rate
            )
        });
    }
}

struct Durations<'a> {
    problems: &'a mut Problems,
}

impl Durations<'_> {
    fn pick(&mut self, name: &str, given: Option<Duration>, default: Duration) -> Duration {
        let picked = given.unwrap_or(default);
        self.problems.check((Duration::from_millis(100)..=LONGEST).contains(&picked), || {
            format!("server: {name} {picked:?}: use 100ms to 1h")
        });
        picked
    }
}

fn network(name: &str) -> Result<IpNet, String> {
    name.parse()
        .or_else(|_| name.parse::<std::net::IpAddr>().map(IpNet::from))
        .map_err(|_| format!("{name:?} is no network such as 10.0.0.0/8, nor an address"))
}

/// All listeners: plain ones, by the command line or the file, and those with a table of their own.
pub(super) fn listeners(
    plain: Option<Vec<SocketAddr>>,
    tables: Vec<ListenerTable>,
    problems: &mut Problems,
) -> Vec<ListenerConfig> {
    let default = || if tables.is_empty() { vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))] } else { Vec::new() };
    let plain = plain.unwrap_or_else(default).into_iter();
    let plain = plain.map(|address| ListenerConfig { address, tls: None, proxy_protocol: false });
    let others: Vec<_> = tables.into_iter().filter_map(|table| listener(table, problems)).collect();
    let all: Vec<ListenerConfig> = plain.chain(others).collect();
    for (index, one) in all.iter().enumerate() {
        let is_new = one.address.port() == 0 || all[..index].iter().all(|other| other.address != one.address);
        problems.check(is_new, || format!("two listeners have the address {}: take one away", one.address));
    }
    problems.check(!all.is_empty(), || "listen is empty: give at least one address".to_owned());
    all
}

fn listener(table: ListenerTable, problems: &mut Problems) -> Option<ListenerConfig> {
    let Some(address) = table.address else {
        problems.add("listeners: address is missing, such as address = \"0.0.0.0:443\"");
        return None;
    };
    let tls = match (table.certificate, table.key) {
        (Some(certificate), Some(key)) => Some(CertificateFiles { certificate, key }),
        (None, None) => None,
        _ => {
            problems.add(format!(
                "listener {address}: certificate and key belong together: give both, or none for plain HTTP"
            ));
            None
        }
    };
    Some(ListenerConfig { address, tls, proxy_protocol: table.proxy_protocol })
}

#[cfg(test)]
mod tests;
