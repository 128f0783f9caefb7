//! The users of one join call, without repetitions.

use std::collections::HashMap;

use daegi_domain::UserId;

use crate::types::JoinOutcome;

/// Each user once, in the order of the call, so that scripts need not look for repetitions.
pub(super) struct UniqueUsers<'a> {
    pub(super) users: Vec<&'a str>,
    /// The index of each request's user in `users`; empty if no user repeats.
    indices: Vec<usize>,
}

impl<'a> UniqueUsers<'a> {
    pub(super) fn new(users: &'a [UserId]) -> Self {
        let mut known = HashMap::with_capacity(users.len());
        let mut unique = Vec::with_capacity(users.len());
        let mut indices = Vec::with_capacity(users.len());
        for user in users {
            let index = *known.entry(user.as_str()).or_insert(unique.len());
            if index == unique.len() {
                unique.push(user.as_str());
            }
            indices.push(index);
        }
        if unique.len() == users.len() {
            indices.clear();
        }
        Self { users: unique, indices }
    }

    /// Returns one outcome per request. Only the first request of a user has a new ticket.
    pub(super) fn expand(&self, outcomes: Vec<JoinOutcome>) -> Vec<JoinOutcome> {
        if self.indices.is_empty() {
            return outcomes;
        }
        let mut returned = vec![false; outcomes.len()];
        let mut outcome = |&index: &usize| {
            let is_repeated = std::mem::replace(&mut returned[index], true);
            match outcomes[index].clone() {
                JoinOutcome::Ticket { number, is_new, state } => {
                    JoinOutcome::Ticket { number, is_new: is_new && !is_repeated, state }
                }
                refused @ JoinOutcome::Refused(_) => refused,
            }
        };
        self.indices.iter().map(&mut outcome).collect()
    }
}
