use std::collections::{BTreeMap, BTreeSet, VecDeque};

use daegi_domain::entry_flow::EntryCounts;
use daegi_domain::line_rules::{self, Occupancy};
use daegi_domain::rate::{BUCKETS, Moves};
use daegi_domain::{
    CohortRange, Departed, EndReason, EntryFlow, Item, Lane, LogPosition, Millis, Number, Rank,
    Rate, Reclaimed, Settings, TicketEvent, UserId,
};

use super::entry_set::{Entry, EntrySet};
use super::liveness::Liveness;
use super::outbox::PendingEvents;
use super::queues::{DeadlineQueue, RankQueue};
use crate::limits::{ENDED_RETENTION_MS, MAX_CHANGES_PER_SNAPSHOT, WAITING_END_RETENTION_MS};
use crate::types::{ChangeCursor, LaneCounts, LineCounts, LineSnapshot, LineTotals};

/// The line of one lane of an item with all its tickets.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// What all lanes of the item share. It is in the line that a step runs on; see
    /// [`super::item_lines::ItemLines`].
    pub(super) shared: ItemState,
    pub(super) lane: Lane,
    pub(super) base: Number,
    pub(super) tail: Number,
    pub(super) valid_from: Number,
    /// Numbers from here to `lost_to` may have been issued and lost.
    pub(super) lost_from: Number,
    pub(super) lost_to: Number,
    /// Lost numbers are reclaimed until then.
    pub(super) reclaim_until: Millis,
    /// When the first number of the lost range was reclaimed or ended, if one was.
    pub(super) lost_range_used_at: Option<Millis>,
    /// The run of the store that issued the last number.
    pub(super) run_id: u64,
    pub(super) waiting: RankQueue,
    pub(super) returning: RankQueue,
    pub(super) missed: DeadlineQueue<Missed>,
    pub(super) entered: EntrySet,
    /// How many ranks of the drawn cohort were served or skipped.
    pub(super) served_ranks: u64,
    /// The leaves of the Merkle tree of each cohort, by its root.
    pub(super) draw_leaves: BTreeMap<[u8; 32], Vec<[u8; 32]>>,
    pub(super) totals: LineTotals,
    pub(super) changes: VecDeque<Change>,
    /// How many changes were removed from the head of the list.
    changes_dropped: u64,
    /// Ranks above the base that left the middle of the line.
    pub(super) departed: Departed,
    /// Ranks at or below the base that wait.
    pub(super) reclaimed: Reclaimed,
    /// Entries that their users gave back, and until when their passes are valid.
    pub(super) leftover: BTreeMap<Number, Millis>,
    ended: BTreeMap<Number, (EndReason, Millis)>,
    /// The time of the oldest of these ends, so that most rounds need not look for old ones.
    oldest_end: Option<Millis>,
    pub(super) liveness: Liveness,
    rate: BTreeMap<u64, u32>,
    pub(super) moves: Option<Moves>,
    flow: Option<EntryFlow>,
    /// How long the entries lasted in sum that ended before they expired, in milliseconds.
    pub(super) spent: Millis,
}

/// The state of an item that its lanes share.
#[derive(Debug, Clone)]
pub(super) struct ItemState {
    pub(super) item: Item,
    /// The item was removed. The line is kept for its version and for its entries.
    pub(super) removed: bool,
    /// The log position of the last item update that was applied.
    pub(super) last_update: Option<LogPosition>,
    /// Direct admissions since the leader's last round.
    pub(super) direct_admissions: u32,
    /// Whether the leader's last round found that the line can admit no ticket.
    pub(super) stopped: bool,
    /// When the line became able to admit again after it was stopped.
    pub(super) servable_since: Millis,
    /// When the leader's last round began that found the line able to admit.
    pub(super) last_round_at: Millis,
    /// Until when the leaves of a user count.
    pub(super) leaves: DeadlineQueue<Millis>,
    /// How far the service of each lane is ahead of the others', the standard lane first.
    pub(super) leads: Vec<u64>,
    /// Users of the present step who hold a live ticket in another lane than that of the step.
    pub(super) live_elsewhere: BTreeSet<UserId>,
    /// The last number of the standard lane when the control version grew last.
    pub(super) control_tail: Number,
    /// The lowest number that waited in a lobby whose data was lost.
    pub(super) lobby_first: Option<Number>,
    /// The users who joined with each invitation code.
    pub(super) redemptions: BTreeMap<u64, BTreeSet<UserId>>,
}

