//! Who may ask a server that did not answer.
//!
//! While a server answers, everybody may ask it, at the price of one atomic read. Once it fails
//! the circuit is open: calls are refused at once, and after a pause one of them may try. If that
//! one fails, the pause grows; if it is answered, the circuit is closed again. Whoever comes
//! meanwhile waits for what becomes of it: many calls may be parts of one, which would end with the
//! first that is refused, and take the one that tries with it. Nothing runs in the background: a
//! server that nobody asks is not asked.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::backoff;

/// One server's circuit.
#[derive(Debug, Default)]
pub(super) struct Circuit {
    open: AtomicBool,
    state: Mutex<State>,
    /// Told when it is known what became of the call that tried.
    told: Notify,
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

/// Whose turn it is.
enum Turn {
    Passes { tries: bool },
    SomebodyTries,
    TooEarly,
}

impl Circuit {
    /// Leave to ask; none while the circuit is open and it is nobody's turn to try.
    pub(super) async fn pass(&self, deadline: Instant) -> Option<Pass<'_>> {
        if !self.is_open() {
            return Some(Pass { circuit: self, tries: false });
        }
        timeout_at(deadline, self.turn()).await.unwrap_or(None)
    }

    async fn turn(&self) -> Option<Pass<'_>> {
        loop {
            let mut told = pin!(self.told.notified());
            // Counts from here on, or what is told before it is awaited would be missed.
            told.as_mut().enable();
            match self.turn_now() {
                Turn::Passes { tries } => return Some(Pass { circuit: self, tries }),
                Turn::TooEarly => return None,
                Turn::SomebodyTries => told.await,
            }
        }
    }

    fn turn_now(&self) -> Turn {
        let mut state = self.state();
        // Closed in this very moment by whoever tried.
        if !self.is_open() {
            return Turn::Passes { tries: false };
        }
        match state.try_at {
            None => Turn::SomebodyTries,
            Some(at) if at <= Instant::now() => {
                state.try_at = None;
                Turn::Passes { tries: true }
            }
            Some(_) => Turn::TooEarly,
        }
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
        self.circuit.told.notify_waiters();
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
            self.circuit.told.notify_waiters();
        }
        !was_open
    }
}

impl Drop for Pass<'_> {
    /// Nothing was learned, so the next one may try.
    fn drop(&mut self) {
        if self.tries {
            self.circuit.state().try_at = Some(Instant::now());
            self.circuit.told.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_secs(2);

    /// What a call gets that does not wait.
    async fn pass(circuit: &Circuit) -> Option<Pass<'_>> {
        circuit.pass(Instant::now()).await
    }

    async fn fail(circuit: &Circuit) -> bool {
        pass(circuit).await.unwrap().failed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_opens_it_one_call_tries_and_an_answer_closes_it() {
        let circuit = Circuit::default();
        let (first, second) = (pass(&circuit).await.unwrap(), pass(&circuit).await.unwrap());
        assert!(first.failed(), "this is news");
        assert!(!second.failed(), "this is not");
        assert!(pass(&circuit).await.is_none());

        tokio::time::advance(LONG).await;
        let tries = pass(&circuit).await.unwrap();
        assert!(pass(&circuit).await.is_none(), "one at a time");
        assert!(tries.answered());
        assert!(!circuit.is_open());
        assert!(!pass(&circuit).await.unwrap().answered(), "everything as ever");
    }

    #[tokio::test(start_paused = true)]
    async fn the_longer_it_lasts_the_fewer_try() {
        let circuit = Circuit::default();
        fail(&circuit).await;
        let mut tries = 0;
        for _ in 0..10_000 {
            tokio::time::advance(Duration::from_millis(1)).await;
            if let Some(pass) = pass(&circuit).await {
                tries += 1;
                pass.failed();
            }
        }
        assert!((10..30).contains(&tries), "{tries} in ten seconds");
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_that_is_dropped_leaves_its_turn_to_the_next() {
        let circuit = Circuit::default();
        fail(&circuit).await;
        tokio::time::advance(LONG).await;
        drop(pass(&circuit).await.unwrap());
        assert!(circuit.is_open());
        assert!(pass(&circuit).await.unwrap().answered());
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_of_a_call_from_before_does_not_close_it() {
        let circuit = Circuit::default();
        let early = pass(&circuit).await.unwrap();
        fail(&circuit).await;
        assert!(!early.answered());
        assert!(circuit.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_while_one_tries_waits_for_the_outcome() {
        let circuit = Circuit::default();
        fail(&circuit).await;
        tokio::time::advance(LONG).await;
        let deadline = Instant::now() + LONG;
        let tries = pass(&circuit).await.unwrap();
        let ((), waits) = tokio::join!(async { assert!(tries.answered()) }, circuit.pass(deadline));
        assert!(!waits.unwrap().answered(), "closed before");

        fail(&circuit).await;
        tokio::time::advance(LONG).await;
        let tries = pass(&circuit).await.unwrap();
        let (_, waits) =
            tokio::join!(async { tries.failed() }, circuit.pass(Instant::now() + LONG));
        assert!(waits.is_none(), "it failed again");

        tokio::time::advance(LONG).await;
        let tries = pass(&circuit).await.unwrap();
        let ((), waits) = tokio::join!(async { drop(tries) }, circuit.pass(Instant::now() + LONG));
        assert!(waits.unwrap().answered(), "the turn of who gave up is theirs");
    }
}
