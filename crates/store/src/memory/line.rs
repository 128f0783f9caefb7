use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use daegi_domain::liveness::{PAGE_NUMBERS, oldest_slice, slice_of};
use daegi_domain::rate::BUCKETS;
use daegi_domain::{
    Departed, EndReason, Item, LineEvent, LogPosition, Millis, Number, Rate, SeenPage, UserId, line,
};

use super::outbox::Written;
use crate::model::{Counts, DepartedCursor, LineSnapshot, Totals};
use crate::{CLOSED_KEEP_MS, DEPARTED_PAGE};

/// One item's line with everybody in it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) item: Item,
    /// The item was taken out; kept for its version and for the people still inside.
    pub(super) removed: bool,
    /// Where the last news that counted was read.
    pub(super) read: Option<LogPosition>,
    pub(super) base: Number,
    pub(super) tail: Number,
    pub(super) valid_from: Number,
    pub(super) waiting: Queue,
    pub(super) returning: Queue,
    pub(super) missed: Timed<Missed>,
    pub(super) entered: Timed<Entry>,
    /// How many passed through since the leader's last tick.
    pub(super) through: u32,
    pub(super) totals: Totals,
    departed: VecDeque<Number>,
    /// How many departed numbers were forgotten from the head of the list.
    departed_dropped: u64,
    /// The same numbers as a set, to count a position.
    gone: Departed,
    closed: BTreeMap<Number, (EndReason, Millis)>,
    /// (slice, first number given in it): who joined within the last slices is alive.
    births: BTreeSet<(u64, Number)>,
    seen: BTreeMap<(u64, u64), SeenPage>,
    rate: BTreeMap<u64, u32>,
}

/// People in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Queue {
    by_number: BTreeMap<Number, UserId>,
    by_user: HashMap<UserId, Number>,
}

/// People with a deadline.
#[derive(Debug)]
pub(super) struct Timed<T> {
    by_user: HashMap<UserId, T>,
    by_time: BTreeSet<(Millis, UserId)>,
}

/// A person who missed their turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Missed {
    pub(super) number: Number,
    pub(super) until: Millis,
}

/// A person inside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) number: Number,
    pub(super) at: Millis,
    pub(super) expires_at: Millis,
}

impl Line {
    pub(super) fn new(item: Item, base: Number) -> Self {
        Self {
            item,
            removed: false,
            read: None,
            base,
            tail: base,
            valid_from: base.next(),
            waiting: Queue::default(),
            returning: Queue::default(),
            missed: Timed::default(),
            entered: Timed::default(),
            through: 0,
            totals: Totals::default(),
            departed: VecDeque::new(),
            departed_dropped: 0,
            gone: Departed::new(base),
            closed: BTreeMap::new(),
            births: BTreeSet::new(),
            seen: BTreeMap::new(),
            rate: BTreeMap::new(),
        }
    }

    /// The item after a change.
    pub(super) fn touched(&mut self) -> Item {
        self.item.revision += 1;
        self.item.clone()
    }

    /// The lowest number still waiting.
    pub(super) fn frontier(&self) -> Number {
        self.waiting.first().unwrap_or(self.tail.next())
    }

    /// The place of a number that waits.
    pub(super) fn position(&self, number: Number) -> u64 {
        line::position(self.returning.len(), self.frontier(), &self.gone, number)
    }

    /// How many more may be inside.
    pub(super) fn room(&self) -> u32 {
        let inside = u32::try_from(self.entered.len()).unwrap_or(u32::MAX);
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
        self.totals.end(reason);
        self.closed.insert(number, (reason, at));
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
        self.totals.admitted += 1;
        self.entered.insert(expires_at, user.clone(), Entry { number, at, expires_at });
        written.activated.push(LineEvent::Activated { user, number, at, expires_at });
    }

    /// Takes a person out of the line; a gap in its middle is written down.
    pub(super) fn depart(&mut self, user: &UserId) {
        let Some(number) = self.waiting.remove(user) else {
            return;
        };
        if self.waiting.first().is_some_and(|first| first < number) {
            self.departed.push_back(number);
            self.gone.insert(number);
        }
    }

    /// Forgets departed numbers that the frontier has passed, at most `limit`, oldest first.
    pub(super) fn forget_departed(&mut self, limit: usize) {
        let frontier = self.frontier();
        for _ in 0..limit {
            match self.departed.front() {
                Some(number) if *number < frontier => self.departed.pop_front(),
                _ => break,
            };
            self.departed_dropped += 1;
        }
        self.gone.forget_below(frontier);
    }

    pub(super) fn has_departed(&self) -> bool {
        !self.departed.is_empty()
    }

    /// How a number ended, as far as it is remembered.
    pub(super) fn ended(&self, number: Number) -> Option<EndReason> {
        self.closed.get(&number).map(|(reason, _)| *reason)
    }

    pub(super) fn forget_closed(&mut self, now: Millis) {
        self.closed.retain(|_, (_, at)| *at + CLOSED_KEEP_MS > now);
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
    }

