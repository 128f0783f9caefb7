use std::collections::{BTreeMap, BTreeSet, VecDeque};

use daegi_domain::liveness::{PAGE_NUMBERS, oldest_slice, slice_of};
use daegi_domain::rate::{BUCKETS, Moves};
use daegi_domain::{
    Departed, EndReason, Item, LineEvent, LogPosition, Millis, Number, Rate, Reclaimed, SeenPage,
    Settings, UserId, line, line_rules,
};

use super::inside::{Entry, Inside};
use super::outbox::Written;
use super::queue::{Queue, Timed};
use crate::model::{Counts, DepartedCursor, LineSnapshot, Totals};
use crate::{CLOSED_KEEP_MS, DEPARTED_PAGE, WAITING_END_KEEP_MS};

/// One item's line with everybody in it.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) item: Item,
    /// The item was taken out; kept for its version and for the people still inside.
    pub(super) removed: bool,
    /// Where the last news that counted was read.
    pub(super) read: Option<LogPosition>,
    pub(super) base: Number,
    pub(super) tail: Number,
    pub(super) valid_from: Number,
    /// Numbers from here to `lost_to` may have been given and lost.
    pub(super) lost_from: Number,
    pub(super) lost_to: Number,
    /// They are taken back until then.
    pub(super) take_back_until: Millis,
    /// The store that gave the last number.
    pub(super) run: u64,
    pub(super) waiting: Queue,
    pub(super) returning: Queue,
    pub(super) missed: Timed<Missed>,
    pub(super) entered: Inside,
    /// How many passed through since the leader's last tick.
    pub(super) through: u32,
    /// Whether the leader's last round found that the line can admit no ticket.
    pub(super) stopped: bool,
    /// When the line became able to admit again after it was stopped.
    pub(super) servable_since: Millis,
    /// When the leader's last round that let people in began.
    pub(super) served_at: Millis,
    pub(super) totals: Totals,
    pub(super) changes: VecDeque<Change>,
    /// How many changes were forgotten from the head of the list.
    changes_dropped: u64,
    /// Who departed from behind the base, to count a position.
    pub(super) gone: Departed,
    /// Who waits below the base.
    pub(super) reclaimed: Reclaimed,
    /// Until when the leaves of a user count.
    pub(super) leaves: Timed<Millis>,
    /// Entries that their users gave back and whose passes are valid until then.
    pub(super) leftover: BTreeMap<Number, Millis>,
    closed: BTreeMap<Number, (EndReason, Millis)>,
    /// (slice, first number given in it): who joined within the last slices is alive.
    births: BTreeSet<(u64, Number)>,
    seen: BTreeMap<(u64, u64), SeenPage>,
    rate: BTreeMap<u64, u32>,
    pub(super) moves: Option<Moves>,
}

/// What happened in the middle of a line, for pods to learn.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Departed(Number),
    /// All of these wait, though they are below the base.
    Waits(Number, Number),
}

/// A person who missed their turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Missed {
    pub(super) number: Number,
    pub(super) until: Millis,
}

impl Line {
    /// A line of which nothing is known, so that older numbers may be lost ones if the partition
    /// lost its data.
    pub(super) fn new(item: Item, run: u64, now: Millis) -> Self {
        let base = Number::base_at(now);
        Self {
            item,
            removed: false,
            read: None,
            base,
            tail: base,
            valid_from: Number(0),
            lost_from: Number(0),
            lost_to: base,
            take_back_until: 0,
            run,
            waiting: Queue::default(),
            returning: Queue::default(),
            missed: Timed::default(),
            entered: Inside::default(),
            through: 0,
            stopped: false,
            servable_since: 0,
            served_at: 0,
            totals: Totals::default(),
            changes: VecDeque::new(),
            changes_dropped: 0,
            gone: Departed::new(base),
            reclaimed: Reclaimed::default(),
            leaves: Timed::default(),
            leftover: BTreeMap::new(),
            closed: BTreeMap::new(),
            births: BTreeSet::new(),
            seen: BTreeMap::new(),
            rate: BTreeMap::new(),
            moves: None,
        }
    }

    /// Records that the item was changed at `now`, and returns it.
    pub(super) fn touched(&mut self, now: Millis) -> Item {
        self.item.revision += 1;
        self.item.updated_at = Some(now);
        self.item.clone()
    }