/// A change in the middle of a line, which pods read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Departed(Number),
    /// All numbers of this range wait, although they are at or below the base.
    Reclaimed(Number, Number),
}

/// A ticket that missed its turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Missed {
    pub(super) number: Number,
    pub(super) until: Millis,
}

impl ItemState {
    pub(super) fn new(item: Item) -> Self {
        Self {
            item,
            removed: false,
            last_update: None,
            direct_admissions: 0,
            stopped: false,
            servable_since: 0,
            last_round_at: 0,
            leaves: DeadlineQueue::default(),
            leads: Vec::new(),
            live_elsewhere: BTreeSet::new(),
            control_tail: Number(0),
            lobby_first: None,
            redemptions: BTreeMap::new(),
        }
    }
}

impl Line {
    /// Creates an empty line. Numbers up to its base may be lost ones, if the partition lost data.
    pub(super) fn new(shared: ItemState, lane: Lane, run_id: u64, now: Millis) -> Self {
        let base = Number::base_at(now);
        Self {
            shared,
            lane,
            base,
            tail: base,
            valid_from: Number(0),
            lost_from: Number(0),
            lost_to: base,
            reclaim_until: 0,
            lost_range_used_at: None,
            run_id,
            waiting: RankQueue::default(),
            returning: RankQueue::default(),
            missed: DeadlineQueue::default(),
            entered: EntrySet::default(),
            served_ranks: 0,
            draw_leaves: BTreeMap::new(),
            totals: LineTotals::default(),
            changes: VecDeque::new(),
            changes_dropped: 0,
            departed: Departed::new(base.rank()),
            reclaimed: Reclaimed::default(),
            leftover: BTreeMap::new(),
            ended: BTreeMap::new(),
            oldest_end: None,
            liveness: Liveness::default(),
            rate: BTreeMap::new(),
            moves: None,
            flow: None,
            spent: 0,
        }
    }

    /// Records that the item was changed at `now`, and returns it.
    pub(super) fn bump_revision(&mut self, now: Millis) -> Item {
        self.shared.item.revision += 1;
        self.shared.item.updated_at = Some(now);
        self.shared.item.clone()
    }

    /// Records a change of the settings at `now`, so that the leader publishes them. Runs on the standard lane.
    pub(super) fn bump_control(&mut self, now: Millis) {
        let item = &mut self.shared.item;
        item.control_version = now.max(item.control_version + 1);
        self.shared.control_tail = self.tail;
    }

    /// Returns the cohort of the line. Only the standard lane is drawn.
    pub(super) fn cohort(&self) -> Option<CohortRange> {
        let draw = self.shared.item.draw.as_ref().filter(|_| self.lane.is_standard())?;
        draw.cohort
    }

    /// Returns the cohort of the line while it has ranks that were not served.
    pub(super) fn unserved_cohort(&self) -> Option<CohortRange> {
        let cohort = self.cohort()?;
        (self.served_ranks < cohort.size).then_some(cohort)
    }

    /// Returns the lowest rank that may wait, or one past the tail. In a drawn cohort this is the rank
    /// that is served next, even if its ticket departed.
    pub(super) fn front(&self) -> Rank {
        self.first_rank_from(Rank(0))
    }

    /// Returns the same as [`Line::front`] for the ranks above the base.
    pub(super) fn frontier(&self) -> Rank {
        self.first_rank_from(self.base.rank().next())
    }