    /// Sends everybody who waits away; people inside stay.
    pub(super) fn restart(&mut self) {
        self.totals.ended += self.waiting.len() + self.returning.len() + self.missed.len();
        (self.waiting, self.returning) = (Queue::default(), Queue::default());
        self.missed = Timed::default();
        self.departed_dropped += self.departed.len() as u64;
        self.departed.clear();
        self.gone = Departed::new(self.base);
        self.births.clear();
        self.valid_from = self.tail.next();
    }

    /// Opens a line again after its item was taken out.
    pub(super) fn reopen(&mut self, base: Number) {
        self.base = base.max(self.tail);
        self.tail = self.base;
        self.valid_from = self.base.next();
        self.departed_dropped = 0;
        self.gone = Departed::new(self.base);
        self.removed = false;
    }

    pub(super) fn is_active(&self) -> bool {
        let people = self.waiting.len() + self.returning.len();
        people + self.missed.len() + self.entered.len() > 0
            || self.through > 0
            || self.has_departed()
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            item: self.item.id.clone(),
            waiting: self.waiting.len(),
            returning: self.returning.len(),
            missed: self.missed.len(),
            entered: self.entered.len(),
            base: self.base,
            frontier: self.frontier(),
            tail: self.tail,
            totals: self.totals,
        }
    }

    pub(super) fn snapshot(&self, cursor: DepartedCursor) -> LineSnapshot {
        let end = self.departed_dropped + self.departed.len() as u64;
        let known = cursor.base == self.base.0 && cursor.read <= end;
        let from =
            if known { cursor.read.max(self.departed_dropped) } else { self.departed_dropped };
        let skip = (from - self.departed_dropped) as usize;
        let departed: Vec<Number> =
            self.departed.iter().skip(skip).take(DEPARTED_PAGE).copied().collect();
        let read = from + departed.len() as u64;
        LineSnapshot {
            item: self.item.clone(),
            base: self.base,
            valid_from: self.valid_from,
            frontier: self.frontier(),
            tail: self.tail,
            waiting: self.waiting.len(),
            returning: self.returning.len(),
            entered: self.entered.len(),
            rate: Rate::new(self.rate.iter().map(|(at, people)| (*at, *people)).collect()),
            departed,
            cursor: DepartedCursor { base: self.base.0, read },
            more: read < end,
        }
    }
}

impl Queue {
    pub(super) fn len(&self) -> u64 {
        self.by_number.len() as u64
    }

    pub(super) fn first(&self) -> Option<Number> {
        self.by_number.keys().next().copied()
    }

    pub(super) fn number_of(&self, user: &UserId) -> Option<Number> {
        self.by_user.get(user).copied()
    }

    pub(super) fn add(&mut self, user: UserId, number: Number) {
        self.by_number.insert(number, user.clone());
        self.by_user.insert(user, number);
    }

    pub(super) fn remove(&mut self, user: &UserId) -> Option<Number> {
        let number = self.by_user.remove(user)?;
        self.by_number.remove(&number);
        Some(number)
    }

    pub(super) fn pop(&mut self) -> Option<(UserId, Number)> {
        let (number, user) = self.by_number.pop_first()?;
        self.by_user.remove(&user);
        Some((user, number))
    }

    /// How many stand before this number.
    pub(super) fn rank(&self, number: Number) -> u64 {
        self.by_number.range(..number).count() as u64
    }

    /// Up to `limit` people from this number on.
    pub(super) fn from(&self, number: Number, limit: usize) -> Vec<(UserId, Number)> {
        let range = self.by_number.range(number..).take(limit);
        range.map(|(number, user)| (user.clone(), *number)).collect()
    }
}

impl<T: Copy> Timed<T> {
    pub(super) fn len(&self) -> u64 {
        self.by_user.len() as u64
    }

    pub(super) fn get(&self, user: &UserId) -> Option<T> {
        self.by_user.get(user).copied()
    }

    pub(super) fn insert(&mut self, until: Millis, user: UserId, what: T) {
        self.by_time.insert((until, user.clone()));
        self.by_user.insert(user, what);
    }

    pub(super) fn remove(&mut self, until: Millis, user: &UserId) {
        self.by_time.remove(&(until, user.clone()));
        self.by_user.remove(user);
    }

    /// Takes the earliest whose time is up, at most `limit`, by time and then by user.
    pub(super) fn due(&mut self, now: Millis, limit: u32) -> Vec<(UserId, T)> {
        let due: Vec<_> = self
            .by_time
            .iter()
            .take_while(|(until, _)| *until <= now)
            .take(limit as usize)
            .cloned()
            .collect();
        due.into_iter()
            .filter_map(|(until, user)| {
                self.by_time.remove(&(until, user.clone()));
                self.by_user.remove(&user).map(|what| (user, what))
            })
            .collect()
    }
}

impl<T> Default for Timed<T> {
    fn default() -> Self {
        Self { by_user: HashMap::new(), by_time: BTreeSet::new() }
    }
}
