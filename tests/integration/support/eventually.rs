//! Waiting for a condition that others bring about.

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// Asks again until there is an answer, but no longer than ten seconds.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, ask: impl FnMut() -> F) -> T {
    eventually_within(Duration::from_secs(10), what, ask).await
}

/// Asks again until there is an answer, but no longer than `patience`.
pub async fn eventually_within<T, F: Future<Output = Option<T>>>(
    patience: Duration,
    what: &str,
    mut ask: impl FnMut() -> F,
) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
