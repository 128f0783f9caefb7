//! How long a connection may be idle before its next request.
//!
//! Closing an idle connection races with a request in flight. A browser retries; a load balancer
//! returns 502, and must not retry a join. The server therefore keeps connections longer than load
//! balancers do, so that they close first, unless more than half of its connections are in use.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::deadline::DeadlineTimer;
use super::intake::Intake;
use super::limits::{Limits, Refused};

/// The timer that hyper uses for each request head.
#[derive(Debug)]
pub(super) struct IdleTimeout {
    connection: Arc<Connection>,
    /// Whether there was a request before: only then may the connection be idle.
    has_served: AtomicBool,
}

#[derive(Debug)]
struct Connection {
    timer: DeadlineTimer,
    limits: Limits,
    permits: Arc<Semaphore>,
    intake: Arc<Intake>,
}

/// Completes when the next head is too late; hyper then closes the connection.
#[derive(Debug)]
struct IdleSleep {
    /// When the next check decides whether an idle connection stays open.
    next_check: Instant,
    last: Instant,
    /// When the head has to be complete, once its first byte has arrived.
    complete_by: Option<Instant>,
    connection: Arc<Connection>,
}

impl IdleTimeout {
    pub(super) fn new(limits: Limits, permits: Arc<Semaphore>, intake: Arc<Intake>) -> Self {
        let timer = DeadlineTimer::new(limits.header_read);
        let connection = Arc::new(Connection { timer, limits, permits, intake });
        Self { connection, has_served: AtomicBool::new(false) }
    }
}

impl Timer for IdleTimeout {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        let Limits { idle, header_read, .. } = self.connection.limits;
        let last = Instant::from_std(deadline);
        let next_check = last - idle + header_read;
        let has_served = self.has_served.swap(true, Ordering::Relaxed);
        let last = if has_served { last } else { next_check };
        self.connection.intake.expect_head();
        Box::pin(IdleSleep {
            next_check,
            last,
            complete_by: None,
            connection: self.connection.clone(),
        })
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }
}

impl IdleSleep {
    /// Sets the deadline of a head that has begun. hyper polls this after every read that did not
    /// complete the head, and `next_check` is at most one `header_read` away, so the deadline is not missed.
    fn note_beginning(&mut self) {
        if self.complete_by.is_none() && self.connection.intake.has_begun() {
            self.complete_by = Some(Instant::now() + self.connection.limits.header_read);
        }
    }

    /// Returns the time of the check after `next_check`; `None` if the connection must be closed.
    fn following_check(&self) -> Option<Instant> {
        let next = match self.complete_by {
            Some(deadline) => deadline.min(self.last),
            None if self.connection.is_over_half_full() => return None,
            None => (self.next_check + self.connection.limits.header_read).min(self.last),
        };
        (next > self.next_check).then_some(next)
    }
}

impl Connection {
    /// Returns whether more than half of the connections are in use.
    fn is_over_half_full(&self) -> bool {
        self.permits.available_permits() * 2 < self.limits.connections
    }
}

impl Future for IdleSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.note_beginning();
        loop {
            ready!(self.connection.timer.poll_passed(self.next_check, context));
            let Some(next) = self.following_check() else {
                if self.complete_by.is_some() {
                    Refused::HeadTimeout.count();
                }
                return Poll::Ready(());
            };
            self.next_check = next;
        }
    }
}

impl Sleep for IdleSleep {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::budget::Budget;

    const LIMITS: Limits = Limits {
        connections: 4,
        request_buffer: 0,
        header_read: Duration::from_secs(10),
        idle: Duration::from_secs(95),
        max_age: Duration::MAX,
        max_requests: u32::MAX,
        drain: Duration::ZERO,
        proxies: None,
    };

    fn idle(permits: Arc<Semaphore>) -> (IdleTimeout, Arc<Intake>) {
        let intake = Arc::new(Intake::new(Budget::new(LIMITS.request_buffer)));
        (IdleTimeout::new(LIMITS, permits, intake.clone()), intake)
    }

    /// Measures how long the next head is waited for.
    async fn idle_time(idle: &IdleTimeout) -> Duration {
        let begin = Instant::now();
        idle.sleep(LIMITS.idle).await;
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_may_be_idle_after_its_first_request() {
        let (idle, _) = idle(Arc::new(Semaphore::new(2)));
        assert_eq!(idle_time(&idle).await, LIMITS.header_read);
        assert_eq!(idle_time(&idle).await, LIMITS.idle);
        // A response in between starts the idle time again.
        assert!(tokio::time::timeout(LIMITS.header_read * 3, idle_time(&idle)).await.is_err());
        assert_eq!(idle_time(&idle).await, LIMITS.idle);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_are_closed_when_half_are_in_use() {
        let permits = Arc::new(Semaphore::new(2));
        let (idle, _) = idle(permits.clone());
        idle_time(&idle).await;
        let fill = async {
            tokio::time::sleep(LIMITS.header_read * 5 / 2).await;
            permits.acquire().await.map(|permit| permit.forget())
        };
        let (waited, _) = tokio::join!(idle_time(&idle), fill);
        assert_eq!(waited, LIMITS.header_read * 3);
        assert_eq!(idle_time(&idle).await, LIMITS.header_read);
    }

    #[tokio::test(start_paused = true)]
    async fn every_head_has_to_be_complete_in_time_from_its_first_byte() {
        let (idle, intake) = idle(Arc::new(Semaphore::new(2)));
        idle_time(&idle).await;
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