    /// The lowest number that waits.
    pub(super) fn front(&self) -> Number {
        self.waiting.first_from(Number(0)).unwrap_or(self.tail.next())
    }

    /// The lowest number behind the base that waits.
    pub(super) fn frontier(&self) -> Number {
        self.waiting.first_from(self.base.next()).unwrap_or(self.tail.next())
    }

    /// The place of a number that waits.
    pub(super) fn position(&self, number: Number) -> u64 {
        let returning = self.returning.len();
        if number <= self.base {
            return returning + self.reclaimed.count_below(number) + 1;
        }
        let ahead = returning + self.reclaimed.len();
        line::position(ahead, self.frontier(), &self.gone, number)
    }

    /// Whether somebody in the line may be served: nobody behind the base while those who were
    /// lost may still come back.
    pub(super) fn has_next(&self, now: Millis) -> bool {
        self.waiting.len() > 0 && (self.item.behind_until <= now || self.front() <= self.base)
    }

    /// Takes the next person who may be served.
    pub(super) fn next(&mut self, now: Millis) -> Option<(UserId, Number)> {
        if !self.has_next(now) {
            return None;
        }
        let (user, number) = self.waiting.pop()?;
        self.leave_below(number);
        Some((user, number))
    }

    /// How many tickets count against the limit of waiting ones: who missed their turn may return.
    pub(super) fn in_line(&self) -> u64 {
        self.waiting.len() + self.returning.len() + self.missed.len()
    }

    /// Whether the line can admit no ticket now, apart from a full outbox.
    pub(super) fn is_stopped(&self, settings: &Settings, now: Millis) -> bool {
        let item = &self.item;
        self.removed
            || !item.enabled
            || item.stock == 0
            || item.paused
            || item.recovering_until.max(item.behind_until) > now
            || line_rules::quota(item, settings) == 0
    }

    /// Whether absence counts: the line can admit and has been able to for so many seconds.
    pub(super) fn absence_counts(&self, seconds: u32, now: Millis) -> bool {
        !self.stopped && self.servable_since + Millis::from(seconds) * 1000 <= now
    }

    /// Whether a missed turn is over.
    pub(super) fn is_missed_over(&self, missed: Missed, now: Millis) -> bool {
        missed.until <= now && self.absence_counts(self.item.policy.missed_keep_seconds, now)
    }

    /// How many more may be inside. An entry given back keeps its slot while its pass is valid.
    pub(super) fn room(&self, now: Millis) -> u32 {
        let leftover = self.leftover.values().filter(|expires_at| **expires_at > now).count();
        let inside = self.entered.len() + leftover as u64;
        let inside = u32::try_from(inside).unwrap_or(u32::MAX);
        let policy = &self.item.policy;
        let capacity = policy.max_active.map_or(u32::MAX, |max| max.saturating_sub(inside));
        let stock = if policy.admit_up_to_stock { self.item.stock } else { u32::MAX };
        capacity.min(stock.saturating_sub(inside))
    }

    /// Ends a ticket that is nowhere any more.
    pub(super) fn end(
        &mut self,
        user: UserId,
        number: Number,
        reason: EndReason,
        at: Millis,
        written: &mut Written,
    ) {
        let from_line = matches!(reason, EndReason::Abandoned | EndReason::Replaced);
        self.end_ticket(user, number, reason, from_line, at, written);
    }

    /// Ends the ticket of a user who left the line before being admitted.
    pub(super) fn end_left(
        &mut self,
        user: UserId,
        number: Number,
        at: Millis,
        written: &mut Written,
    ) {
        self.end_ticket(user, number, EndReason::Left, true, at, written);
    }

    fn end_ticket(
        &mut self,
        user: UserId,
        number: Number,
        reason: EndReason,
        from_line: bool,
        at: Millis,
        written: &mut Written,
    ) {
        self.totals.end(reason);
        let early = from_line && self.may_forget_early(number, at);
        let earlier = if early { CLOSED_KEEP_MS - WAITING_END_KEEP_MS } else { 0 };
        self.remember_end(number, reason, at.saturating_sub(earlier));
        written.closed.push(LineEvent::Closed { user, number, at, reason });
    }

