use daegi_domain::{LineEvent, Millis};

use crate::memory::line::Line;
use crate::memory::outbox::PendingEvents;

/// Records that the line closed, once per closing time.
pub(in crate::memory) fn close_line(
    line: &mut Line,
    now: Millis,
    events: &mut PendingEvents,
) -> bool {
    if line.shared.removed || !line.shared.item.is_close_due(now) {
        return false;
    }
    line.shared.item.closed_at =
        line.shared.item.policy.opening.as_ref().and_then(|opening| opening.closes_at);
    line.bump_control(now);
    events.line = Some(LineEvent::Closed { at: now });
    true
}
