//! Total data losses of Redis, rare enough that each era has enough calls to check.

use std::time::Duration;

use fastrand::Rng;

use super::{Planned, Target};
use crate::history::FaultKind;

/// One data loss per interval, in its middle; none in a shorter run.
const DATA_LOSS_INTERVAL_SECONDS: u64 = 50;

/// Minimum time between a restart and a data loss. A restart moves the counter of a line ahead of the clock, and a lost line begins at
/// the clock; `docs/RECOVERY.md` describes what happens when both follow each other, and runs do not test it.
const MIN_GAP: Duration = Duration::from_secs(18);

/// Inserts data losses into the sequence of server faults.
pub(super) fn insert(servers: Vec<Planned>, rng: &mut Rng, seconds: u64) -> Vec<Planned> {
    let count = seconds / DATA_LOSS_INTERVAL_SECONDS;
    let at = |nth: u64| Duration::from_millis((2 * nth + 1) * seconds * 500 / count.max(1));
    let mut due: Vec<Duration> = (0..count).rev().map(at).collect();
    let (mut all, mut now) = (Vec::new(), Duration::ZERO);
    for mut planned in servers {
        now += planned.after + planned.lasts;
        if due.last().is_some_and(|due| *due <= now) {
            due.pop();
            all.push(loss(rng, count + due.len() as u64));
        }
        let next = due.last().copied().unwrap_or(Duration::MAX);
        if planned.target == Target::Redis && now + MIN_GAP > next {
            planned.what = FaultKind::Pause;
        }
        all.push(planned);
    }
    all.extend(due.iter().map(|due| late(rng, due.saturating_sub(now))));
    all
}

/// Alternates between flush and empty restart.
fn loss(rng: &mut Rng, nth: u64) -> Planned {
    let what = if nth.is_multiple_of(2) { FaultKind::Flush } else { FaultKind::RestartEmpty };
    let lasts = Duration::from_millis(rng.u64(100..1_500));
    Planned { after: Duration::from_secs(1), lasts, what, target: Target::Redis }
}

/// A data loss after the last server fault.
fn late(rng: &mut Rng, after: Duration) -> Planned {
    Planned { after, ..loss(rng, 0) }
}