    fn first_rank_from(&self, rank: Rank) -> Rank {
        let first = self.waiting.first_from(rank).unwrap_or(self.tail.rank().next());
        let drawn = self.shared.item.drawn_cohort().and_then(|_| self.unserved_cohort());
        match drawn.filter(|cohort| cohort.first.rank() >= rank && first >= cohort.first.rank()) {
            Some(cohort) => Rank(cohort.first.0 + self.served_ranks),
            None => first,
        }
    }

    /// Returns the position of a waiting ticket, or `None` while it is not drawn. The position of a
    /// ticket of a drawn cohort is `None`, too: pods compute it, because no script can.
    pub(super) fn known_position(&self, number: Number, now: Millis) -> Option<u64> {
        let is_drawn = self.cohort().is_some_and(|cohort| cohort.contains(number));
        let is_undecided = self.lane.is_standard() && self.shared.item.is_draw_undecided(now);
        let is_known = !is_drawn && !is_undecided;
        is_known.then(|| self.position(self.waiting.rank_of(number)))
    }

    /// Returns the position of a waiting rank.
    pub(super) fn position(&self, rank: Rank) -> u64 {
        let returning = self.returning.len();
        if rank <= self.base.rank() {
            return returning + self.reclaimed.count_below(rank) + 1;
        }
        let ahead = returning + self.reclaimed.len();
        line_rules::position(ahead, self.frontier(), &self.departed, rank)
    }

    /// Counts the tickets that may be admitted.
    pub(super) fn admissible(&self, now: Millis) -> u64 {
        let waiting = match self.shared.item.hold_new_until > now {
            true => self.waiting.count_below(self.base.next()),
            false => self.waiting.len(),
        };
        self.returning.len() + waiting
    }

    /// Returns whether a waiting ticket may be admitted.
    fn has_admissible(&self, now: Millis) -> bool {
        let first = self.waiting.first_from(Rank(0));
        first.is_some_and(|first| !self.holds(first, now))
    }

    fn holds(&self, rank: Rank, now: Millis) -> bool {
        line_rules::holds_rank(&self.shared.item, rank, self.base.rank(), now)
    }

    /// Counts the ranks of the cohort as served if no ticket of it waits any more and no earlier one does.
    pub(super) fn skip_departed_ranks(&mut self, now: Millis) {
        if let Some(cohort) = self.unserved_cohort()
            && !self.waiting.has_drawn()
            && self.waiting.first_from(Rank(0)).is_none_or(|first| first > cohort.last().rank())
            && !self.holds(cohort.first.rank(), now)
        {
            self.served_ranks = cohort.size;
        }
    }

    /// Removes and returns the waiting ticket that is served next, if it may be admitted.
    pub(super) fn pop_admissible(&mut self, now: Millis) -> Option<(UserId, Number)> {
        self.skip_departed_ranks(now);
        if !self.has_admissible(now) {
            return None;
        }
        let (user, number) = self.waiting.pop()?;
        if let Some(cohort) = self.unserved_cohort().filter(|cohort| cohort.contains(number)) {
            self.served_ranks = self.waiting.rank_of(number).0 - cohort.first.0 + 1;
        }
        self.log_departure_below_base(number);
        Some((user, number))
    }

    /// Returns the counts of this lane that the rules of the line depend on.
    pub(super) fn occupancy(&self, now: Millis) -> Occupancy {
        let leftover = self.leftover.values().filter(|expires_at| **expires_at > now).count();
        Occupancy {
            queued: self.waiting.len() + self.returning.len(),
            missed: self.missed.len(),
            used_slots: self.entered.len() + leftover as u64,
            direct_admissions: self.shared.direct_admissions,
        }
    }

    /// Counts the tickets in the line, those that missed their turn included.
    pub(super) fn in_line(&self) -> u64 {
        self.waiting.len() + self.returning.len() + self.missed.len()
    }

    /// Returns whether the line can admit no ticket now, apart from a full outbox.
    pub(super) fn is_stopped(&self, settings: &Settings, now: Millis) -> bool {
        self.shared.removed || line_rules::is_stopped(&self.shared.item, settings, now)
    }

