use std::collections::{BTreeMap, BTreeSet, HashMap};

use daegi_domain::{Millis, Number, Rank, UserId};

/// Tickets in the order in which they are served.
#[derive(Debug, Clone, Default)]
pub(super) struct RankQueue {
    by_rank: BTreeMap<Rank, (UserId, Number)>,
    by_user: HashMap<UserId, Number>,
}

/// Users with a deadline.
#[derive(Debug, Clone)]
pub(super) struct DeadlineQueue<T> {
    by_user: HashMap<UserId, T>,
    by_deadline: BTreeSet<(Millis, UserId)>,
}

impl RankQueue {
    pub(super) fn len(&self) -> u64 {
        self.by_rank.len() as u64
    }

    /// Returns the lowest rank that is at least `rank`.
    pub(super) fn first_from(&self, rank: Rank) -> Option<Rank> {
        self.by_rank.range(rank..).next().map(|(rank, _)| *rank)
    }

    pub(super) fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        self.by_rank.keys().copied()
    }

    pub(super) fn contains(&self, number: Number) -> bool {
        self.by_rank.contains_key(&number.rank())
    }

    pub(super) fn number_of(&self, user: &UserId) -> Option<Number> {
        self.by_user.get(user).copied()
    }

    /// Returns whether the user is queued with this number.
    pub(super) fn holds(&self, user: &UserId, number: Number) -> bool {
        self.number_of(user) == Some(number)
    }

    pub(super) fn insert(&mut self, user: UserId, number: Number) {
        self.by_rank.insert(number.rank(), (user.clone(), number));
        self.by_user.insert(user, number);
    }

    pub(super) fn remove(&mut self, user: &UserId) -> Option<Number> {
        let number = self.by_user.remove(user)?;
        self.by_rank.remove(&number.rank());
        Some(number)
    }

    pub(super) fn pop(&mut self) -> Option<(UserId, Number)> {
        let (_, (user, number)) = self.by_rank.pop_first()?;
        self.by_user.remove(&user);
        Some((user, number))
    }

    /// Counts the tickets with a lower rank.
    pub(super) fn count_below(&self, rank: Rank) -> u64 {
        self.by_rank.range(..rank).count() as u64
    }

    /// Returns at most `limit` tickets whose rank is at least `rank`.
    pub(super) fn from(&self, rank: Rank, limit: usize) -> Vec<(UserId, Number)> {
        self.by_rank.range(rank..).take(limit).map(|(_, ticket)| ticket.clone()).collect()
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
