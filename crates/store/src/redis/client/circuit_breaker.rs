//! A circuit breaker per server.
//!
//! While a server replies, every call is allowed, at the cost of one atomic read. After a failure the
//! breaker is open: calls are rejected immediately, and after a delay one call probes the server. If the
//! probe fails, the delay grows; if it succeeds, the breaker closes. Calls that arrive during a probe wait
//! for its result, because many calls may be parts of one request, which would fail with the first part
//! that is rejected and cancel the probe with it. Nothing runs in the background: a server without calls
//! gets no probe.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::backoff;

/// The circuit breaker of one server.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker {
    open: AtomicBool,
    state: Mutex<State>,
    /// Notified when a probe has a result.
    probe_finished: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// How often in a row the server has failed.
    failures: u32,
    /// When the next probe is allowed; `None` while a probe runs.
    retry_at: Option<Instant>,
}

/// Permission for one call. The caller reports the result with [`Permit::succeed`] or
/// [`Permit::fail`]; a permit that is dropped counts neither as success nor as failure.
#[derive(Debug)]
#[must_use]
pub(super) struct Permit<'a> {
    breaker: &'a CircuitBreaker,
    /// Whether this call is the probe.
    is_probe: bool,
}

/// Whether a call is allowed.
enum Decision {
    Allow {
        is_probe: bool,
    },
    /// Another call probes the server.
    AwaitProbe,
    Reject,
}

impl CircuitBreaker {
    /// Returns a permit for one call. While a probe runs, waits for its result until `deadline`.
    /// Returns `None` if the breaker is open and no probe is due, or at the deadline.
    pub(super) async fn acquire(&self, deadline: Instant) -> Option<Permit<'_>> {
        if !self.is_open() {
            return Some(Permit { breaker: self, is_probe: false });
        }
        timeout_at(deadline, self.acquire_or_wait()).await.unwrap_or(None)
    }

    async fn acquire_or_wait(&self) -> Option<Permit<'_>> {
        loop {
            let mut probe_finished = pin!(self.probe_finished.notified());
            // Registered before the decision; otherwise a notification in between would be missed.
            probe_finished.as_mut().enable();
            match self.decide() {
                Decision::Allow { is_probe } => return Some(Permit { breaker: self, is_probe }),
                Decision::Reject => return None,
                Decision::AwaitProbe => probe_finished.await,
            }
        }
    }

    fn decide(&self) -> Decision {
        let mut state = self.state();
        // A probe closed the breaker after the caller found it open.
        if !self.is_open() {
            return Decision::Allow { is_probe: false };
        }
        match state.retry_at {
            None => Decision::AwaitProbe,
            Some(at) if at <= Instant::now() => {
                state.retry_at = None;
                Decision::Allow { is_probe: true }
            }
            Some(_) => Decision::Reject,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// Reports a reply. Returns true if the breaker was open and is closed now.
    pub(super) fn succeed(mut self) -> bool {
        if !std::mem::take(&mut self.is_probe) {
            return false;
        }
        let mut state = self.breaker.state();
        *state = State::default();
        self.breaker.open.store(false, Ordering::Release);
        self.breaker.probe_finished.notify_waiters();
        true
    }

    /// Reports that the server did not reply or cannot serve. Returns true if the breaker was closed.
    /// Calls that were in flight together fail together and count once.
    pub(super) fn fail(mut self) -> bool {
        let mut state = self.breaker.state();
        let was_open = self.breaker.open.swap(true, Ordering::AcqRel);
        if !was_open || std::mem::take(&mut self.is_probe) {
            state.failures = state.failures.saturating_add(1);
            state.retry_at = Some(Instant::now() + backoff::delay(state.failures));
            self.breaker.probe_finished.notify_waiters();
        }
        !was_open
    }
}

impl Drop for Permit<'_> {
    /// Allows the next call to probe, because this probe has no result.
    fn drop(&mut self) {
        if self.is_probe {
            self.breaker.state().retry_at = Some(Instant::now());
            self.breaker.probe_finished.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_secs(2);

    /// Acquires a permit without waiting.
    async fn acquire(breaker: &CircuitBreaker) -> Option<Permit<'_>> {
        breaker.acquire(Instant::now()).await
    }

    async fn fail(breaker: &CircuitBreaker) -> bool {
        acquire(breaker).await.unwrap().fail()
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_opens_the_breaker_and_a_successful_probe_closes_it() {
        let breaker = CircuitBreaker::default();
        let (first, second) = (acquire(&breaker).await.unwrap(), acquire(&breaker).await.unwrap());
        assert!(first.fail(), "the breaker opens");
        assert!(!second.fail(), "it was open");
        assert!(acquire(&breaker).await.is_none());

        tokio::time::advance(LONG).await;
        let probe = acquire(&breaker).await.unwrap();
        assert!(acquire(&breaker).await.is_none(), "one probe at a time");
        assert!(probe.succeed());
        assert!(!breaker.is_open());
        assert!(!acquire(&breaker).await.unwrap().succeed(), "closed before");
    }

    #[tokio::test(start_paused = true)]
    async fn probes_become_rarer_during_an_outage() {
        let breaker = CircuitBreaker::default();
        fail(&breaker).await;
        let mut probes = 0;
        for _ in 0..10_000 {
            tokio::time::advance(Duration::from_millis(1)).await;
            if let Some(permit) = acquire(&breaker).await {
                probes += 1;
                permit.fail();
            }
        }
        assert!((10..30).contains(&probes), "{probes} in ten seconds");
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_call_probes_after_a_dropped_probe() {
        let breaker = CircuitBreaker::default();
        fail(&breaker).await;
        tokio::time::advance(LONG).await;
        drop(acquire(&breaker).await.unwrap());
        assert!(breaker.is_open());
        assert!(acquire(&breaker).await.unwrap().succeed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_reply_of_an_earlier_call_does_not_close_the_breaker() {
        let breaker = CircuitBreaker::default();
        let early = acquire(&breaker).await.unwrap();
        fail(&breaker).await;
        assert!(!early.succeed());
        assert!(breaker.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_during_a_probe_wait_for_its_result() {
        let breaker = CircuitBreaker::default();
        fail(&breaker).await;
        tokio::time::advance(LONG).await;
        let deadline = Instant::now() + LONG;
        let probe = acquire(&breaker).await.unwrap();
        let ((), waits) =
            tokio::join!(async { assert!(probe.succeed()) }, breaker.acquire(deadline));
        assert!(!waits.unwrap().succeed(), "closed before");

        fail(&breaker).await;
        tokio::time::advance(LONG).await;
        let probe = acquire(&breaker).await.unwrap();
        let (_, waits) =
            tokio::join!(async { probe.fail() }, breaker.acquire(Instant::now() + LONG));
        assert!(waits.is_none(), "the probe failed");

        tokio::time::advance(LONG).await;
        let probe = acquire(&breaker).await.unwrap();
        let ((), waits) =
            tokio::join!(async { drop(probe) }, breaker.acquire(Instant::now() + LONG));
        assert!(waits.unwrap().succeed(), "the dropped probe is theirs");
    }
}