    /// Lets a person in who is nowhere any more.
    pub(super) fn enter(
        &mut self,
        user: UserId,
        number: Number,
        at: Millis,
        written: &mut Written,
    ) {
        let expires_at = at + Millis::from(self.item.policy.pass_ttl_seconds) * 1000;
        self.enter_until(user, number, at, expires_at, written);
    }

    pub(super) fn enter_until(
        &mut self,
        user: UserId,
        number: Number,
        at: Millis,
        expires_at: Millis,
        written: &mut Written,
    ) {
        self.totals.admitted += 1;
        self.entered.insert(user.clone(), Entry { number, at, expires_at });
        written.activated.push(LineEvent::Activated { user, number, at, expires_at });
    }

    /// Takes a person out of the line; a gap in its middle is written down.
    pub(super) fn depart(&mut self, user: &UserId) {
        let Some(number) = self.waiting.remove(user) else {
            return;
        };
        self.leave_below(number);
        if number > self.base && self.front() < number {
            self.changes.push_back(Change::Departed(number));
            self.gone.insert(number);
        }
    }

    /// A number below the base that does not wait any more is written down even at the front: one
    /// that is lower may still come back, so that the front says nothing about it.
    fn leave_below(&mut self, number: Number) {
        if number <= self.base {
            self.reclaimed.remove(number);
            self.changes.push_back(Change::Departed(number));
        }
    }

    /// Forgets changes that the front has passed, at most `limit`, oldest first.
    pub(super) fn forget_changes(&mut self, limit: usize) {
        let front = self.front();
        for _ in 0..limit {
            match self.changes.front() {
                Some(Change::Departed(last) | Change::Waits(_, last)) if *last < front => {
                    self.changes.pop_front()
                }
                _ => break,
            };
            self.changes_dropped += 1;
        }
        self.gone.forget_below(self.frontier());
    }

    pub(super) fn remember_end(&mut self, number: Number, reason: EndReason, at: Millis) {
        self.closed.insert(number, (reason, at));
    }

    /// How a number ended, as far as it is remembered.
    pub(super) fn ended(&self, number: Number) -> Option<EndReason> {
        self.closed.get(&number).map(|(reason, _)| *reason)
    }

    /// Forgets at most so many old ends, the oldest first, and says how many.
    pub(super) fn forget_closed(&mut self, now: Millis, most: usize) -> usize {
        let old = self.closed.iter().filter(|(_, (_, at))| *at + CLOSED_KEEP_MS <= now);
        let mut old: Vec<_> = old.map(|(number, (_, at))| (*at, *number)).collect();
        old.sort_unstable();
        old.truncate(most);
        old.iter().for_each(|(_, number)| {
            self.closed.remove(number);
        });
        old.len()
    }

    /// Forgets at most so many slots whose pass has expired, the oldest first.
    pub(super) fn forget_leftover(&mut self, now: Millis, most: usize) {
        let expired = self.leftover.iter().filter(|(_, expires_at)| **expires_at <= now);
        let mut expired: Vec<_> = expired.map(|(number, at)| (*at, *number)).collect();
        expired.sort_unstable();
        expired.truncate(most);
        expired.iter().for_each(|(_, number)| {
            self.leftover.remove(number);
        });
    }

    /// Notes the first number given in a slice of time.
    pub(super) fn born(&mut self, first: Number, now: Millis) {
        let slice = slice_of(now);
        if self.births.last().is_none_or(|(last, _)| *last < slice) {
            self.births.insert((slice, first));
            let oldest = slice.saturating_sub(crate::SLICES_KEPT);
            self.births.retain(|(slice, _)| *slice >= oldest);
        }
    }

    pub(super) fn mark_page(&mut self, page: &SeenPage, now: Millis) {
        let slice = slice_of(now);
        self.seen.entry((slice, page.page)).or_insert_with(|| SeenPage::new(page.page)).merge(page);
        let oldest = slice.saturating_sub(crate::SLICES_KEPT);
        self.seen.retain(|(slice, _), _| *slice >= oldest);
    }

    pub(super) fn mark(&mut self, number: Number, now: Millis) {
        SeenPage::of([number]).iter().for_each(|page| self.mark_page(page, now));
    }

