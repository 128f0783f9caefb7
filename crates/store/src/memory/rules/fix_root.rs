use daegi_domain::Millis;

use crate::memory::line::Line;

/// Fixes the root of a fixed cohort that waits for the round of its beacon.
pub(in crate::memory) fn fix_root(
    line: &mut Line,
    root: &[u8; 32],
    now: Millis,
) -> Option<[u8; 32]> {
    if line.shared.removed || !line.shared.item.is_opening_due(now) {
        return None;
    }
    let draw = line.shared.item.draw.as_mut()?;
    draw.cohort.zip(draw.beacon)?;
    if draw.root.is_none() {
        draw.root = Some(*root);
        line.bump_revision(now);
        line.bump_control(now);
    }
    line.shared.item.draw.as_ref()?.root
}
