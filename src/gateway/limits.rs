//! How much, how long: every bound of the public listener, with its default.

use std::time::Duration;

use crate::config::ServerConfig;

/// Bounds of the public listener and the proxy.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Threads that serve visitors, each with a runtime of its own; with 0 the caller's runtime does. Default 0.
    pub cores: usize,
    /// Most connections at once; for further ones the longest idle make room, else they wait in the kernel's backlog.
    /// Default 20,000.
    pub connections: usize,
    /// Most connections of one address while nearly all are taken. Default 500.
    pub connections_per_address: usize,
    /// Most requests that wait for one of the places at a room's shop, reads and writes each. Default 10,000.
    pub waiting: usize,
    /// Most upgraded (WebSocket) connections at once. Default 1,024.
    pub tunnels: usize,
    /// Most bytes of target and header fields together: what common backends take (Node 16 KiB), so that the
    /// visitor hears 431 from us and not some 502. Default 16 KiB.
    pub head: usize,
    /// Most header fields, 1 to 100. Default 100.
    pub headers: usize,
    /// Most bytes of the target alone. Default 8 KiB.
    pub target: usize,
    /// Most bytes of a request's body on its way to the origin. Default 16 MiB.
    pub request_body: u64,
    /// Fewest bytes a second of a request's body, while it is waited for; 0 for no such bound. Default 240.
    pub body_rate: u64,
    /// Most bytes of the origins' answers that are kept, over all rooms. Default 64 MiB.
    pub cache: usize,
    /// Most bytes of a request's body for the room's own endpoints. Default 64 KiB.
    pub endpoint_body: u64,
    /// See [`Deadlines`].
    pub deadlines: Deadlines,
}

/// How long the gateway waits for what.
#[derive(Debug, Clone)]
pub struct Deadlines {
    /// For a PROXY header, and for a TLS handshake. Default 10 s.
    pub handshake: Duration,
    /// From then to the first byte of a request, and over HTTP/2 to the first complete head. Default 10 s.
    pub first_request: Duration,
    /// For a complete head of HTTP/1. Default 10 s.
    pub head: Duration,
    /// A connection without a request for this long is closed. Default 60 s.
    pub connection_idle: Duration,
    /// A client that takes no byte for this long is cut off. Default 60 s.
    pub client_write: Duration,
    /// Between two pieces of a body, in either direction. Default 60 s.
    pub body_idle: Duration,
    /// Beyond this a request's body has to have come with [`Limits::body_rate`] on average. Default 20 s.
    pub body_grace: Duration,
    /// For one of the shop's places ([`crate::config::Origins`]). Default 5 s.
    pub permit: Duration,
    /// For a connection to the origin, name resolution included. Default 2 s.
    pub connect: Duration,
    /// From the last byte of the request to the head of the origin's answer. Default 30 s.
    pub response_head: Duration,
    /// How long an idle connection to the origin is kept: less than the 5 s after which common backends close
    /// theirs, because a request sent into a closing connection is lost. Default 4 s.
    pub origin_idle: Duration,
    /// An upgraded connection without a byte either way for this long is closed. Default 5 min.
    pub tunnel_idle: Duration,
    /// An upgraded connection lives no longer than this, nor beyond its session. Default 4 h.
    pub tunnel_life: Duration,
    /// For the room's own endpoints to answer. Default 10 s.
    pub endpoint: Duration,
    /// After our last byte, for the client to stop sending: closing earlier would reset the connection and
    /// destroy the answer on its way. Default 2 s.
    pub linger: Duration,
    /// From the wish to stop until what still runs is cut off. Default 20 s.
    pub drain: Duration,
}

impl Limits {
    /// These bounds of the public side, and the defaults for the rest.
    pub fn of(server: &ServerConfig) -> Self {
        Self {
            cores: 0,
            connections: server.max_connections,
            connections_per_address: server.max_connections_per_address,
            waiting: 10_000,
            tunnels: 1_024,
            head: server.max_header_bytes,
            headers: server.max_headers,
            target: server.max_target_bytes,
            request_body: server.max_body_bytes,
            body_rate: server.min_body_rate,
            cache: server.cache_bytes,
            endpoint_body: 64 * 1_024,
            deadlines: Deadlines::of(server),
        }
    }
}

impl Deadlines {
    fn of(server: &ServerConfig) -> Self {
        Self {
            handshake: server.handshake_deadline,
            first_request: server.header_deadline,
            head: server.header_deadline,
            connection_idle: server.keep_alive,
            client_write: server.write_deadline,
            body_idle: server.body_idle,
            body_grace: Duration::from_secs(20),
            permit: Duration::from_secs(5),
            connect: Duration::from_secs(2),
            response_head: Duration::from_secs(30),
            origin_idle: Duration::from_secs(4),
            tunnel_idle: Duration::from_mins(5),
            tunnel_life: Duration::from_hours(4),
            endpoint: Duration::from_secs(10),
            linger: Duration::from_secs(2),
            drain: server.drain_deadline,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::of(&ServerConfig::default())
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self::of(&ServerConfig::default())
    }
}
