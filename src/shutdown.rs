//! Graceful shutdown: one signal that every listener and task watches.

use std::future::Future;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A handle that says when to stop, and keeps count of what still runs.
///
/// Cloning shares the same signal. Tasks started with [`Shutdown::spawn`] are awaited by [`Shutdown::drain`].
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    announced: CancellationToken,
    token: CancellationToken,
    tasks: TaskTracker,
}

impl Shutdown {
    /// A handle that nothing has stopped yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says that stopping will be asked for soon. Idempotent.
    pub fn announce(&self) {
        self.announced.cancel();
    }

    /// Whether stopping was announced or asked for.
    pub fn is_announced(&self) -> bool {
        self.announced.is_cancelled()
    }

    /// Asks everything to stop. Idempotent.
    pub fn stop(&self) {
        self.announce();
        self.token.cancel();
    }

    /// Whether stopping was asked for.
    pub fn is_stopping(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Resolves when stopping was asked for.
    pub async fn stopped(&self) {
        self.token.cancelled().await;
    }

    /// Runs `task` beside the caller and remembers it for [`Shutdown::drain`]. The task must watch
    /// [`Shutdown::stopped`] itself where it would otherwise run for ever.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Waits until every spawned task ended, but no longer than `deadline`. Returns whether all did.
    pub async fn drain(&self, deadline: std::time::Duration) -> bool {
        self.tasks.close();
        tokio::time::timeout(deadline, self.tasks.wait()).await.is_ok()
    }

    /// Resolves on SIGTERM or SIGINT.
    ///
    /// # Errors
    /// When the process may not install signal handlers.
    pub async fn signal() -> std::io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    }
}
