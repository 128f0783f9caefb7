//! Pauses between attempts: longer each time, and never the same for two processes.

use std::time::Duration;

const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);

/// The pause after so many failures in a row. Half of it is chance: a fleet that lost its store
/// in one moment must not come back in one moment.
pub(crate) fn pause(failures: u32) -> Duration {
    let doubled = SHORTEST.saturating_mul(1 << failures.saturating_sub(1).min(10));
    doubled.min(LONGEST).mul_f64(0.5 + 0.5 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ() {
        assert!((0..100).map(|_| pause(1)).all(|pause| pause <= SHORTEST));
        let late: Vec<_> = (0..100).map(|_| pause(u32::MAX)).collect();
        assert!(late.iter().all(|pause| *pause >= LONGEST / 2 && *pause <= LONGEST));
        assert!(late.iter().any(|pause| *pause != late[0]));
    }
}
