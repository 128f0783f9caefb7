use daegi_domain::lane::share::{self, LaneDemand};
use daegi_domain::{EndReason, Lane, Millis, Number, Settings, UserId, line_rules};

use crate::limits::{HELD_MS, MAX_USERS_PER_CALL};
use crate::memory::item_lines::ItemLines;
use crate::memory::line::{Line, Missed};
use crate::memory::outbox::{PendingEvents, StepEvents};
use crate::types::Admission;

pub(in crate::memory) fn admit(
    lines: &mut ItemLines,
    quota: u32,
    settings: &Settings,
    min_interval: Millis,
    outbox_room: u64,
    now: Millis,
    events: &mut StepEvents,
) -> Admission {
    let line = &mut lines.standard;
    // `last_round_at` in the future means clock skew; ignore it.
    let since = now.saturating_sub(line.shared.last_round_at);
    if since > 0 && since < min_interval {
        return Admission::default();
    }
    if outbox_room == 0 {
        line.shared.stopped = true;
        line.shared.item.held_until = now + HELD_MS + 3 * min_interval;
        return Admission { remaining: quota, outbox_full: true, ..Admission::default() };
    }
    line.shared.item.held_until = 0;
    // Absence does not count while the line can admit no ticket. After a stop each user has the
    // full grace period again, and the speed is measured from the beginning, because the speed
    // before the stop does not predict it.
    let stopped = quota == 0 || line.is_stopped(settings, now);
    let resumes = !stopped && line.shared.stopped;
    line.shared.stopped = stopped;
    if resumes {
        line.shared.servable_since = now;
        for lane in lines.lanes() {
            lines.with(lane, |line| line.moves = None);
        }
    }
    // Direct admissions since the last round have used their part of the quota.
    let shared = &mut lines.standard.shared;
    let quota = quota.saturating_sub(std::mem::take(&mut shared.direct_admissions));
    if shared.removed || !line_rules::may_admit(&shared.item, now) {
        return Admission { remaining: quota, ..Admission::default() };
    }
    shared.last_round_at = now;
    let used_slots = lines.occupancy(now).used_slots;
    let free_capacity = line_rules::free_capacity(&lines.shared().item, used_slots);
    let outbox_room = u32::try_from(outbox_room).unwrap_or(u32::MAX);
    let limit = quota.min(free_capacity).min(outbox_room);
    let mut round = Round::new(lines, limit, now);
    round.serve(events);
    Admission {
        admitted: round.admitted,
        missed: round.missed,
        remaining: quota - round.admitted,
        more: round.admitted < limit && round.demands().iter().any(|lane| lane.admissible > 0),
        outbox_full: false,
    }
}

/// The admissions of one call.
struct Round<'a> {
    lines: &'a mut ItemLines,
    limit: u32,
    now: Millis,
    admitted: u32,
    missed: u32,
}

impl<'a> Round<'a> {
    fn new(lines: &'a mut ItemLines, limit: u32, now: Millis) -> Self {
        Self { lines, limit, now, admitted: 0, missed: 0 }
    }

    /// Serves the lanes by a plan. A further plan uses what absent users left of the limit.
    fn serve(&mut self, events: &mut StepEvents) {
        let now = self.now;
        let mut moved = vec![0; self.lines.lanes().count()];
        loop {
            let budget =
                (self.limit - self.admitted).min(MAX_USERS_PER_CALL - self.admitted - self.missed);
            let demands = self.demands();
            let planned = share::plan(&demands, budget.into());
            if planned.iter().all(|planned| *planned == 0) {
                if budget > 0 {
                    self.lines.standard.skip_departed_ranks(now);
                }
                break;
            }
            let mut admitted = vec![0; demands.len()];
            for lane in (0..demands.len()).filter_map(Lane::numbered) {
                let (index, events) = (lane.index(), events.of_lane(lane));
                let serve = |line: &mut Line| serve(line, planned[index], now, events);
                let (entered, missed) = self.lines.with(lane, serve).unwrap_or_default();
                admitted[index] = u64::from(entered);
                moved[index] += entered + missed;
                self.admitted += entered;
                self.missed += missed;
            }
            self.lines.standard.shared.leads = share::leads_after(&demands, &admitted);
        }
        for (lane, moved) in self.lines.lanes().zip(moved).filter(|(_, moved)| *moved > 0) {
            self.lines.with(lane, |line| line.record_progress(moved, now));
        }
    }

    /// Returns which lanes have tickets that may be admitted, the standard lane first.
    fn demands(&mut self) -> Vec<LaneDemand> {
        let (now, leads) = (self.now, self.lines.shared().leads.clone());
        let shares = share::shares(&self.lines.shared().item.policy.lanes);
        let demand = |(index, share)| {
            let line = Lane::numbered(index)
                .and_then(|lane| self.lines.with(lane, |line| line.admissible(now)));
            let lead = leads.get(index).copied().unwrap_or(0);
            LaneDemand { share, admissible: line.unwrap_or(0), lead }
        };
        shares.into_iter().enumerate().map(demand).collect()
    }
}

/// Serves `count` tickets of a lane; returns how many were admitted and how many missed their turn.
fn serve(line: &mut Line, count: u64, now: Millis, events: &mut PendingEvents) -> (u32, u32) {
    let (mut admitted, mut missed) = (0, 0);
    for _ in 0..count {
        let Some((user, number)) = line.returning.pop().or_else(|| line.pop_admissible(now)) else {
            break;
        };
        if is_present(line, number, now) {
            line.admit(user, number, now, events);
            admitted += 1;
        } else {
            mark_missed(line, user, number, now, events);
            missed += 1;
        }
    }
    (admitted, missed)
}

fn is_present(line: &Line, number: Number, now: Millis) -> bool {
    let grace = line.shared.item.policy.grace_seconds;
    grace == 0 || !line.absence_counts(grace, now) || line.liveness.was_seen(number, grace, now)
}

fn mark_missed(
    line: &mut Line,
    user: UserId,
    number: Number,
    now: Millis,
    events: &mut PendingEvents,
) {
    let keep = Millis::from(line.shared.item.policy.missed_keep_seconds) * 1000;
    if keep == 0 {
        line.end_ticket(user, number, EndReason::Abandoned, now, events);
    } else {
        line.missed.insert(now + keep, user, Missed { number, until: now + keep });
    }
}
