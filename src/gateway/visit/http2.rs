//! HTTP/2 on a connection.

use std::{pin::pin, sync::Arc, time::Duration};

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, sleep};

use super::{House, answer};
use crate::gateway::{
    Gatekeeper,
    client_stream::ClientStream,
    connection::{Activity, Connection},
    crowd::Rest,
};

/// How often a connection with requests is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long a client has to take its leave after our `GOAWAY`.
const GOODBYE: Duration = Duration::from_secs(5);

pub(super) async fn serve<G: Gatekeeper>(stream: ClientStream, connection: &Arc<Connection>, house: &Arc<House<G>>) {
    let deadlines = &house.gateway.limits.deadlines;
    let service = {
        let (house, connection) = (Arc::clone(house), Arc::clone(connection));
        service_fn(move |request| answer(&house, request, &connection))
    };
    let mut serving = pin!(house.http2.serve_connection(TokioIo::new(stream), service));
    let mut look = pin!(sleep(deadlines.first_request));
    // While nothing is under way: since when, and the readiness to make room for others.
    let mut idle = None;
    let mut draining = false;
    loop {
        let asked_to_leave = async {
            match &idle {
                Some((_, rest)) => Rest::ended(rest).await,
                None => std::future::pending().await,
            }
        };
        let mut leave = false;
        tokio::select! {
            _ = serving.as_mut() => return,
            () = connection.closing.hard.cancelled() => return,
            () = connection.closing.soft.stopped(), if !draining => leave = true,
            () = asked_to_leave => leave = true,
            () = look.as_mut() => {
                let now = Instant::now();
                let next = match connection.activity() {
                    Activity::Silent => return,
                    Activity::Busy => {
                        idle = None;
                        connection.answers.give_up_untaken(deadlines.client_write);
                        now + LOOK_EVERY.min(deadlines.client_write)
                    }
                    Activity::Idle if draining => return,
                    Activity::Idle => {
                        let (since, _) = idle.get_or_insert_with(|| (now, connection.place.rest()));
                        let until = *since + deadlines.connection_idle;
                        leave = now >= until;
                        until
                    }
                };
                look.as_mut().reset(next);
            }
        }
        if leave {
            draining = true;
            idle = None;
            serving.as_mut().graceful_shutdown();
            look.as_mut().reset(Instant::now() + GOODBYE);
        }
    }
}
