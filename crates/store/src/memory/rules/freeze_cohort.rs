use daegi_domain::{CohortRange, Millis, Number};

use crate::limits::MAX_COHORT;
use crate::memory::line::Line;

/// Fixes the cohort of a line whose draw is due: all numbers from the lowest waiting one to the tail. After a
/// data loss, the cohort waits for the end of the recovery hold, so that users have reclaimed their numbers.
pub(in crate::memory) fn freeze_cohort(line: &mut Line, now: Millis) -> Option<CohortRange> {
    if line.shared.removed || !line.shared.item.is_opening_due(now) {
        return None;
    }
    let item = &line.shared.item;
    if item.recovering_until.max(item.hold_new_until) > now {
        return None;
    }
    let tail = line.tail;
    if let Some(frozen) = line.shared.item.draw.as_ref()?.cohort {
        return Some(frozen);
    }
    let first = line.waiting.first_number_from(Number(0)).unwrap_or(tail.next());
    // After all data was lost, lower numbers than the lowest waiting one may still be reclaimed.
    let lobby_first = line.shared.lobby_first.filter(|number| *number >= line.valid_from);
    let first = lobby_first.map_or(first, |lobby_first| lobby_first.min(first));
    let first = first.max(Number((tail.0 + 1).saturating_sub(MAX_COHORT)));
    let cohort = CohortRange { first, size: tail.0 + 1 - first.0 };
    // After a data loss, a part of the cohort is below the base. Ranks mix both parts, so all of it must
    // be below.
    if cohort.size > 0 && first <= line.base && line.base < tail {
        line.move_base(tail);
    }
    line.shared.item.draw.as_mut()?.cohort = Some(cohort);
    line.bump_control(now);
    Some(cohort)
}
