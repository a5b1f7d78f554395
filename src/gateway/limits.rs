//! How much, how long: every bound of the public listener, with its default.

use std::time::Duration;

/// Bounds of the public listener and the proxy.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Threads that serve visitors, each with a runtime of its own; with 0 the caller's runtime does. Default 0.
    pub cores: usize,
    /// Most connections at once; further ones wait in the kernel's backlog. Default 20,000.
    pub connections: usize,
    /// Most requests that wait for one of the places at a room's shop, reads and writes each. Default 10,000.
    pub waiting: usize,
    /// Most upgraded (WebSocket) connections at once. Default 1,024.
    pub tunnels: usize,
    /// Most bytes of target and header fields together: what common backends take (Node 16 KiB), so that the
    /// visitor hears 431 from us and not some 502. Default 16 KiB.
    pub head: usize,
    /// Most bytes of a request's body on its way to the origin. Default 16 MiB.
    pub request_body: u64,
    /// Most bytes of a request's body for the room's own endpoints. Default 64 KiB.
    pub endpoint_body: u64,
    /// See [`Deadlines`].
    pub deadlines: Deadlines,
}

/// How long the gateway waits for what.
#[derive(Debug, Clone)]
pub struct Deadlines {
    /// From accepting a connection to its first complete request head, silent sockets included. Default 10 s.
    pub first_request: Duration,
    /// From the end of one answer to the next complete head on an HTTP/1 connection. Default 10 s.
    pub head: Duration,
    /// An HTTP/2 connection without a request for this long is closed. Default 60 s.
    pub connection_idle: Duration,
    /// A client that takes no byte for this long is cut off. Default 60 s.
    pub client_write: Duration,
    /// Between two pieces of a body, in either direction. Default 60 s.
    pub body_idle: Duration,
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

impl Default for Limits {
    fn default() -> Self {
        Self {
            cores: 0,
            connections: 20_000,
            waiting: 10_000,
            tunnels: 1_024,
            head: 16 * 1_024,
            request_body: 16 * 1_024 * 1_024,
            endpoint_body: 64 * 1_024,
            deadlines: Deadlines::default(),
        }
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            first_request: Duration::from_secs(10),
            head: Duration::from_secs(10),
            connection_idle: Duration::from_mins(1),
            client_write: Duration::from_mins(1),
            body_idle: Duration::from_mins(1),
            permit: Duration::from_secs(5),
            connect: Duration::from_secs(2),
            response_head: Duration::from_secs(30),
            origin_idle: Duration::from_secs(4),
            tunnel_idle: Duration::from_mins(5),
            tunnel_life: Duration::from_hours(4),
            endpoint: Duration::from_secs(10),
            linger: Duration::from_secs(2),
            drain: Duration::from_secs(20),
        }
    }
}
