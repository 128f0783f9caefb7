//! How a process ends: in two steps, waiting for its tasks, with a deadline.
//!
//! 1. **draining**: readiness turns off, so that balancers stop sending people here. Everything
//!    still works, because some are still on their way.
//! 2. **stopping** ([`Shutdown::token`]): listeners close, loops end, what is in flight finishes.
//!
//! A value is passed down and cloned; there is no global.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The two steps of ending, and the tasks that ending waits for. Clones share everything.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    draining: CancellationToken,
    token: CancellationToken,
    tracker: TaskTracker,
    failed: Arc<AtomicBool>,
    lead: Duration,
}

/// Tasks were still running at the deadline.
#[derive(Debug, thiserror::Error)]
#[error("{tasks} tasks were still running at the shutdown deadline")]
pub struct Stuck {
    /// How many.
    pub tasks: usize,
}

impl Shutdown {
    /// A shutdown whose second step follows the first at once.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves this long between the steps, so that balancers see the readiness go off before they
    /// meet a closed port.
    #[must_use]
    pub fn with_lead(mut self, lead: Duration) -> Self {
        self.lead = lead;
        self
    }

    /// Cancelled at the first step: readiness is off.
    #[must_use]
    pub fn draining(&self) -> &CancellationToken {
        &self.draining
    }

    /// Cancelled at the second step: stop taking work, finish what you have.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// For many small tasks that may fail alone, such as connections. Parts of the process belong
    /// on [`Self::spawn`].
    #[must_use]
    pub fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    /// Whether a part of the process died; the process should end with a failure.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Runs a part of the process. If it panics, the whole process shuts down: without the part
    /// it would only look alive, and whoever restarts processes can do better.
    pub fn spawn<F>(&self, part: &'static str, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let inner = self.tracker.spawn(task);
        let shutdown = self.clone();
        self.tracker.spawn(async move {
            if inner.await.is_err_and(|error| error.is_panic()) {
                shutdown.fail(part, "it panicked");
            }
        });
    }

    /// Runs a part of the process that has no end, and drops it at the second step.
    pub fn spawn_until_stopped<F>(&self, part: &'static str, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = self.token.clone();
        self.spawn(part, async move {
            stop.run_until_cancelled(task).await;
        });
    }

    /// Reports a part that cannot go on and shuts the process down as failed.
    pub fn fail(&self, part: &'static str, reason: impl std::fmt::Display) {
        tracing::error!(part, %reason, "a part of the process died, shutting down");
        self.failed.store(true, Ordering::SeqCst);
        self.now();
    }

    /// Goes through both steps with the lead between them.
    pub async fn begin(&self) {
        self.draining.cancel();
        self.token.run_until_cancelled(tokio::time::sleep(self.lead)).await;
        self.token.cancel();
    }

    /// Goes through both steps at once.
    pub fn now(&self) {
        self.draining.cancel();
        self.token.cancel();
    }

    /// Waits until every task has ended.
    ///
    /// # Errors
    /// [`Stuck`] if some are still running after `deadline`.
    pub async fn wait(&self, deadline: Duration) -> Result<(), Stuck> {
        self.tracker.close();
        let ended = tokio::time::timeout(deadline, self.tracker.wait()).await;
        ended.map_err(|_| Stuck { tasks: self.tracker.len() })
    }

    /// Listens for SIGTERM and SIGINT from this moment on. The answer begins the shutdown at the
    /// first and ends at the second, after which the caller exits at once.
    ///
    /// # Errors
    /// If the process cannot listen for signals.
    pub fn on_signals(&self) -> std::io::Result<impl Future<Output = ()> + use<>> {
        // Installed here, not when the answer is first polled: a signal that comes while a
        // service starts must not end the process the hard way.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let shutdown = self.clone();
        Ok(async move {
            let name = either(&mut terminate, &mut interrupt).await;
            tracing::info!(signal = name, "shutting down");
            tokio::select! {
                () = shutdown.begin() => {}
                _ = either(&mut terminate, &mut interrupt) => return,
            }
            either(&mut terminate, &mut interrupt).await;
        })
    }
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}
