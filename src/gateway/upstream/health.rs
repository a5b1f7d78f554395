//! Whether an origin is well: by how visitors' requests fare, and by asking it.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{
    Request, Uri,
    header::{HOST, USER_AGENT},
};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::time::{Instant, timeout};
use tower::Service as _;

/// After so many failures in a row an origin is left alone for a while.
const FAILURES: u32 = 3;
/// The first such while; each further failure doubles it.
const FIRST_REST: Duration = Duration::from_secs(1);
/// At most so often.
const MOST_DOUBLINGS: u32 = 5;
/// How often an origin is asked.
const PROBE_EVERY: Duration = Duration::from_secs(2);
/// How long it may take to answer.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);
/// So many probes in a row must fail: one may have met a restart.
const PROBES: u32 = 2;

/// What is known of one origin.
#[derive(Debug)]
pub(in super::super) struct Health {
    began: Instant,
    failures: AtomicU32,
    /// Milliseconds after `began`.
    rests_until: AtomicU64,
    answers_probes: AtomicBool,
}

impl Health {
    pub(super) fn new(began: Instant) -> Self {
        Self {
            began,
            failures: AtomicU32::new(0),
            rests_until: AtomicU64::new(0),
            answers_probes: AtomicBool::new(true),
        }
    }

    pub(super) fn is_well(&self, now: Instant) -> bool {
        self.answers_probes.load(Ordering::Relaxed) && self.millis(now) >= self.rests_until.load(Ordering::Relaxed)
    }

    /// A request got an answer, whatever it says.
    pub(in super::super) fn answered(&self) {
        // Mostly there is nothing to write, and a line of memory that all cores only read costs nothing.
        if self.failures.load(Ordering::Relaxed) > 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// A request got none.
    pub(in super::super) fn failed(&self) {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if let Some(more) = failures.checked_sub(FAILURES) {
            let rest = FIRST_REST * 2_u32.pow(more.min(MOST_DOUBLINGS));
            self.rests_until.fetch_max(self.millis(Instant::now() + rest), Ordering::Relaxed);
        }
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.duration_since(self.began).as_millis()).unwrap_or(u64::MAX)
    }
}

/// Asks `origin` for `path`, over and over.
pub(super) async fn probe(health: &Health, origin: &Uri, path: &str) {
    let mut failures = 0;
    loop {
        failures =
            if matches!(timeout(PROBE_PATIENCE, ask(origin, path)).await, Ok(Some(()))) { 0 } else { failures + 1 };
        let is_well = failures < PROBES;
        if health.answers_probes.swap(is_well, Ordering::Relaxed) != is_well {
            if is_well {
                tracing::info!(%origin, "the origin answers its health check again");
            } else {
                tracing::warn!(%origin, path, "the origin fails its health check: others are asked as long as there are any");
            }
        }
        tokio::time::sleep(PROBE_EVERY).await;
    }
}

/// Whether it answers with success. A connection of its own: the probe also tells whether there still is one to be had.
async fn ask(origin: &Uri, path: &str) -> Option<()> {
    let stream = HttpConnector::new().call(origin.clone()).await.ok()?;
    let (mut sender, connection) = http1::handshake(stream).await.ok()?;
    let request = Request::get(path)
        .header(HOST, origin.authority()?.as_str())
        .header(USER_AGENT, "stanchion-health-check")
        .body(Empty::<Bytes>::new())
        .ok()?;
    let answer = async { sender.send_request(request).await.ok() };
    tokio::select! {
        answer = answer => answer?.status().is_success().then_some(()),
        _ = connection => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn three_failures_in_a_row_earn_a_rest_that_doubles() {
        let health = Health::new(Instant::now());
        let is_well = || health.is_well(Instant::now());
        let pass = async |millis| tokio::time::advance(Duration::from_millis(millis)).await;
        health.failed();
        health.failed();
        health.answered();
        health.failed();
        health.failed();
        assert!(is_well(), "never three in a row");
        health.failed();
        assert!(!is_well());
        pass(999).await;
        assert!(!is_well());
        pass(1).await;
        assert!(is_well(), "it is tried again");
        health.failed();
        pass(1_999).await;
        assert!(!is_well());
        for _ in 0..20 {
            health.failed();
        }
        pass(32_000).await;
        assert!(is_well(), "never longer than that");
        health.answered();
        health.failed();
        assert!(is_well());
    }
}