    /// Returns whether absence counts: the line can admit and has been able to for `seconds`.
    pub(super) fn absence_counts(&self, seconds: u32, now: Millis) -> bool {
        !self.shared.stopped && self.shared.servable_since + Millis::from(seconds) * 1000 <= now
    }

    /// Returns whether a ticket that missed its turn can no longer return.
    pub(super) fn is_missed_over(&self, missed: Missed, now: Millis) -> bool {
        missed.until <= now && self.absence_counts(self.shared.item.policy.missed_keep_seconds, now)
    }

    /// Ends a ticket that the caller has removed from the line and from the entry set.
    pub(super) fn end_ticket(
        &mut self,
        user: UserId,
        number: Number,
        reason: EndReason,
        at: Millis,
        events: &mut PendingEvents,
    ) {
        let from_line = matches!(reason, EndReason::Abandoned | EndReason::Replaced);
        self.record_end(user, number, reason, from_line, at, events);
    }

    /// Ends the ticket of a user who left the line before being admitted.
    pub(super) fn end_waiting(
        &mut self,
        user: UserId,
        number: Number,
        at: Millis,
        events: &mut PendingEvents,
    ) {
        self.record_end(user, number, EndReason::Left, true, at, events);
    }

    fn record_end(
        &mut self,
        user: UserId,
        number: Number,
        reason: EndReason,
        from_line: bool,
        at: Millis,
        events: &mut PendingEvents,
    ) {
        self.totals.end(reason);
        let early = from_line && self.may_forget_early(number, at);
        let earlier = if early { ENDED_RETENTION_MS - WAITING_END_RETENTION_MS } else { 0 };
        self.remember_end(number, reason, at.saturating_sub(earlier));
        events.ended.push(TicketEvent::Ended { user, number, at, reason });
    }

    /// Admits a ticket that the caller has removed from the line.
    pub(super) fn admit(
        &mut self,
        user: UserId,
        number: Number,
        at: Millis,
        events: &mut PendingEvents,
    ) {
        let expires_at = at + Millis::from(self.shared.item.policy.pass_ttl_seconds) * 1000;
        self.admit_until(user, number, at, expires_at, events);
    }

    pub(super) fn admit_until(
        &mut self,
        user: UserId,
        number: Number,
        at: Millis,
        expires_at: Millis,
        events: &mut PendingEvents,
    ) {
        self.totals.admitted += 1;
        self.entered.insert(user.clone(), Entry { number, admitted_at: at, expires_at });
        events.admitted.push(TicketEvent::Admitted { user, number, at, expires_at });
    }

    /// Removes a waiting ticket. A gap in the middle of the line is logged for pods.
    pub(super) fn remove_waiting(&mut self, user: &UserId) {
        let Some(number) = self.waiting.remove(user) else {
            return;
        };
        self.log_departure_below_base(number);
        let precedes = |first: Number| first < number;
        let is_in_the_middle = self.unserved_cohort().is_some()
            || self.waiting.first_number_from(Number(0)).is_some_and(precedes);
        if number > self.base && is_in_the_middle {
            self.changes.push_back(Change::Departed(number));
            self.departed.insert(self.waiting.rank_of(number));
        }
    }

    /// Removes this ticket from the waiting, returning or missed ones; returns whether it was there.
    pub(super) fn remove_from_line(&mut self, user: &UserId, number: Number) -> bool {
        if self.waiting.holds(user, number) {
            self.remove_waiting(user);
        } else if self.returning.holds(user, number) {
            self.returning.remove(user);
        } else if let Some(missed) = self.missed_number(user, number) {
            self.missed.remove(missed.until, user);
        } else {
            return false;
        }
        true
    }

    /// Returns when this ticket missed its turn, if it did.
    pub(super) fn missed_number(&self, user: &UserId, number: Number) -> Option<Missed> {
        self.missed.get(user).filter(|missed| missed.number == number)
    }

