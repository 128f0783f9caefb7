use daegi_domain::{Draw, Lane, Millis, OpeningChange, Policy, PolicyChange, lane};

use crate::memory::item_lines::ItemLines;
use crate::types::PolicyUpdateOutcome;

/// Replaces the policy of an item whose revision is still `revision`. Another opening needs an empty line, and
/// another name of a lane needs a lane without tickets.
pub(in crate::memory) fn set_policy(
    lines: &mut ItemLines,
    change: &PolicyChange,
    revision: u64,
    now: Millis,
) -> PolicyUpdateOutcome {
    let item = &lines.shared().item;
    if item.revision != revision {
        return PolicyUpdateOutcome::Conflict;
    }
    let is_replaced = change.opening == OpeningChange::Replaced;
    if is_replaced && lines.in_line() > 0 {
        return PolicyUpdateOutcome::LineNotEmpty;
    }
    let in_use =
        renamed_lanes(&item.policy, &change.policy).find(|lane| lines.has_live_tickets(*lane));
    if let Some(lane) = in_use {
        return PolicyUpdateOutcome::LaneNotEmpty(lane);
    }
    let line = &mut lines.standard;
    if is_replaced {
        line.clear_opening();
        let committed = |reveal| Draw { reveal, cohort: None, drawn: None };
        line.shared.item.draw = change.reveal.map(committed);
    }
    line.shared.item.policy = change.policy.clone();
    let closes_at = line.shared.item.policy.opening.as_ref().and_then(|opening| opening.closes_at);
    if line.shared.item.closed_at != closes_at {
        line.shared.item.closed_at = None;
    }
    line.bump_control(now);
    PolicyUpdateOutcome::Changed(line.bump_revision(now).into())
}

/// Returns the lanes whose name changes, those that are removed among them.
fn renamed_lanes(old: &Policy, new: &Policy) -> impl Iterator<Item = Lane> {
    let lanes = (1..=old.lanes.len()).filter_map(Lane::numbered);
    lanes.filter(|lane| lane::name(&old.lanes, *lane) != lane::name(&new.lanes, *lane))
}
