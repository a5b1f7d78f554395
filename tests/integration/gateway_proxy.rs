//! The listener and the proxy, with raw bytes on both sides and a gatekeeper that lets everyone pass.

mod crowd;
mod deadlines;
mod drain;
mod failures;
mod fields;
mod framing;
mod http2;
mod idle;
mod origins;
mod proxy_protocol;
mod refusals;
mod streaming;
mod tls;
mod trusted;
mod upgrades;

use std::net::SocketAddr;

use axum::{Router, routing::get};
use http::{HeaderValue, Uri, request, response};
use stanchion::{
    config::Origins,
    gateway::{Deadlines, Door, Gatekeeper, Gateway, Limits, Passage, Peer, Proxy, Route, Trust, Verdict, serve},
    queue::VisitorId,
    shutdown::Shutdown,
};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::support::{origin::Origin, wire::Wire};

/// Lets everyone pass, as one visitor whose session was just renewed.
struct Everyone;

impl Gatekeeper for Everyone {
    type Memo = &'static str;

    async fn decide(&self, _: &request::Parts, _: Peer) -> Verdict<Self::Memo> {
        Verdict::Forward(Passage {
            route: Route {
                room: "main".parse().unwrap(),
                visitor: Some(VisitorId::from_bits(7)),
                session_expires: Some(4_000_000_000),
                drop_authorization: false,
                sharing: None,
            },
            set_cookies: vec![HeaderValue::from_static("stanchion_s_main=new; Path=/")],
            share: None,
            memo: "seen",
        })
    }

    async fn after_origin(&self, passage: &mut Passage<Self::Memo>, head: &mut response::Parts) {
        if head.headers.remove("stanchion-command").is_some() {
            head.headers.insert("x-memo", HeaderValue::from_static(passage.memo));
        }
    }
}

/// A running gateway.
struct Stage {
    addr: SocketAddr,
    shutdown: Shutdown,
    served: JoinHandle<()>,
}

impl Stage {
    async fn before(origin: Uri) -> Self {
        Self::with(origin, |_, _, _| {}).await
    }

    async fn with(origin: Uri, tweak: impl FnOnce(&mut Limits, &mut Deadlines, &mut Origins)) -> Self {
        Self::on("127.0.0.1:0", origin, tweak).await
    }

    async fn on(bind: &str, origin: Uri, tweak: impl FnOnce(&mut Limits, &mut Deadlines, &mut Origins)) -> Self {
        Self::behind(bind, origin, Trust::default(), |door| door, tweak).await
    }

    /// On a door of another kind, behind proxies.
    async fn behind(
        bind: &str,
        origin: Uri,
        trust: Trust,
        door: impl FnOnce(Door) -> Door,
        tweak: impl FnOnce(&mut Limits, &mut Deadlines, &mut Origins),
    ) -> Self {
        // As in production, but for one pool of connections to the origin, whoever asks.
        let (mut limits, mut deadlines) = (Limits { cores: 1, ..Limits::default() }, Deadlines::default());
        let mut origins = Origins::at(origin);
        tweak(&mut limits, &mut deadlines, &mut origins);
        limits.deadlines = deadlines;
        let proxy = Proxy::new([("main".parse().unwrap(), origins)], &limits).unwrap();
        let endpoints = Router::new().route("/__room/hello", get(|| async { "hello" }));
        let gateway = Gateway::new(Everyone, proxy, endpoints, limits);
        let listener = TcpListener::bind(bind).await.unwrap();
        let (addr, shutdown) = (listener.local_addr().unwrap(), Shutdown::new());
        let served = tokio::spawn(serve(door(Door::plain(listener)), gateway.with_trust(trust), shutdown.clone()));
        Self { addr, shutdown, served }
    }

    async fn client(&self) -> Wire {
        Wire::connect(self.addr).await
    }
}

/// A gateway, its origin, and a connection to each, after `request` went through; the origin's head is read.
async fn exchange(request: impl AsRef<[u8]>) -> (Stage, Origin, Wire, Wire, crate::support::wire::Head) {
    let origin = Origin::bind().await;
    let stage = Stage::before(origin.uri()).await;
    let mut client = stage.client().await;
    client.send(request).await;
    let mut inside = origin.accept().await;
    let head = inside.head().await;
    (stage, origin, client, inside, head)
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