    /// Logs a number at or below the base that stopped waiting, even at the front. A lower rank may
    /// still be reclaimed, so pods cannot derive this departure from the front.
    fn log_departure_below_base(&mut self, number: Number) {
        if number <= self.base {
            self.reclaimed.remove(self.waiting.rank_of(number));
            self.changes.push_back(Change::Departed(number));
        }
    }

    /// Removes changes that the front has passed, at most `limit`, oldest first. While ranks of a cohort
    /// are not served, any of its numbers may still matter.
    pub(super) fn prune_changes(&mut self, limit: usize) {
        let front = self.front().number();
        let limit = if self.unserved_cohort().is_some() { 0 } else { limit };
        for _ in 0..limit {
            match self.changes.front() {
                Some(Change::Departed(last) | Change::Reclaimed(_, last)) if *last < front => {
                    self.changes.pop_front()
                }
                _ => break,
            };
            self.changes_dropped += 1;
        }
        // Before a draw, a departed number below the frontier may get any rank of the cohort.
        if self.unserved_cohort().is_none() {
            self.departed.prune_below(self.frontier());
        }
    }

    pub(super) fn remember_end(&mut self, number: Number, reason: EndReason, at: Millis) {
        self.ended.insert(number, (reason, at));
        self.oldest_end = Some(self.oldest_end.map_or(at, |oldest| oldest.min(at)));
    }

    /// Returns how a number ended, or `None` if the line stores no end of it.
    pub(super) fn end_reason(&self, number: Number) -> Option<EndReason> {
        self.ended.get(&number).map(|(reason, _)| *reason)
    }

    /// Removes at most `limit` ends past their retention, oldest first; returns how many.
    pub(super) fn prune_ended(&mut self, now: Millis, limit: usize) -> usize {
        if self.oldest_end.is_none_or(|at| at + ENDED_RETENTION_MS > now) {
            return 0;
        }
        let old = self.ended.iter().filter(|(_, (_, at))| *at + ENDED_RETENTION_MS <= now);
        let old = oldest(old.map(|(number, (_, at))| (*at, *number)), limit);
        old.iter().for_each(|number| {
            self.ended.remove(number);
        });
        self.oldest_end = self.ended.values().map(|(_, at)| *at).min();
        old.len()
    }

    /// Removes at most `limit` given-back entries whose pass expired, oldest first.
    pub(super) fn prune_leftover(&mut self, now: Millis, limit: usize) {
        let expired = self.leftover.iter().filter(|(_, expires_at)| **expires_at <= now);
        let expired = oldest(expired.map(|(number, at)| (*at, *number)), limit);
        expired.iter().for_each(|number| {
            self.leftover.remove(number);
        });
    }

    /// Counts tickets that left the front of the line.
    pub(super) fn record_progress(&mut self, tickets: u32, now: Millis) {
        let bucket = Rate::bucket_of(now);
        *self.rate.entry(bucket).or_default() += tickets;
        if self.rate.len() as u64 > BUCKETS {
            self.rate.retain(|at, _| *at + BUCKETS >= bucket);
        }
        self.moves = Some(Moves::after(self.moves, tickets, now));
    }

    /// Observes how entries come and go.
    pub(super) fn observe_entries(&mut self, now: Millis) {
        let counts = EntryCounts {
            entered: self.entered.len(),
            admitted: self.totals.admitted,
            expired: self.totals.expired,
            spent: self.spent,
        };
        let ttl = Millis::from(self.shared.item.policy.pass_ttl_seconds) * 1000;
        self.flow = Some(EntryFlow::after(self.flow, counts, ttl, now));
    }

    /// Removes all tickets of the line without events; entries stay.
    pub(super) fn restart(&mut self) {
        self.totals.ended += self.in_line();
        (self.waiting, self.returning) = (RankQueue::default(), RankQueue::default());
        self.missed = DeadlineQueue::default();
        self.changes_dropped += self.changes.len() as u64;
        self.changes.clear();
        (self.departed, self.reclaimed) = (Departed::new(self.base.rank()), Reclaimed::default());
        (self.shared.item.recovering_until, self.shared.item.hold_new_until) = (0, 0);
        self.liveness.clear_slice_starts();
        self.valid_from = self.tail.next();
        self.served_ranks = self.cohort().map_or(0, |cohort| cohort.size);
    }

