//! Sends events until they are acknowledged.
//!
//! Every event is sent at least once, also across restarts: it leaves the outbox only when the acknowledgement is in
//! the journal. A receiver that is down is asked less and less often, and after an hour no more until the next start;
//! whoever missed an event can still ask for the charge.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::task::JoinSet;

use super::{
    Provider,
    behaviour::OrderFault,
    forge::forgeries,
    outbox::Due,
    records::{Event, new_id},
    settle::until,
    signature,
};
use crate::shutdown::Shutdown;

/// Most webhooks under way at once.
const MAX_IN_FLIGHT: usize = 16;
/// One try takes no longer than this.
const TRY_DEADLINE: Duration = Duration::from_secs(5);
/// Pause after the first failure; doubled after each further one.
const FIRST_PAUSE_MS: u64 = 250;
/// Longest pause.
const LONGEST_PAUSE_MS: u64 = 60_000;
/// An event that nobody took for this long is parked.
const PATIENCE: Duration = Duration::from_hours(1);
/// Most of an answer's body that is read, so that the connection can be used again.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

type HttpClient = Client<HttpConnector, Full<Bytes>>;

pub(super) async fn run(provider: Arc<Provider>, shutdown: Shutdown) {
    let client: HttpClient = Client::builder(TokioExecutor::new()).build_http();
    let mut tries = JoinSet::new();
    while !shutdown.is_stopping() {
        while tries.try_join_next().is_some() {}
        let now_ms = provider.clock.unix_millis();
        let room = MAX_IN_FLIGHT.saturating_sub(tries.len());
        let due = provider.clerk.ask(move |book| book.outbox.take_due(now_ms, room)).await;
        let Ok((due, next_ms)) = due else { return };
        for due in due {
            tries.spawn(deliver(Arc::clone(&provider), client.clone(), due));
        }
        tokio::select! {
            () = shutdown.stopped() => {}
            Some(_) = tries.join_next() => {}
            () = provider.event_made.notified() => {}
            () = tokio::time::sleep(until(next_ms, now_ms)), if tries.len() < MAX_IN_FLIGHT => {}
        }
    }
    // Tries that are cut off here count as failed: after the next start they are made again.
}

/// Makes one try and reports to the book how it went.
async fn deliver(provider: Arc<Provider>, client: HttpClient, due: Due) {
    let Due { event, tries, trying_for } = due;
    let faults = provider.behaviour().webhook_faults(&event);
    let mut first = tries == 1;
    match faults.order {
        Some(OrderFault::Lost) if first => {
            provider.tally(|tally| tally.webhooks_lost += 1);
            let _lost = provider.clerk.ask(move |book| book.acknowledged(event.id)).await;
            return;
        }
        Some(OrderFault::Late(late_by)) if first => {
            provider.tally(|tally| tally.webhooks_late += 1);
            let late_ms = u64::try_from(late_by.as_millis()).unwrap_or(u64::MAX);
            let at_ms = provider.clock.unix_millis().saturating_add(late_ms);
            let _lost = provider.clerk.ask(move |book| book.outbox.try_again(event.id, at_ms)).await;
            provider.event_made.notify_one();
            return;
        }
        Some(OrderFault::Late(_)) => first = tries == 2,
        _ => {}
    }
    if faults.forged && first {
        forge(&provider, &client, &event).await;
    }
    let Err(failure) = send_real(&provider, &client, &event, faults.twice && first).await else {
        if faults.order == Some(OrderFault::Reordered) {
            provider.tally(|tally| tally.webhooks_reordered += 1);
            // Its one try may fail: what it says has been overtaken.
            let _stale = send_signed(&provider, &client, &older(&event)).await;
        }
        // Should the journal be lost, the event is merely sent once more after the restart.
        let _lost = provider.clerk.ask(move |book| book.acknowledged(event.id)).await;
        return;
    };
    if trying_for >= PATIENCE {
        tracing::warn!(event = event.id, tries, failure, "webhook parked until the next start");
        return;
    }
    tracing::debug!(event = event.id, tries, failure, "webhook not taken");
    let at_ms = provider.clock.unix_millis() + pause_ms(tries, rand::random());
    let _lost = provider.clerk.ask(move |book| book.outbox.try_again(event.id, at_ms)).await;
}

async fn send_real(provider: &Provider, client: &HttpClient, event: &Event, twice: bool) -> Result<(), String> {
    if !twice {
        return send_signed(provider, client, event).await;
    }
    provider.tally(|tally| tally.webhooks_duplicated += 1);
    let (one, other) = tokio::join!(send_signed(provider, client, event), send_signed(provider, client, event));
    one.or(other)
}

/// What was true of the charge before `event`, told behind it.
fn older(event: &Event) -> Event {
    let kind = match event.kind {
        // A card that was declined once and then went through.
        "charge.captured" => "charge.declined",
        "charge.declined" => "charge.pending",
        _ => "charge.captured",
    };
    Event { id: new_id("evt"), kind, refund: None, created: event.created.saturating_sub(1), ..event.clone() }
}

async fn forge(provider: &Provider, client: &HttpClient, event: &Event) {
    for forgery in forgeries(event, &provider.signer, provider.clock.unix_seconds()) {
        provider.tally(|tally| tally.webhooks_forged += 1);
        if send(provider, client, forgery.signature, forgery.body).await.is_ok() {
            provider.tally(|tally| tally.forgeries_believed += 1);
            tracing::error!("the receiver believed a forged webhook");
        }
    }
}

async fn send_signed(provider: &Provider, client: &HttpClient, event: &Event) -> Result<(), String> {
    let body = event.to_json();
    let signature = provider.signer.sign(provider.clock.unix_seconds(), &body);
    send(provider, client, Some(signature), body).await
}

async fn send(
    provider: &Provider,
    client: &HttpClient,
    signature: Option<String>,
    body: Vec<u8>,
) -> Result<(), String> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(provider.webhook_url.clone())
        .header(header::CONTENT_TYPE, "application/json");
    if let Some(signature) = signature {
        request = request.header(signature::HEADER, signature);
    }
    let request = request.body(Full::from(body)).map_err(|error| error.to_string())?;
    let exchange = async {
        let answer = client.request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let _unread = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await;
        if status.is_success() { Ok(()) } else { Err(format!("status {}", status.as_u16())) }
    };
    let late = |_| format!("no answer within {} s", TRY_DEADLINE.as_secs());
    tokio::time::timeout(TRY_DEADLINE, exchange).await.map_err(late)?
}

/// The pause after `tries` failures: doubling, capped, then spread by half so that receivers are not hit in step.
/// `chance` picks the place in the spread.
fn pause_ms(tries: u32, chance: u32) -> u64 {
    let doubled = FIRST_PAUSE_MS << tries.saturating_sub(1).min(16);
    let capped = doubled.min(LONGEST_PAUSE_MS);
    capped / 2 + capped * u64::from(chance) / u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_are_spread_around_a_cap() {
        assert_eq!((pause_ms(1, 0), pause_ms(1, u32::MAX)), (125, 375));
        assert_eq!((pause_ms(3, 0), pause_ms(3, u32::MAX)), (500, 1_500));
        assert_eq!((pause_ms(u32::MAX, 0), pause_ms(u32::MAX, u32::MAX)), (30_000, 90_000));
    }
}