    /// The first number given within the last `seconds`; it and all later ones count as seen.
    pub(super) fn fresh_from(&self, seconds: u32, now: Millis) -> Number {
        let oldest = (oldest_slice(now, seconds), Number(0));
        self.births.range(oldest..).next().map_or(Number::MAX, |(_, first)| *first)
    }

    /// Whether a number was seen within the last `seconds`. One slice of the future counts too:
    /// pods' clocks may be ahead of the leader's.
    pub(super) fn seen(&self, number: Number, seconds: u32, now: Millis) -> bool {
        let page = number.0 / PAGE_NUMBERS;
        number >= self.fresh_from(seconds, now)
            || (oldest_slice(now, seconds)..=slice_of(now) + 1)
                .any(|slice| self.seen.get(&(slice, page)).is_some_and(|seen| seen.has(number)))
    }

    /// Counts people who left the front of the line.
    pub(super) fn moved(&mut self, people: u32, now: Millis) {
        let bucket = Rate::bucket_of(now);
        *self.rate.entry(bucket).or_default() += people;
        if self.rate.len() as u64 > BUCKETS {
            self.rate.retain(|at, _| *at + BUCKETS >= bucket);
        }
        self.moves = Some(Moves::after(self.moves, people, now));
    }

    /// Sends everybody who waits away; people inside stay.
    pub(super) fn restart(&mut self) {
        self.totals.ended += self.waiting.len() + self.returning.len() + self.missed.len();
        (self.waiting, self.returning) = (Queue::default(), Queue::default());
        self.missed = Timed::default();
        self.changes_dropped += self.changes.len() as u64;
        self.changes.clear();
        (self.gone, self.reclaimed) = (Departed::new(self.base), Reclaimed::default());
        (self.item.recovering_until, self.item.behind_until) = (0, 0);
        self.births.clear();
        self.valid_from = self.tail.next();
    }

    /// Opens a line again after its item was taken out.
    pub(super) fn reopen(&mut self, run: u64, now: Millis) {
        self.base = Number::base_at(now).max(self.tail);
        self.tail = self.base;
        // A line nobody was ever in has sent nobody away: its item is read again after a loss.
        let sent_away = self.totals.joined > 0;
        self.valid_from = if sent_away { self.base.next() } else { Number(0) };
        (self.lost_from, self.lost_to, self.take_back_until) = (Number(0), self.base, 0);
        self.run = run;
        self.changes_dropped = 0;
        self.gone = Departed::new(self.base);
        self.removed = false;
        (self.stopped, self.servable_since) = (false, 0);
    }

    pub(super) fn is_active(&self) -> bool {
        let people = self.waiting.len() + self.returning.len();
        people + self.missed.len() + self.entered.len() > 0
            || self.through > 0
            || !self.changes.is_empty()
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            item: self.item.id.clone(),
            waiting: self.waiting.len(),
            returning: self.returning.len(),
            missed: self.missed.len(),
            entered: self.entered.len(),
            base: self.base,
            frontier: self.front(),
            tail: self.tail,
            totals: self.totals,
        }
    }

    pub(super) fn snapshot(&self, cursor: DepartedCursor) -> LineSnapshot {
        let end = self.changes_dropped + self.changes.len() as u64;
        let known = cursor.base == self.base.0 && cursor.read <= end;
        let from = if known { cursor.read.max(self.changes_dropped) } else { self.changes_dropped };
        let skip = (from - self.changes_dropped) as usize;
        let page = self.changes.iter().skip(skip).take(DEPARTED_PAGE);
        let (mut departed, mut reclaimed) = (Vec::new(), Vec::new());
        for change in page {
            match *change {
                Change::Departed(number) => departed.push(number),
                Change::Waits(first, last) => reclaimed.push((first, last)),
            }
        }
        let read = from + (departed.len() + reclaimed.len()) as u64;
        LineSnapshot {
            item: self.item.clone(),
            base: self.base,
            valid_from: self.valid_from,
            front: self.front(),
            frontier: self.frontier(),
            tail: self.tail,
            waiting: self.waiting.len(),
            returning: self.returning.len(),
            entered: self.entered.len(),
            ended: self.totals.ended,
            rate: Rate::new(self.rate.iter().map(|(at, people)| (*at, *people)).collect())
                .with_moves(self.moves),
            departed,
            reclaimed,
            cursor: DepartedCursor { base: self.base.0, read },
            more: read < end,
        }
    }
}
