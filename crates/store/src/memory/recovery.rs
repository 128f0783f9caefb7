//! What a line does about numbers it lost. A ticket whose token verified is proof that the store
//! gave its number once; see `docs/adr/009-the-line-re-forms.md`.

use daegi_domain::{Departed, EndReason, MAX_CLOCK_LAG_MS, Millis, Number, Reclaimed, UserId};

use super::line::{Change, Line};
use super::outbox::Written;
use super::people;
use crate::model::{Closing, LeaveLimit, Place, Reentry, Standing};
use crate::{CLOSED_KEEP_MS, LEAP, TAKE_BACK_MS};

/// Which store this is, and how long its lines wait for people they lost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Store {
    /// Another one after every loss. In Redis this is the server.
    pub(super) run: u64,
    pub(super) hold: Millis,
    /// Until when a loss of the partition lets numbers be reclaimed.
    pub(super) loss_until: Millis,
    pub(super) leave_limit: LeaveLimit,
}

impl Line {
    /// Whether this number may have been given before the store lost data.
    fn may_be_lost(&self, number: Number) -> bool {
        (self.lost_from..=self.lost_to).contains(&number)
    }

    /// Whether it is early enough after a loss to take people back.
    fn takes_back(&self, store: Store, now: Millis) -> bool {
        now < self.take_back_until.max(store.loss_until)
    }

    /// Whether a process saw that the store lost data: another one goes on with the line, or the
    /// partition's loss is recorded.
    fn has_evidence(&self, store: Store, now: Millis) -> bool {
        now < store.loss_until || self.run != store.run
    }

    /// Whether a further loss widens the range of lost numbers instead of starting a new one: at
    /// least half of the reclaim window remains. A loss of the partition counts only for a line that
    /// began around that time, because the ends of all numbers in the range must still be remembered.
    fn widens(&self, store: Store, now: Millis) -> bool {
        let soon = now + TAKE_BACK_MS / 2;
        let remembered_until = self.lost_to.0 / 64 + CLOSED_KEEP_MS;
        soon < self.take_back_until
            || (soon < store.loss_until && store.loss_until <= remembered_until)
    }

    /// Whether the end of this number may be forgotten after [`crate::WAITING_END_KEEP_MS`]. A
    /// forgotten end must never be reclaimed, so that all numbers keep [`CLOSED_KEEP_MS`] that are in
    /// a lost range or may get into one: up to the base, while a reclaim window is open, and as long
    /// as a loss may still widen the range that begins with the line. Later losses begin above all
    /// numbers given before.
    pub(super) fn may_forget_early(&self, number: Number, now: Millis) -> bool {
        let widens_until = self.lost_to.0 / 64 + CLOSED_KEEP_MS - TAKE_BACK_MS / 2;
        number > self.base && now >= self.take_back_until.max(widens_until)
    }

    /// Whether this number was lost and its holder is nowhere.
    pub(super) fn has_lost(
        &self,
        user: &UserId,
        number: Number,
        store: Store,
        now: Millis,
    ) -> bool {
        number >= self.valid_from
            && self.may_be_lost(number)
            && self.takes_back(store, now)
            && self.ended(number).is_none()
            && !self.holds(user)
            && self.waiting.number_of(user).is_none()
            && !self.waiting.has(number)
    }

    /// A line that another store has gone on with may have lost the newest numbers: what it gives
    /// next must be behind them.
    pub(super) fn notice_loss(&mut self, store: Store, now: Millis) {
        if self.run != store.run {
            self.lift(self.tail, store, now);
        }
    }

    /// Goes on behind every number that may have been given, `given` among them.
    pub(super) fn lift(&mut self, given: Number, store: Store, now: Millis) {
        if !self.widens(store, now) {
            (self.lost_from, self.take_back_until) = (self.tail.next(), now + TAKE_BACK_MS);
        }
        // Who was taken back already may be lost again: everybody has the whole time anew.
        let recovers = self.item.recovering_until > now;
        self.item.recovering_until = if recovers { now + store.hold } else { 0 };
        self.move_base(Number::base_at(now).max(Number(self.tail.max(given).0 + LEAP)));
        self.lost_to = self.base;
        self.item.behind_until = now + store.hold;
        self.run = store.run;
    }

    /// Continues the counter at the clock if it is more than [`MAX_CLOCK_LAG_MS`] behind, so that a
    /// number tells when it was given. Nothing was lost: the lost range stays as it is.
    pub(super) fn follow_clock(&mut self, now: Millis) {
        let base = Number::base_at(now);
        if base.0.saturating_sub(self.tail.0) > MAX_CLOCK_LAG_MS * 64 {
            self.move_base(base);
        }
    }

    /// Continues the counter at `base`. All who wait are below the base afterwards.
    fn move_base(&mut self, base: Number) {
        let frontier = self.frontier();
        if frontier <= self.tail {
            self.changes.push_front(Change::Waits(frontier, self.tail));
        }
        self.reclaimed = Reclaimed::default();
        for number in self.waiting.numbers() {
            self.reclaimed.add(number, number);
        }
        (self.base, self.tail, self.gone) = (base, base, Departed::new(base));
    }

