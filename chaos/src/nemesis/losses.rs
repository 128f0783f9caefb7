//! When Redis loses everything: seldom enough that there is much to judge in between.

use std::time::Duration;

use fastrand::Rng;

use super::{Planned, Target};
use crate::history::FaultKind;

/// There is one loss in so many seconds, in the middle of them; none in a shorter run.
const EVERY: u64 = 50;

/// A restart makes a line's counter leap ahead of the clock by so much, and a line that was lost begins
/// at the clock. What both do to newcomers when one follows the other at once is in
/// `docs/RECOVERY.md`, and not what is looked for here.
const LEAP: Duration = Duration::from_secs(18);

/// Puts losses among the faults of servers.
pub(super) fn among(servers: Vec<Planned>, chance: &mut Rng, seconds: u64) -> Vec<Planned> {
    let count = seconds / EVERY;
    let at = |nth: u64| Duration::from_millis((2 * nth + 1) * seconds * 500 / count.max(1));
    let mut due: Vec<Duration> = (0..count).rev().map(at).collect();
    let (mut all, mut now) = (Vec::new(), Duration::ZERO);
    for mut planned in servers {
        now += planned.after + planned.lasts;
        if due.last().is_some_and(|due| *due <= now) {
            due.pop();
            all.push(loss(chance, count + due.len() as u64));
        }
        let next = due.last().copied().unwrap_or(Duration::MAX);
        if planned.target == Target::Redis && now + LEAP > next {
            planned.what = FaultKind::Pause;
        }
        all.push(planned);
    }
    all.extend(due.iter().map(|due| late(chance, due.saturating_sub(now))));
    all
}

/// Now one way, now the other.
fn loss(chance: &mut Rng, nth: u64) -> Planned {
    let what = if nth.is_multiple_of(2) { FaultKind::Flush } else { FaultKind::Wipe };
    let lasts = Duration::from_millis(chance.u64(100..1_500));
    Planned { after: Duration::from_secs(1), lasts, what, target: Target::Redis }
}

/// One for which there was no time among the others.
fn late(chance: &mut Rng, after: Duration) -> Planned {
    Planned { after, ..loss(chance, 0) }
}
