//! Deadlines that are rarely reached.
//!
//! One timer per request would contend for the timer lock of the process at tens of thousands of
//! requests per second. Instead each connection has one timer that stays set. A request that
//! finishes before its deadline does not touch it. Only when the timer fires is it set again, for
//! the deadline that is current then.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// The timer for one kind of deadline of one connection. Each deadline must be later than those
/// before it, so that the timer, set for an earlier one, never fires too late.
#[derive(Debug, Clone)]
pub(super) struct DeadlineTimer(Arc<Mutex<Pin<Box<Sleep>>>>);

/// Completes when its deadline has passed.
#[derive(Debug)]
struct DeadlineFuture {
    deadline: Instant,
    timer: DeadlineTimer,
}

impl DeadlineTimer {
    /// A timer for deadlines that are this far in the future when they are set.
    pub(super) fn new(delay: Duration) -> Self {
        Self(Arc::new(Mutex::new(Box::pin(sleep(delay)))))
    }

    fn until(&self, deadline: Instant) -> DeadlineFuture {
        DeadlineFuture { deadline, timer: self.clone() }
    }

    /// Polls whether a deadline has passed. Wakes the task when it has.
    pub(super) fn poll_passed(&self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        let mut timer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
    }

    /// Returns the outcome of `work`, or `None` if the deadline passes first.
    pub(super) async fn timeout_at<T>(
        &self,
        deadline: Instant,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            outcome = work => Some(outcome),
            () = self.until(deadline) => None,
        }
    }
}

impl Future for DeadlineFuture {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.timer.poll_passed(self.deadline, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn every_deadline_passes_when_it_should_and_not_before() {
        let (timer, begin) = (DeadlineTimer::new(DELAY), Instant::now());
        for second in [1, 2, 9, 12, 25] {
            let deadline = begin + Duration::from_secs(second) + DELAY;
            // The work finishes before the deadline.
            let work = sleep(Duration::from_secs(1));
            assert_eq!(timer.timeout_at(deadline, work).await, Some(()));
        }
        let deadline = Instant::now() + DELAY;
        assert_eq!(
            timer.timeout_at(deadline.max(begin + 4 * DELAY), std::future::pending::<()>()).await,
            None
        );
        assert_eq!(begin.elapsed(), 4 * DELAY);
    }
}
