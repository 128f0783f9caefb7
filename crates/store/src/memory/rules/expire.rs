use daegi_domain::{EndReason, Millis};

use super::reclaim::StoreIdentity;
use crate::limits::MAX_USERS_PER_CALL;
use crate::memory::line::Line;
use crate::memory::outbox::PendingEvents;
use crate::types::Expiry;

pub(in crate::memory) fn expire(
    line: &mut Line,
    store: StoreIdentity,
    now: Millis,
    events: &mut PendingEvents,
) -> Expiry {
    if !line.shared.removed {
        line.detect_data_loss(store, now);
    }
    let due = line.entered.due(now, MAX_USERS_PER_CALL);
    let expired = due.entries.len() as u32;
    let missed = match line.absence_counts(line.shared.item.policy.missed_keep_seconds, now) {
        true => line.missed.due(now, MAX_USERS_PER_CALL - expired),
        false => Vec::new(),
    };
    let abandoned = missed.len() as u32;
    for (user, entry) in due.entries {
        line.end_ticket(user, entry.number, EndReason::Expired, now, events);
    }
    for (user, missed) in missed {
        line.end_ticket(user, missed.number, EndReason::Abandoned, now, events);
    }
    line.observe_entries(now);
    let pruned = line.prune_ended(now, MAX_USERS_PER_CALL as usize);
    line.prune_changes(MAX_USERS_PER_CALL as usize);
    line.prune_leftover(now, MAX_USERS_PER_CALL as usize);
    let more = due.more
        || expired + abandoned == MAX_USERS_PER_CALL
        || pruned == MAX_USERS_PER_CALL as usize;
    let front_is_above_base = line.front() > line.base.rank();
    // The caller knows the other lanes.
    Expiry { expired, abandoned, more, active: true, front_is_above_base, lanes: 0 }
}
