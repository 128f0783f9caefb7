//! How long a connection may wait for its next request.
//!
//! Whoever closes an idle connection may do so while a request is on its way. A browser asks again;
//! a load balancer answers 502, and to a join it must not try again. So connections are kept for longer
//! than load balancers keep them, who then are the ones to close, unless others need the room.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::alarm::Alarm;
use super::intake::Intake;
use super::limits::{Limits, Refused};

/// The timer hyper asks before each head of a request.
#[derive(Debug)]
pub(super) struct Idle {
    connection: Arc<Connection>,
    /// Whether there was a head before: only whoever has asked once is waited for.
    known: AtomicBool,
}

#[derive(Debug)]
struct Connection {
    alarm: Alarm,
    limits: Limits,
    permits: Arc<Semaphore>,
    intake: Arc<Intake>,
}

/// Ends when the next head is too late.
#[derive(Debug)]
struct TooLate {
    /// The next time it is looked whether there is room for somebody who does nothing.
    look: Instant,
    last: Instant,
    /// When the head has to be complete, once its first byte has arrived.
    complete_by: Option<Instant>,
    connection: Arc<Connection>,
}

impl Idle {
    pub(super) fn new(limits: Limits, permits: Arc<Semaphore>, intake: Arc<Intake>) -> Self {
        let alarm = Alarm::new(limits.header_read);
        let connection = Arc::new(Connection { alarm, limits, permits, intake });
        Self { connection, known: AtomicBool::new(false) }
    }
}

impl Timer for Idle {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        let Limits { idle, header_read, .. } = self.connection.limits;
        let last = Instant::from_std(deadline);
        let look = last - idle + header_read;
        let known = self.known.swap(true, Ordering::Relaxed);
        let last = if known { last } else { look };
        self.connection.intake.expect_head();
        Box::pin(TooLate { look, last, complete_by: None, connection: self.connection.clone() })
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }
}

impl TooLate {
    /// Sets the deadline of a head that has begun. hyper polls this after every read that did not
    /// complete the head, and `look` is at most one `header_read` away, so the deadline is not missed.
    fn note_beginning(&mut self) {
        if self.complete_by.is_none() && self.connection.intake.has_begun() {
            self.complete_by = Some(Instant::now() + self.connection.limits.header_read);
        }
    }

    /// What to wait for after `look`; `None` if the time is up.
    fn next_look(&self) -> Option<Instant> {
        let next = match self.complete_by {
            Some(deadline) => deadline.min(self.last),
            None if self.connection.is_crowded() => return None,
            None => (self.look + self.connection.limits.header_read).min(self.last),
        };
        (next > self.look).then_some(next)
    }
}

impl Connection {
    /// Whether somebody may need the room of one that does nothing.
    fn is_crowded(&self) -> bool {
        self.permits.available_permits() * 2 < self.limits.connections
    }
}

impl Future for TooLate {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.note_beginning();
        loop {
            ready!(self.connection.alarm.poll_passed(self.look, context));
            let Some(next) = self.next_look() else {
                if self.complete_by.is_some() {
                    Refused::HeadTimeout.count();
                }
                return Poll::Ready(());
            };
            self.look = next;
        }
    }
}

impl Sleep for TooLate {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::budget::Budget;

    const LIMITS: Limits = Limits {
        connections: 4,
        request_buffer: 0,
        header_read: Duration::from_secs(10),
        idle: Duration::from_secs(95),
        drain: Duration::ZERO,
    };

    fn idle(permits: Arc<Semaphore>) -> (Idle, Arc<Intake>) {
        let intake = Arc::new(Intake::new(Budget::new(LIMITS.request_buffer)));
        (Idle::new(LIMITS, permits, intake.clone()), intake)
    }

    /// How long a next head is waited for.
    async fn patience(idle: &Idle) -> Duration {
        let begin = Instant::now();
        idle.sleep(LIMITS.idle).await;
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_asked_once_may_be_idle_for_long() {
        let (idle, _) = idle(Arc::new(Semaphore::new(2)));
        assert_eq!(patience(&idle).await, LIMITS.header_read);
        assert_eq!(patience(&idle).await, LIMITS.idle);
        // An answer in between, and it begins anew.
        assert!(tokio::time::timeout(LIMITS.header_read * 3, patience(&idle)).await.is_err());
        assert_eq!(patience(&idle).await, LIMITS.idle);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_has_no_room_for_the_idle() {
        let permits = Arc::new(Semaphore::new(2));
        let (idle, _) = idle(permits.clone());
        patience(&idle).await;
        let crowd = async {
            tokio::time::sleep(LIMITS.header_read * 5 / 2).await;
            permits.acquire().await.map(|permit| permit.forget())
        };
        let (waited, _) = tokio::join!(patience(&idle), crowd);
        assert_eq!(waited, LIMITS.header_read * 3);
        assert_eq!(patience(&idle).await, LIMITS.header_read);
    }

    #[tokio::test(start_paused = true)]
    async fn every_head_has_to_be_complete_in_time_from_its_first_byte() {
        let (idle, intake) = idle(Arc::new(Semaphore::new(2)));
        patience(&idle).await;
        for quiet in [Duration::ZERO, Duration::from_secs(3), LIMITS.header_read * 4] {
            let begin = Instant::now();
            let mut waiting = idle.sleep(LIMITS.idle);
            let still = tokio::time::timeout(quiet, waiting.as_mut()).await;
            assert!(still.is_err(), "an idle connection is kept");
            intake.begin_head();
            waiting.await;
            assert_eq!(begin.elapsed(), quiet + LIMITS.header_read);
            intake.head_complete(true);
        }
    }
}
