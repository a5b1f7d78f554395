//! HTTP/1 on a connection, as long as requests keep coming.

use std::{pin::pin, sync::Arc, time::Duration};

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, sleep};

use super::{House, answer, last_call, refuse};
use crate::gateway::{
    Gatekeeper, GatewayError,
    client_stream::ClientStream,
    connection::{Activity, Connection},
    framing::{Framing, Refusal},
};

/// How often a connection is looked at; without a request for so long, it is put to rest.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How it ended.
pub(super) enum Ended {
    /// Nothing is under way: it may rest until the next request.
    Idle(Box<ClientStream>),
    /// For good.
    Gone,
}

pub(super) async fn serve<G: Gatekeeper>(
    mut stream: ClientStream,
    connection: &Arc<Connection>,
    house: &Arc<House<G>>,
) -> Ended {
    stream.watch_framing(Framing::new(house.head));
    let service = {
        let (house, connection) = (Arc::clone(house), Arc::clone(connection));
        service_fn(move |request| answer(&house, request, &connection))
    };
    let mut serving = house.http1.serve_connection(TokioIo::new(stream), service).with_upgrades();
    let mut look = pin!(sleep(LOOK_EVERY));
    let mut draining = false;
    let ended = loop {
        tokio::select! {
            ended = &mut serving => break Some(ended),
            () = connection.closing.hard.cancelled() => return Ended::Gone,
            () = last_call(connection), if !draining => {
                draining = true;
                Pin::new(&mut serving).graceful_shutdown();
            }
            () = look.as_mut() => {
                let is_idle = connection.activity() != Activity::Busy && connection.is_settled();
                let is_over = connection.is_refused() && connection.has_answered();
                if !draining && is_idle || is_over {
                    break None;
                }
                look.as_mut().reset(Instant::now() + LOOK_EVERY);
            }
        }
    };
    let timed_out = matches!(&ended, Some(Err(error)) if error.is_timeout());
    if let Some(Err(error)) = &ended {
        // The client's affair: it broke off, or sent what is not HTTP and was told so.
        tracing::debug!(%error, "a connection ended early");
    }
    let Some(parts) = serving.into_parts() else { return Ended::Gone };
    let mut stream = parts.io.into_inner();
    match stream.take_refusal() {
        // Whoever read the body has answered with the reason.
        Some(Refusal { in_body: true, .. }) => stream.part().await,
        Some(Refusal { error, .. }) if connection.has_answered() => refuse(stream, error).await,
        // Whoever said half a request hears why it was not answered.
        None if timed_out && stream.is_amid_head() => refuse(stream, GatewayError::ClientTooSlow).await,
        None if ended.is_none() => {
            stream.take_framing();
            stream.put_back(&parts.read_buf);
            return Ended::Idle(Box::new(stream));
        }
        _ => {}
    }
    Ended::Gone
}
