use std::collections::{BTreeMap, BTreeSet, HashMap};

use daegi_domain::draw::Cohort;
use daegi_domain::{Millis, Number, Rank, UserId};

/// Tickets in the order in which they are served: by number, and those of a drawn cohort by rank.
#[derive(Debug, Clone, Default)]
pub(super) struct RankQueue {
    by_number: BTreeMap<Number, UserId>,
    by_user: HashMap<UserId, Number>,
    cohort: Option<Cohort>,
    /// The waiting tickets of the cohort. The rank of any other ticket is its number.
    drawn: BTreeMap<Rank, Number>,
}

/// Users with a deadline.
#[derive(Debug, Clone)]
pub(super) struct DeadlineQueue<T> {
    by_user: HashMap<UserId, T>,
    by_deadline: BTreeSet<(Millis, UserId)>,
}

impl RankQueue {
    pub(super) fn len(&self) -> u64 {
        self.by_number.len() as u64
    }

    /// Serves the tickets of this cohort by rank from now on.
    pub(super) fn draw(&mut self, cohort: Cohort) {
        let numbers = cohort.numbers();
        let waiting = self.by_number.range(Number(numbers.start)..Number(numbers.end));
        self.drawn = waiting.map(|(number, _)| (cohort.rank(*number), *number)).collect();
        self.cohort = Some(cohort);
    }

    /// Returns the rank of a ticket.
    pub(super) fn rank_of(&self, number: Number) -> Rank {
        self.cohort.as_ref().map_or(number.rank(), |cohort| cohort.rank(number))
    }

    /// Returns whether a ticket of the drawn cohort waits.
    pub(super) fn has_drawn(&self) -> bool {
        !self.drawn.is_empty()
    }

    /// Returns the lowest rank that is at least `rank`.
    pub(super) fn first_from(&self, rank: Rank) -> Option<Rank> {
        let from = rank.number();
        let Some(cohort) = &self.cohort else {
            return self.first_number(from, Number::MAX).map(Number::rank);
        };
        let (first, end) = (Number(cohort.numbers().start), Number(cohort.numbers().end));
        let before = self.first_number(from, first).map(Number::rank);
        before
            .or_else(|| self.drawn.range(rank..).next().map(|(rank, _)| *rank))
            .or_else(|| self.first_number(from.max(end), Number::MAX).map(Number::rank))
    }

    /// Returns the lowest waiting number of `from..end`.
    fn first_number(&self, from: Number, end: Number) -> Option<Number> {
        let mut numbers =
            (from < end).then(|| self.by_number.range(from..end)).into_iter().flatten();
        numbers.next().map(|(number, _)| *number)
    }

    /// Returns the lowest number that is at least `from`.
    pub(super) fn first_number_from(&self, from: Number) -> Option<Number> {
        self.first_number(from, Number::MAX)
    }

    pub(super) fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        self.by_number.keys().map(|number| self.rank_of(*number))
    }

    pub(super) fn contains(&self, number: Number) -> bool {
        self.by_number.contains_key(&number)
    }

    pub(super) fn number_of(&self, user: &UserId) -> Option<Number> {
        self.by_user.get(user).copied()
    }

    /// Returns whether the user is queued with this number.
    pub(super) fn holds(&self, user: &UserId, number: Number) -> bool {
        self.number_of(user) == Some(number)
    }

    pub(super) fn insert(&mut self, user: UserId, number: Number) {
        if let Some(cohort) = self.cohort.as_ref().filter(|cohort| cohort.contains(number)) {
            self.drawn.insert(cohort.rank(number), number);
        }
        self.by_number.insert(number, user.clone());
        self.by_user.insert(user, number);
    }

    pub(super) fn remove(&mut self, user: &UserId) -> Option<Number> {
        let number = self.by_user.remove(user)?;
        self.by_number.remove(&number);
        self.drawn.remove(&self.rank_of(number));
        Some(number)
    }

    pub(super) fn pop(&mut self) -> Option<(UserId, Number)> {
        let rank = self.first_from(Rank(0))?;
        let number = self.drawn.remove(&rank).unwrap_or(rank.number());
        let user = self.by_number.remove(&number)?;
        self.by_user.remove(&user);
        Some((user, number))
    }

    /// Counts the tickets with a lower number.
    pub(super) fn count_below(&self, number: Number) -> u64 {
        self.by_number.range(..number).count() as u64
    }

    /// Returns at most `limit` tickets whose number is at least `number`, by number.
    pub(super) fn from(&self, number: Number, limit: usize) -> Vec<(UserId, Number)> {
        let tickets = self.by_number.range(number..).take(limit);
        tickets.map(|(number, user)| (user.clone(), *number)).collect()
    }
}

impl<T: Copy> DeadlineQueue<T> {
    pub(super) fn len(&self) -> u64 {
        self.by_user.len() as u64
    }

    pub(super) fn get(&self, user: &UserId) -> Option<T> {
        self.by_user.get(user).copied()
    }

    pub(super) fn insert(&mut self, deadline: Millis, user: UserId, value: T) {
        self.by_deadline.insert((deadline, user.clone()));
        self.by_user.insert(user, value);
    }

    pub(super) fn remove(&mut self, deadline: Millis, user: &UserId) {
        self.by_deadline.remove(&(deadline, user.clone()));
        self.by_user.remove(user);
    }

    /// Removes and returns at most `limit` users whose deadline passed, by deadline and then by user.
    pub(super) fn due(&mut self, now: Millis, limit: u32) -> Vec<(UserId, T)> {
        let due: Vec<_> = self
            .by_deadline
            .iter()
            .take_while(|(deadline, _)| *deadline <= now)
            .take(limit as usize)
            .cloned()
            .collect();
        due.into_iter()
            .filter_map(|(deadline, user)| {
                self.by_deadline.remove(&(deadline, user.clone()));
                self.by_user.remove(&user).map(|value| (user, value))
            })
            .collect()
    }
}

impl<T> Default for DeadlineQueue<T> {
    fn default() -> Self {
        Self { by_user: HashMap::new(), by_deadline: BTreeSet::new() }
    }
}
