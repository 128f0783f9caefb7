use std::collections::{BTreeMap, BTreeSet, HashMap};

use daegi_domain::{Millis, Number, UserId};

/// People in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    by_number: BTreeMap<Number, UserId>,
    by_user: HashMap<UserId, Number>,
}

/// People with a deadline.
#[derive(Debug, Clone)]
pub(super) struct Timed<T> {
    by_user: HashMap<UserId, T>,
    by_time: BTreeSet<(Millis, UserId)>,
}

impl Queue {
    pub(super) fn len(&self) -> u64 {
        self.by_number.len() as u64
    }

    /// The lowest number from this one on.
    pub(super) fn first_from(&self, number: Number) -> Option<Number> {
        self.by_number.range(number..).next().map(|(number, _)| *number)
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = Number> + '_ {
        self.by_number.keys().copied()
    }

    /// Whether anybody has this number.
    pub(super) fn has(&self, number: Number) -> bool {
        self.by_number.contains_key(&number)
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
