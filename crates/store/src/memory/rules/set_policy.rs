use daegi_domain::{Draw, Millis, OpeningChange, PolicyChange};

use crate::memory::line::Line;
use crate::types::PolicyUpdateOutcome;

/// Replaces the policy of an item whose revision is still `revision`. Another opening needs an empty line.
pub(in crate::memory) fn set_policy(
    line: &mut Line,
    change: &PolicyChange,
    revision: u64,
    now: Millis,
) -> PolicyUpdateOutcome {
    if line.item.revision != revision {
        return PolicyUpdateOutcome::Conflict;
    }
    let is_replaced = change.opening == OpeningChange::Replaced;
    if is_replaced && line.in_line() > 0 {
        return PolicyUpdateOutcome::LineNotEmpty;
    }
    if is_replaced {
        line.clear_opening();
        let committed = |reveal| Draw { reveal, cohort: None, drawn: None };
        line.item.draw = change.reveal.map(committed);
    }
    line.item.policy = change.policy.clone();
    let closes_at = line.item.policy.opening.as_ref().and_then(|opening| opening.closes_at);
    if line.item.closed_at != closes_at {
        line.item.closed_at = None;
    }
    PolicyUpdateOutcome::Changed(line.bump_revision(now).into())
}