    /// Opens the line again after its item was removed.
    pub(super) fn reopen(&mut self, run_id: u64, now: Millis) {
        self.base = Number::base_at(now).max(self.tail);
        self.tail = self.base;
        // A line that never issued a ticket accepts older numbers, because its item may have been
        // created again after a data loss.
        let had_tickets = self.totals.joined > 0;
        self.valid_from = if had_tickets { self.base.next() } else { Number(0) };
        (self.lost_from, self.lost_to, self.reclaim_until) = (Number(0), self.base, 0);
        self.lost_range_used_at = None;
        self.run_id = run_id;
        self.changes_dropped = 0;
        self.departed = Departed::new(self.base.rank());
        self.shared.removed = false;
        (self.shared.stopped, self.shared.servable_since) = (false, 0);
        (self.served_ranks, self.draw_leaves) = (0, BTreeMap::new());
        self.shared.lobby_first = None;
    }

    /// Returns whether a user has a ticket in the line or in the entry set.
    pub(super) fn has_live_ticket(&self, user: &UserId) -> bool {
        self.waiting.number_of(user).is_some()
            || self.returning.number_of(user).is_some()
            || self.missed.get(user).is_some()
            || self.entered.get(user).is_some()
    }

    /// Returns whether the line has tickets or changes that the leader must look at.
    pub(super) fn has_tickets(&self) -> bool {
        self.in_line() + self.entered.len() > 0 || !self.changes.is_empty()
    }

    pub(super) fn lane_counts(&self) -> LaneCounts {
        self.counts().all_lanes()
    }

    /// Returns the counts of this lane as those of the item.
    pub(super) fn counts(&self) -> LineCounts {
        LineCounts {
            item: self.shared.item.id.clone(),
            waiting: self.waiting.len(),
            returning: self.returning.len(),
            missed: self.missed.len(),
            entered: self.entered.len(),
            totals: self.totals,
            lanes: Vec::new(),
            base: self.base,
            front: self.front().number(),
            tail: self.tail,
        }
    }

    pub(super) fn snapshot(&self, cursor: ChangeCursor) -> LineSnapshot {
        let end = self.changes_dropped + self.changes.len() as u64;
        let is_known = cursor.base == self.base.0 && cursor.read <= end;
        let from =
            if is_known { cursor.read.max(self.changes_dropped) } else { self.changes_dropped };
        let skip = (from - self.changes_dropped) as usize;
        let page = self.changes.iter().skip(skip).take(MAX_CHANGES_PER_SNAPSHOT);
        let (mut departed, mut reclaimed) = (Vec::new(), Vec::new());
        for change in page {
            match *change {
                Change::Departed(number) => departed.push(number),
                Change::Reclaimed(first, last) => reclaimed.push((first, last)),
            }
        }
        let read = from + (departed.len() + reclaimed.len()) as u64;
        LineSnapshot {
            item: self.shared.item.clone(),
            lane: self.lane,
            base: self.base,
            valid_from: self.valid_from,
            front: self.front(),
            frontier: self.frontier(),
            tail: self.tail,
            waiting: self.waiting.len(),
            returning: self.returning.len(),
            entered: self.entered.len(),
            ended: self.totals.ended,
            completed: self.totals.completed,
            rate: Rate::new(self.rate.iter().map(|(at, tickets)| (*at, *tickets)).collect())
                .with_moves(self.moves),
            flow: self.flow,
            departed,
            reclaimed,
            cursor: ChangeCursor { base: self.base.0, read },
            more: read < end,
        }
    }
}

/// Returns the numbers with the lowest times, at most `limit`.
fn oldest(times: impl Iterator<Item = (Millis, Number)>, limit: usize) -> Vec<Number> {
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    times.truncate(limit);
    times.into_iter().map(|(_, number)| number).collect()
}
