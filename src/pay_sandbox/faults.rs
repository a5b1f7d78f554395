//! Bad manners towards callers: errors, "not now", silence, closed connections.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};

use super::{Provider, behaviour::CallFault, problem::Problem};

/// A caller that waits longer than this for an answer is let go.
const STALL: Duration = Duration::from_mins(2);
/// Most calls whose tries are counted; beyond, counting begins anew.
const MOST_COUNTED: usize = 1_000_000;

/// What the bad manners need to remember between calls.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// How often each call came, by idempotency key or path.
    tries: Mutex<HashMap<String, u32>>,
    bucket: Mutex<Bucket>,
}

/// A token bucket that holds one second's worth of calls.
#[derive(Debug, Default)]
struct Bucket {
    /// Calls left, as of then.
    left: f64,
    at_ms: u64,
}

impl Bucket {
    fn take(&mut self, per_second: u32, now_ms: u64) -> bool {
        let rate = f64::from(per_second);
        let refilled = Duration::from_millis(now_ms.saturating_sub(self.at_ms)).as_secs_f64() * rate;
        self.left = (self.left + refilled).min(rate);
        self.at_ms = now_ms;
        let taken = self.left >= 1.0;
        if taken {
            self.left -= 1.0;
        }
        taken
    }
}

impl Memory {
    fn count(&self, subject: &str) -> u32 {
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        if tries.len() >= MOST_COUNTED {
            tries.clear();
        }
        let count = tries.entry(subject.to_owned()).or_default();
        *count = count.saturating_add(1);
        *count
    }
}

/// Does to a call what the behaviour has in store for it.
pub(super) async fn misbehave(State(provider): State<Arc<Provider>>, request: Request, next: Next) -> Response {
    let behaviour = provider.behaviour();
    if let Some(per_second) = behaviour.rate_limit {
        let now_ms = provider.clock.unix_millis();
        let mut bucket = provider.memory.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        if !bucket.take(per_second, now_ms) {
            drop(bucket);
            provider.tally(|tally| tally.calls_over_limit += 1);
            return not_now();
        }
    }
    if behaviour.calls_hit() <= 0.0 {
        return next.run(request).await;
    }
    let key = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok());
    let subject = key.map_or_else(|| request.uri().to_string(), str::to_owned);
    let number = provider.memory.count(&subject);
    let Some(fault) = behaviour.call_fault(&subject, number) else { return next.run(request).await };
    if !matches!(fault, CallFault::Busy | CallFault::Error(502 | 503)) {
        let _unsaid = next.run(request).await;
    }
    match fault {
        CallFault::Busy => {
            provider.tally(|tally| tally.calls_busy += 1);
            not_now()
        }
        CallFault::Error(code) => {
            provider.tally(|tally| tally.calls_failed += 1);
            let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            Problem::new(status, "the provider is set to fail now and then").into_response()
        }
        CallFault::Stall => {
            provider.tally(|tally| tally.calls_stalled += 1);
            tokio::select! {
                () = tokio::time::sleep(STALL) => {}
                () = provider.stopping() => {}
            }
            hang_up()
        }
        CallFault::Drop => {
            provider.tally(|tally| tally.calls_dropped += 1);
            hang_up()
        }
    }
}

fn not_now() -> Response {
    let mut response = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many calls: wait a second").into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Closes the connection without an answer: a body that fails before its first byte makes the server give up before it
/// has sent the head.
fn hang_up() -> Response {
    let failure = Err::<Bytes, _>(io::Error::from(io::ErrorKind::ConnectionAborted));
    Response::new(Body::from_stream(stream::iter([failure])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_lets_a_second_s_worth_through_and_then_its_rate() {
        let mut bucket = Bucket::default();
        let taken = |bucket: &mut Bucket, now_ms| (0..100).filter(|_| bucket.take(10, now_ms)).count();
        assert_eq!(taken(&mut bucket, 1_700_000_000_000), 10);
        assert_eq!(taken(&mut bucket, 1_700_000_000_100), 1);
        assert_eq!(taken(&mut bucket, 1_700_000_000_600), 5);
        // A clock set back gives nothing and takes nothing.
        assert_eq!(taken(&mut bucket, 1_600_000_000_000), 0);
        assert_eq!(taken(&mut bucket, 1_600_000_001_000), 10);
    }
}
