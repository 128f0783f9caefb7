use daegi_domain::{Millis, Phase};

use crate::limits::CHECKPOINT_INTERVAL_MS;
use crate::memory::line::Line;

/// Records the settings of an item as changed if they were never recorded, or if the counter of its lobby moved
/// since. The counter of a lobby continues near its last recorded number after a loss. A line that recovers
/// keeps its record, because newer ones may still be read.
pub(in crate::memory) fn checkpoint_control(line: &mut Line, now: Millis) -> bool {
    let item = &line.shared.item;
    if line.shared.removed || item.recovering_until.max(item.hold_new_until) > now {
        return false;
    }
    let has_moved = item.phase(now) == Phase::Lobby && line.tail != line.shared.control_tail;
    let is_due = item.control_version + CHECKPOINT_INTERVAL_MS <= now;
    let changes = item.control_version == 0 || (has_moved && is_due);
    if changes {
        line.bump_control(now);
    }
    changes
}
