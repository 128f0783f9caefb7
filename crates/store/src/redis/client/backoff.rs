//! Delays between attempts: they double up to a limit and have random jitter.

use std::time::Duration;

const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// Returns the delay after this many failures in a row. Half of it is random, so that processes that
/// lost the store at the same moment do not reconnect at the same moment.
pub(crate) fn delay(failures: u32) -> Duration {
    let doubled = MIN_BACKOFF.saturating_mul(1 << failures.saturating_sub(1).min(10));
    doubled.min(MAX_BACKOFF).mul_f64(0.5 + 0.5 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_limit_and_differ() {
        assert!((0..100).map(|_| delay(1)).all(|delay| delay <= MIN_BACKOFF));
        let late: Vec<_> = (0..100).map(|_| delay(u32::MAX)).collect();
        assert!(late.iter().all(|delay| *delay >= MAX_BACKOFF / 2 && *delay <= MAX_BACKOFF));
        assert!(late.iter().any(|delay| *delay != late[0]));
    }
}
