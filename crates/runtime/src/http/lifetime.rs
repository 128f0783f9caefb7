//! The lifetime of a connection: when it accepts no further request.
//!
//! A load balancer that distributes connections and not requests, such as a Kubernetes Service,
//! sends nothing to a new pod while clients keep their connections. A connection therefore ends at
//! an age, after a number of requests, and while the process drains. It ends after a response with
//! `Connection: close`, so that the client opens another one instead of writing into one that is
//! being closed. No request in flight is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use tokio::time::Instant;

use super::limits::Limits;

/// The remaining lifetime of one connection.
#[derive(Debug)]
pub(super) struct Lifetime {
    ends: Option<Instant>,
    requests: AtomicU32,
    draining: Arc<AtomicBool>,
}

impl Lifetime {
    /// Draws a lifetime between half and the whole of the limits, so that clients that connected at
    /// the same time do not reconnect at the same time.
    pub(super) fn draw(limits: &Limits, draining: Arc<AtomicBool>) -> Self {
        Self::share(limits, draining, 0.5 + fastrand::f64() / 2.0)
    }

    fn share(limits: &Limits, draining: Arc<AtomicBool>, share: f64) -> Self {
        let requests = (f64::from(limits.max_requests) * share).ceil();
        Self {
            // An age that overflows the clock is no limit.
            ends: Instant::now().checked_add(limits.max_age.mul_f64(share)),
            requests: AtomicU32::new(requests as u32),
            draining,
        }
    }

    /// Counts a response, and marks it if it is the last one of the connection.
    pub(super) fn mark_last(&self, response: &mut Response) {
        // Only the task of the connection writes the counter, so load and store lose no update.
        let left = self.requests.load(Ordering::Relaxed).saturating_sub(1);
        self.requests.store(left, Ordering::Relaxed);
        let is_last = left == 0
            || self.draining.load(Ordering::Relaxed)
            || self.ends.is_some_and(|ends| Instant::now() >= ends);
        if is_last && response.status() != StatusCode::SWITCHING_PROTOCOLS {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: Limits = Limits {
        connections: 1,
        request_buffer: 0,
        header_read: Duration::ZERO,
        idle: Duration::ZERO,
        max_age: Duration::from_secs(60),
        max_requests: 10,
        drain: Duration::ZERO,
        proxies: None,
    };

    fn lifetime(share: f64) -> Lifetime {
        Lifetime::share(&LIMITS, Arc::default(), share)
    }

    fn is_last(lifetime: &Lifetime, status: StatusCode) -> bool {
        let mut response = Response::default();
        *response.status_mut() = status;
        lifetime.mark_last(&mut response);
        response.headers().get(CONNECTION).is_some_and(|value| value == "close")
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_response_past_the_age_is_the_last() {
        for (share, age) in [(0.5, 30), (1.0, 60)] {
            let lifetime = lifetime(share);
            tokio::time::advance(Duration::from_secs(age) - Duration::from_millis(1)).await;
            assert!(!is_last(&lifetime, StatusCode::OK));
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(is_last(&lifetime, StatusCode::OK));
        }
    }

    #[tokio::test]
    async fn requests_are_bounded() {
        for (share, requests) in [(0.5, 5), (0.51, 6), (1.0, 10)] {
            let lifetime = lifetime(share);
            for _ in 1..requests {
                assert!(!is_last(&lifetime, StatusCode::OK));
            }
            assert!(is_last(&lifetime, StatusCode::OK));
        }
    }

    #[tokio::test]
    async fn every_response_is_the_last_while_the_process_drains() {
        let lifetime = lifetime(1.0);
        assert!(!is_last(&lifetime, StatusCode::OK));
        lifetime.draining.store(true, Ordering::Relaxed);
        assert!(is_last(&lifetime, StatusCode::OK));
        assert!(is_last(&lifetime, StatusCode::NOT_FOUND));
    }

    #[tokio::test]
    async fn an_upgrade_is_not_marked() {
        let lifetime = lifetime(1.0);
        lifetime.draining.store(true, Ordering::Relaxed);
        assert!(!is_last(&lifetime, StatusCode::SWITCHING_PROTOCOLS));
    }

    #[tokio::test(start_paused = true)]
    async fn lifetimes_differ() {
        let drawn = || Lifetime::draw(&LIMITS, Arc::default());
        let earliest = Instant::now() + LIMITS.max_age / 2;
        let ends: Vec<_> = (0..100).filter_map(|_| drawn().ends).collect();
        assert!(ends.iter().all(|&ends| ends >= earliest && ends <= earliest + LIMITS.max_age / 2));
        assert!(ends.iter().any(|other| *other != ends[0]));
    }
}
