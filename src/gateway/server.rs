//! Accepts the visitors' connections, and drains them at the end.

use std::{sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Gatekeeper, Gateway, Peer,
    connection::Closing,
    cores::Cores,
    crowd::Crowd,
    doors::{Door, Doors},
    visit::{Arrival, House, attend},
};
use crate::shutdown::Shutdown;

/// After a failed accept, usually for want of file descriptors, which only time can bring back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How many the kernel keeps waiting before the door: no more of them are let in once it is to close.
const BACKLOG: usize = 1_024;

/// What accepting needs.
struct Entrance<G> {
    house: Arc<House<G>>,
    crowd: Crowd,
    cores: Cores,
    closing: Closing,
}

/// Serves `gateway` on `doors` until `shutdown` asks to stop, then drains: nothing is accepted any more, idle
/// connections are closed at once, running requests end with `Connection: close` or behind a `GOAWAY`, and what still
/// runs after [`super::Deadlines::drain`] is cut off. Returns when nothing runs.
pub async fn serve<G: Gatekeeper>(doors: impl Into<Doors>, gateway: Gateway<G>, shutdown: Shutdown) {
    let limits = gateway.limits.clone();
    let Ok(cores) = Cores::start(limits.cores).inspect_err(|error| tracing::error!(%error, "no threads to serve on"))
    else {
        return shutdown.stop();
    };
    let house = Arc::new(House::new(gateway));
    let watched = Arc::clone(&house);
    let _health_checks = AbortOnDropHandle::new(tokio::spawn(async move { watched.gateway.proxy.watch().await }));
    let closing = Closing { soft: shutdown.clone(), ..Closing::default() };
    let entrance = Arc::new(Entrance {
        house,
        crowd: Crowd::new(limits.connections, limits.connections_per_address),
        cores,
        closing: closing.clone(),
    });
    let mut open = JoinSet::new();
    for door in doors.into().0 {
        open.spawn(receive(door, Arc::clone(&entrance)));
    }
    while open.join_next().await.is_some() {}
    closing.tasks.close();
    if timeout(limits.deadlines.drain, closing.tasks.wait()).await.is_err() {
        tracing::warn!(left = closing.tasks.len(), "connections were cut off at the drain deadline");
        closing.hard.cancel();
        closing.tasks.wait().await;
    }
}

/// Accepts on one listener until the gateway is to stop.
async fn receive<G: Gatekeeper>(door: Door, entrance: Arc<Entrance<G>>) {
    let Door { listener, welcome } = door;
    let Entrance { house, crowd, cores, closing } = &*entrance;
    let next = async || {
        let (stream, peer) = accept(&listener).await?;
        // A proxy stands for many; whom it speaks for is counted when that is known.
        let ip = peer.addr.ip();
        let counted = (!welcome.proxy_protocol && !house.gateway.trust.is_trusted(ip)).then_some(ip);
        // Whoever has had its share is closed; while all is taken nothing more is accepted, and the kernel lets them wait.
        Some((stream, peer, crowd.enter(counted).await?))
    };
    let mut last = BACKLOG;
    while last > 0 {
        let next = tokio::select! {
            biased;
            next = next() => next,
            // Whoever stood before the door by then was let in above.
            () = closing.soft.stopped() => break,
        };
        last -= usize::from(closing.soft.is_stopping());
        let Some((stream, peer, place)) = next else { continue };
        let (core, runtime) = cores.next();
        let arrival = Arrival { peer, welcome: welcome.clone(), place, closing: closing.clone(), core };
        let house = Arc::clone(house);
        let attending = async move {
            // Readiness is told to the runtime that a socket was made on.
            match TcpStream::from_std(stream) {
                Ok(stream) => attend(stream, arrival, house).await,
                Err(error) => tracing::warn!(%error, "a connection could not be served"),
            }
        };
        closing.tasks.spawn_on(attending, &runtime);
    }
}

async fn accept(listener: &TcpListener) -> Option<(std::net::TcpStream, Peer)> {
    match listener.accept().await {
        Ok((stream, addr)) => {
            // Fails only on a socket that is gone already, which the first read will tell.
            let _ = stream.set_nodelay(true);
            stream.into_std().ok().map(|stream| (stream, Peer::new(addr, false)))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}
