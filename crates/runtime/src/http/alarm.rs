//! Deadlines that almost never pass.
//!
//! A deadline per request is a timer per request, and all timers of a process are behind one
//! lock: at tens of thousands of requests a second, threads wait for it. Here a connection has one
//! timer that stays set. A deadline that is over before it passes leaves it alone; only when the
//! timer goes off is it set again, for whichever deadline is waited for then.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// The timer of one kind of deadline of one connection. Each deadline must be later than those
/// before it: that is why the timer, set for an earlier one, never goes off too late.
#[derive(Debug, Clone)]
pub(super) struct Alarm(Arc<Mutex<Pin<Box<Sleep>>>>);

/// Ends when its deadline has passed.
#[derive(Debug)]
struct Until {
    deadline: Instant,
    alarm: Alarm,
}

impl Alarm {
    /// For deadlines that are this far away when they are set.
    pub(super) fn new(away: Duration) -> Self {
        Self(Arc::new(Mutex::new(Box::pin(sleep(away)))))
    }

    fn until(&self, deadline: Instant) -> Until {
        Until { deadline, alarm: self.clone() }
    }

    /// Whether a deadline has passed. The task is woken when it has.
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

    /// The outcome of `work`, or nothing if the deadline passes first.
    pub(super) async fn by<T>(
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

impl Future for Until {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.alarm.poll_passed(self.deadline, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AWAY: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn every_deadline_passes_when_it_should_and_not_before() {
        let (alarm, begin) = (Alarm::new(AWAY), Instant::now());
        for second in [1, 2, 9, 12, 25] {
            let deadline = begin + Duration::from_secs(second) + AWAY;
            // Somebody answers in time and never lets it pass.
            let work = sleep(Duration::from_secs(1));
            assert_eq!(alarm.by(deadline, work).await, Some(()));
        }
        let deadline = Instant::now() + AWAY;
        assert_eq!(
            alarm.by(deadline.max(begin + 4 * AWAY), std::future::pending::<()>()).await,
            None
        );
        assert_eq!(begin.elapsed(), 4 * AWAY);
    }
}
