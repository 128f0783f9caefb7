//! The shutdown of a process: two steps, then a wait for its tasks until a deadline.
//!
//! 1. **draining**: readiness turns off, so that load balancers stop sending requests. The process
//!    still serves, because some requests are still on their way.
//! 2. **stopping** ([`Shutdown::token`]): listeners close, loops end, requests in flight finish.
//!
//! The value is passed down and cloned; there is no global.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The two steps of a shutdown, and the tasks it waits for. Clones share everything.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    draining: CancellationToken,
    token: CancellationToken,
    tracker: TaskTracker,
    failed: Arc<AtomicBool>,
    readiness_delay: Duration,
}

/// Tasks were still running at the deadline.
#[derive(Debug, thiserror::Error)]
#[error("{tasks} tasks were still running at the shutdown deadline")]
pub struct TasksStillRunning {
    /// How many tasks.
    pub tasks: usize,
}

impl Shutdown {
    /// A shutdown whose second step follows the first immediately.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time between the steps, so that load balancers see "not ready" before the port
    /// closes.
    #[must_use]
    pub fn with_readiness_delay(mut self, readiness_delay: Duration) -> Self {
        self.readiness_delay = readiness_delay;
        self
    }

    /// Cancelled by the first step: readiness is off.
    #[must_use]
    pub fn draining(&self) -> &CancellationToken {
        &self.draining
    }

    /// Cancelled by the second step: tasks accept no new work and finish the current work.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Tracks small tasks whose failure does not affect the process, such as connections.
    /// Components of the process use [`Self::spawn`].
    #[must_use]
    pub fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    /// Returns whether a component failed; the process exits with a failure then.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Runs a component of the process. If it panics, the whole process shuts down, because it
    /// would otherwise look healthy without the component. A supervisor restarts the process.
    pub fn spawn<F>(&self, component: &'static str, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let inner = self.tracker.spawn(task);
        let shutdown = self.clone();
        self.tracker.spawn(async move {
            if inner.await.is_err_and(|error| error.is_panic()) {
                shutdown.fail(component, "panicked");
            }
        });
    }

    /// Runs a component that never returns, and drops it at the second step.
    pub fn spawn_until_stopped<F>(&self, component: &'static str, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = self.token.clone();
        self.spawn(component, async move {
            stop.run_until_cancelled(task).await;
        });
    }

    /// Reports a component that cannot continue and shuts the process down as failed.
    pub fn fail(&self, component: &'static str, reason: impl std::fmt::Display) {
        tracing::error!(component, %reason, "component failed, shutting down");
        self.failed.store(true, Ordering::SeqCst);
        self.stop_now();
    }

    /// Runs both steps with the readiness delay between them.
    pub async fn begin(&self) {
        self.draining.cancel();
        self.token.run_until_cancelled(tokio::time::sleep(self.readiness_delay)).await;
        self.token.cancel();
    }

    /// Runs both steps immediately.
    pub fn stop_now(&self) {
        self.draining.cancel();
        self.token.cancel();
    }

    /// Waits until every task has ended.
    ///
    /// # Errors
    /// [`TasksStillRunning`] if some are still running after `deadline`.
    pub async fn wait(&self, deadline: Duration) -> Result<(), TasksStillRunning> {
        self.tracker.close();
        let ended = tokio::time::timeout(deadline, self.tracker.wait()).await;
        ended.map_err(|_| TasksStillRunning { tasks: self.tracker.len() })
    }

    /// Listens for SIGTERM and SIGINT from now on. The returned future starts the shutdown at the
    /// first signal and completes at the second, after which the caller exits immediately.
    ///
    /// # Errors
    /// If the process cannot listen for signals.
    pub fn listen_for_signals(&self) -> std::io::Result<impl Future<Output = ()> + use<>> {
        // Installed here and not at the first poll: a signal during startup must not kill the
        // process.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let shutdown = self.clone();
        Ok(async move {
            let name = next_signal(&mut terminate, &mut interrupt).await;
            tracing::info!(signal = name, "signal received, shutting down");
            tokio::select! {
                () = shutdown.begin() => {}
                _ = next_signal(&mut terminate, &mut interrupt) => return,
            }
            next_signal(&mut terminate, &mut interrupt).await;
        })
    }
}

async fn next_signal(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}
