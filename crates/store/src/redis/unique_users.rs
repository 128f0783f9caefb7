//! The users of one join call, without repetitions.

use std::collections::HashMap;

use daegi_domain::Invitation;

use crate::types::{JoinOutcome, LaneJoin};

/// Each user once, in the order of the call, so that scripts need not look for repetitions.
pub(super) struct UniqueUsers<'a> {
    joins: Vec<&'a LaneJoin>,
    /// The index of each request's user in `joins`; empty if no user repeats.
    indices: Vec<usize>,
}

impl<'a> UniqueUsers<'a> {
    pub(super) fn new(joins: &'a [LaneJoin]) -> Self {
        let mut known = HashMap::with_capacity(joins.len());
        let mut unique = Vec::with_capacity(joins.len());
        let mut indices = Vec::with_capacity(joins.len());
        for join in joins {
            let index = *known.entry(join.user.as_str()).or_insert(unique.len());
            if index == unique.len() {
                unique.push(join);
            }
            indices.push(index);
        }
        if unique.len() == joins.len() {
            indices.clear();
        }
        Self { joins: unique, indices }
    }

    /// Returns the users.
    pub(super) fn users(&self) -> Vec<&'a str> {
        self.joins.iter().map(|join| join.user.as_str()).collect()
    }

    /// Returns the invitations as `join` reads them: a word per user, or empty text if no user has one.
    pub(super) fn invitations(&self) -> String {
        if self.joins.iter().all(|join| join.invitation.is_none()) {
            return String::new();
        }
        let word = |join: &&LaneJoin| match join.invitation {
            Some(Invitation { id, uses, expires_at }) => format!("{id}:{uses}:{expires_at}"),
            None => "-".to_owned(),
        };
        self.joins.iter().map(word).collect::<Vec<_>>().join(" ")
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
                JoinOutcome::Ticket { lane, number, is_new, state } => {
                    JoinOutcome::Ticket { lane, number, is_new: is_new && !is_repeated, state }
                }
                refused @ JoinOutcome::Refused(_) => refused,
            }
        };
        self.indices.iter().map(&mut outcome).collect()
    }
}
