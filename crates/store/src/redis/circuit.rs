//! Who may ask a server that did not answer.
//!
//! While a server answers, everybody may ask it, at the price of one atomic read. Once it fails
//! the circuit is open: calls are refused at once, and after a pause one of them may try. If that
//! one fails, the pause grows; if it is answered, the circuit is closed again. Nothing runs in the
//! background: a server that nobody asks is not asked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::backoff;

/// One server's circuit.
#[derive(Debug, Default)]
pub(super) struct Circuit {
    open: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How often in a row the server has failed.
    failures: u32,
    /// When somebody may try; none while somebody does.
    try_at: Option<Instant>,
}

/// Leave to make one call. What became of it must be told; a call that is dropped half-way says
/// nothing about the server.
#[derive(Debug)]
#[must_use]
pub(super) struct Pass<'a> {
    circuit: &'a Circuit,
    /// Whether this is the one call that tries.
    tries: bool,
}

impl Circuit {
    /// Leave to ask; none while the circuit is open and it is nobody's turn to try.
    pub(super) fn pass(&self) -> Option<Pass<'_>> {
        if !self.is_open() {
            return Some(Pass { circuit: self, tries: false });
        }
        let mut state = self.state();
        // Closed in this very moment by whoever tried.
        if !self.is_open() {
            return Some(Pass { circuit: self, tries: false });
        }
        let may_try = state.try_at.is_some_and(|at| at <= Instant::now());
        may_try.then(|| {
            state.try_at = None;
            Pass { circuit: self, tries: true }
        })
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass<'_> {
    /// The server answered. True: it had not for a while.
    pub(super) fn answered(mut self) -> bool {
        if !std::mem::take(&mut self.tries) {
            return false;
        }
        let mut state = self.circuit.state();
        *state = State::default();
        self.circuit.open.store(false, Ordering::Release);
        true
    }

    /// The server did not answer, or cannot serve. True: it had until now. Calls that were on
    /// their way together fail together and count once.
    pub(super) fn failed(mut self) -> bool {
        let mut state = self.circuit.state();
        let was_open = self.circuit.open.swap(true, Ordering::AcqRel);
        if !was_open || std::mem::take(&mut self.tries) {
            state.failures = state.failures.saturating_add(1);
            state.try_at = Some(Instant::now() + backoff::pause(state.failures));
        }
        !was_open
    }
}

impl Drop for Pass<'_> {
    /// Nothing was learned, so the next one may try.
    fn drop(&mut self) {
        if self.tries {
            self.circuit.state().try_at = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_secs(2);

    fn fail(circuit: &Circuit) -> bool {
        circuit.pass().unwrap().failed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_opens_it_one_call_tries_and_an_answer_closes_it() {
        let circuit = Circuit::default();
        let (first, second) = (circuit.pass().unwrap(), circuit.pass().unwrap());
        assert!(first.failed(), "this is news");
        assert!(!second.failed(), "this is not");
        assert!(circuit.pass().is_none());

        tokio::time::advance(LONG).await;
        let tries = circuit.pass().unwrap();
        assert!(circuit.pass().is_none(), "one at a time");
        assert!(tries.answered());
        assert!(!circuit.is_open());
        assert!(!circuit.pass().unwrap().answered(), "everything as ever");
    }

    #[tokio::test(start_paused = true)]
    async fn the_longer_it_lasts_the_fewer_try() {
        let circuit = Circuit::default();
        fail(&circuit);
        let mut tries = 0;
        for _ in 0..10_000 {
            tokio::time::advance(Duration::from_millis(1)).await;
            if let Some(pass) = circuit.pass() {
                tries += 1;
                pass.failed();
            }
        }
        assert!((10..30).contains(&tries), "{tries} in ten seconds");
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_that_is_dropped_leaves_its_turn_to_the_next() {
        let circuit = Circuit::default();
        fail(&circuit);
        tokio::time::advance(LONG).await;
        drop(circuit.pass().unwrap());
        assert!(circuit.is_open());
        assert!(circuit.pass().unwrap().answered());
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_of_a_call_from_before_does_not_close_it() {
        let circuit = Circuit::default();
        let early = circuit.pass().unwrap();
        fail(&circuit);
        assert!(!early.answered());
        assert!(circuit.is_open());
    }
}