    /// Remembers that a ticket ended before the store lost data. A number that was reclaimed meanwhile
    /// and waits leaves the line without an event; a ticket that was admitted again stays as it is.
    pub(super) fn note_ended(
        &mut self,
        user: &UserId,
        number: Number,
        reason: EndReason,
        now: Millis,
    ) {
        let is_it = |held: Option<Number>| held == Some(number);
        if self.ended(number).is_some() || is_it(self.entered.get(user).map(|entry| entry.number)) {
            return;
        }
        self.remember_end(number, reason, now);
        let missed = self.missed.get(user).filter(|missed| missed.number == number);
        if is_it(self.waiting.number_of(user)) {
            self.depart(user);
        } else if is_it(self.returning.number_of(user)) {
            self.returning.remove(user);
        } else if let Some(missed) = missed {
            self.missed.remove(missed.until, user);
        } else {
            return;
        }
        self.totals.end(reason);
    }

    /// Whether a person is somewhere where they need no number of old.
    fn holds(&self, user: &UserId) -> bool {
        self.entered.get(user).is_some()
            || self.returning.number_of(user).is_some()
            || self.missed.get(user).is_some()
    }

    /// The first who is taken back begins the time in which nobody is let in.
    fn hold(&mut self, store: Store, now: Millis) {
        if self.item.recovering_until == 0 {
            self.item.recovering_until = now + store.hold;
        }
    }
}

/// What becomes of a genuine number that is nowhere and whose end nobody remembers.
pub(super) fn unknown(
    line: &mut Line,
    user: &UserId,
    number: Number,
    store: Store,
    now: Millis,
    written: &mut Written,
) -> Standing {
    if number > line.tail {
        if !line.has_evidence(store, now) {
            return Standing::Restarted;
        }
        line.lift(number, store, now);
    }
    if !line.may_be_lost(number) {
        // So long ago that how it ended is forgotten.
        return Standing::Ended(EndReason::Expired);
    }
    if !line.takes_back(store, now) || line.waiting.has(number) {
        return Standing::Restarted;
    }
    let waits_at = line.waiting.number_of(user);
    if line.holds(user) || waits_at.is_some_and(|other| other < number) {
        return Standing::Ended(EndReason::Replaced);
    }
    if let Some(newer) = waits_at {
        line.depart(user);
        line.end(user.clone(), newer, EndReason::Replaced, now, written);
    }
    take_back(line, user, number, store, now);
    Standing::At(people::place_of(line, user, number))
}

fn take_back(line: &mut Line, user: &UserId, number: Number, store: Store, now: Millis) {
    line.waiting.add(user.clone(), number);
    line.reclaimed.add(number, number);
    line.changes.push_back(Change::Waits(number, number));
    line.totals.joined += 1;
    line.mark(number, now);
    line.hold(store, now);
}

/// Ends a ticket that the line lost, so that nobody takes it back later.
pub(super) fn end_lost(
    line: &mut Line,
    user: &UserId,
    number: Number,
    reason: EndReason,
    store: Store,
    now: Millis,
    written: &mut Written,
) -> Closing {
    if !line.removed && number > line.tail && line.has_evidence(store, now) {
        line.lift(number, store, now);
    }
    if line.removed || !line.has_lost(user, number, store, now) {
        return Closing::Over;
    }
    line.totals.joined += 1;
    line.end(user.clone(), number, reason, now, written);
    Closing::Done
}

/// Lets a person in again whose pass is proof that they were let in, if the line lost that.
pub(super) fn reenter(
    line: &mut Line,
    entry: &Reentry,
    store: Store,
    now: Millis,
    written: &mut Written,
) -> Standing {
    let Reentry { user, number, .. } = entry;
    let is_it = |held: Option<Number>| held == Some(*number);
    if line.entered.get(user).is_some() || line.removed || *number < line.valid_from {
        return people::resolve(line, &(user.clone(), *number), store, now, written);
    }
    if *number > line.tail && line.has_evidence(store, now) {
        line.lift(*number, store, now);
    }
    let missed = line.missed.get(user);
    if is_it(line.waiting.number_of(user)) {
        line.depart(user);
    } else if is_it(line.returning.number_of(user)) {
        line.returning.remove(user);
    } else if let Some(missed) = missed.filter(|missed| missed.number == *number) {
        line.missed.remove(missed.until, user);
    } else if line.has_lost(user, *number, store, now) {
        line.totals.joined += 1;
    } else {
        return people::resolve(line, &(user.clone(), *number), store, now, written);
    }
    line.enter_until(user.clone(), *number, entry.at, entry.expires_at, written);
    Standing::At(Place::Entered { at: entry.at, expires_at: entry.expires_at })
}
