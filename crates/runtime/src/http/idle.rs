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

use super::Limits;
use super::alarm::Alarm;

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
}

/// Ends when the next head is too late.
#[derive(Debug)]
struct TooLate {
    /// The next time it is looked whether there is room for somebody who does nothing.
    look: Instant,
    last: Instant,
    connection: Arc<Connection>,
}

impl Idle {
    pub(super) fn new(limits: Limits, permits: Arc<Semaphore>) -> Self {
        let alarm = Alarm::new(limits.header_read);
        let connection = Arc::new(Connection { alarm, limits, permits });
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
        Box::pin(TooLate { look, last, connection: self.connection.clone() })
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
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
        loop {
            ready!(self.connection.alarm.poll_passed(self.look, context));
            if self.look >= self.last || self.connection.is_crowded() {
                return Poll::Ready(());
            }
            self.look = (self.look + self.connection.limits.header_read).min(self.last);
        }
    }
}

impl Sleep for TooLate {}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        connections: 4,
        header_read: Duration::from_secs(10),
        idle: Duration::from_secs(95),
        drain: Duration::ZERO,
    };

    /// How long a next head is waited for.
    async fn patience(idle: &Idle) -> Duration {
        let begin = Instant::now();
        idle.sleep(LIMITS.idle).await;
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_asked_once_may_be_idle_for_long() {
        let idle = Idle::new(LIMITS, Arc::new(Semaphore::new(2)));
        assert_eq!(patience(&idle).await, LIMITS.header_read);
        assert_eq!(patience(&idle).await, LIMITS.idle);
        // An answer in between, and it begins anew.
        assert!(tokio::time::timeout(LIMITS.header_read * 3, patience(&idle)).await.is_err());
        assert_eq!(patience(&idle).await, LIMITS.idle);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_has_no_room_for_the_idle() {
        let permits = Arc::new(Semaphore::new(2));
        let idle = Idle::new(LIMITS, permits.clone());
        patience(&idle).await;
        let crowd = async {
            tokio::time::sleep(LIMITS.header_read * 5 / 2).await;
            permits.acquire().await.map(|permit| permit.forget())
        };
        let (waited, _) = tokio::join!(patience(&idle), crowd);
        assert_eq!(waited, LIMITS.header_read * 3);
        assert_eq!(patience(&idle).await, LIMITS.header_read);
    }
}
