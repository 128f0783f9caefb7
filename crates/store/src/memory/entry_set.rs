use std::collections::{BTreeSet, HashMap};

use daegi_domain::{Millis, Number, UserId};

/// An admitted ticket that has not ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) number: Number,
    pub(super) admitted_at: Millis,
    pub(super) expires_at: Millis,
}

/// The entries of a line. Each expires at its `expires_at`.
#[derive(Debug, Clone, Default)]
pub(super) struct EntrySet {
    by_user: HashMap<UserId, Entry>,
    by_expiry: BTreeSet<(Millis, Number, UserId)>,
}

/// The entries that expired.
#[derive(Debug, Default)]
pub(super) struct DueEntries {
    pub(super) entries: Vec<(UserId, Entry)>,
    /// Whether more entries have expired.
    pub(super) more: bool,
}

impl EntrySet {
    pub(super) fn len(&self) -> u64 {
        self.by_user.len() as u64
    }

    pub(super) fn get(&self, user: &UserId) -> Option<Entry> {
        self.by_user.get(user).copied()
    }

    /// Returns the user's entry if it belongs to the ticket with this number.
    pub(super) fn get_number(&self, user: &UserId, number: Number) -> Option<Entry> {
        self.get(user).filter(|entry| entry.number == number)
    }

    pub(super) fn insert(&mut self, user: UserId, entry: Entry) {
        self.remove(&user);
        self.by_expiry.insert((entry.expires_at, entry.number, user.clone()));
        self.by_user.insert(user, entry);
    }

    pub(super) fn remove(&mut self, user: &UserId) {
        if let Some(entry) = self.by_user.remove(user) {
            self.by_expiry.remove(&(entry.expires_at, entry.number, user.clone()));
        }
    }

    /// Removes and returns at most `limit` entries that expired, the earliest first.
    pub(super) fn due(&mut self, now: Millis, limit: u32) -> DueEntries {
        let mut due = DueEntries::default();
        while let Some((expires_at, _, user)) = self.by_expiry.first().cloned() {
            if expires_at > now {
                break;
            }
            if due.entries.len() == limit as usize {
                due.more = true;
                break;
            }
            if let Some(entry) = self.get(&user) {
                self.remove(&user);
                due.entries.push((user, entry));
            }
        }
        due
    }
}
