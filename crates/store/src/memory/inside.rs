use std::collections::{BTreeSet, HashMap};

use daegi_domain::{LineEvent, Millis, Number, UserId};

use crate::CHUNK;

/// A person inside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) number: Number,
    pub(super) at: Millis,
    pub(super) expires_at: Millis,
}

/// People inside. Those who are let in by one step expire together, so that their time is kept once
/// for all of them. Who leaves stays in the group, and is passed over when its time has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Inside {
    by_user: HashMap<UserId, Entry>,
    groups: BTreeSet<(Millis, Vec<UserId>)>,
    /// The time of each group.
    times: HashMap<Vec<UserId>, Millis>,
}

/// What is over.
#[derive(Debug, Default)]
pub(super) struct Due {
    pub(super) entries: Vec<(UserId, Entry)>,
    /// How many people the groups held, with those who had left.
    pub(super) people: u32,
    /// Groups are left whose time is up.
    pub(super) more: bool,
}

impl Inside {
    pub(super) fn len(&self) -> u64 {
        self.by_user.len() as u64
    }

    pub(super) fn get(&self, user: &UserId) -> Option<Entry> {
        self.by_user.get(user).copied()
    }

    pub(super) fn insert(&mut self, user: UserId, entry: Entry) {
        self.by_user.insert(user, entry);
    }

    pub(super) fn remove(&mut self, user: &UserId) {
        self.by_user.remove(user);
    }

    /// Groups those who were let in by one step. A group of the very same people takes the place of an
    /// earlier one, which says nothing any more: all of them are inside anew.
    pub(super) fn group(&mut self, activated: &[LineEvent]) {
        let users = |event: &LineEvent| match event {
            LineEvent::Activated { user, expires_at, .. } => Some((user.clone(), *expires_at)),
            LineEvent::Closed { .. } => None,
        };
        let people: Vec<_> = activated.iter().filter_map(users).collect();
        for group in people.chunks(CHUNK as usize) {
            let users: Vec<_> = group.iter().map(|(user, _)| user.clone()).collect();
            let until = group[0].1;
            if let Some(earlier) = self.times.insert(users.clone(), until) {
                self.groups.remove(&(earlier, users.clone()));
            }
            self.groups.insert((until, users));
        }
    }

    /// Takes out whoever's time is up: by groups, the earliest first and then by name, as many as hold
    /// no more than `limit` people, which is at least one group.
    pub(super) fn due(&mut self, now: Millis, limit: u32) -> Due {
        let mut due = Due::default();
        while let Some((until, users)) = self.groups.first().filter(|(until, _)| *until <= now) {
            if due.people + users.len() as u32 > limit {
                due.more = true;
                break;
            }
            let group = (*until, users.clone());
            self.groups.remove(&group);
            self.times.remove(&group.1);
            due.people += group.1.len() as u32;
            due.entries.extend(group.1.into_iter().filter_map(|user| self.take_over(user, now)));
        }
        due
    }

    /// A person of a group may have left, or have been let in anew for longer.
    fn take_over(&mut self, user: UserId, now: Millis) -> Option<(UserId, Entry)> {
        self.by_user.get(&user).filter(|entry| entry.expires_at <= now)?;
        self.by_user.remove(&user).map(|entry| (user, entry))
    }

    /// Nobody is inside, so that groups say nothing any more.
    pub(super) fn forget_groups(&mut self) {
        self.groups.clear();
        self.times.clear();
    }
}
