//! People who join in one call, some of them perhaps twice.

use std::collections::HashMap;

use daegi_domain::UserId;

use crate::model::Joined;

/// Everybody once, in their order. Scripts need not look for repeats.
pub(super) struct Crowd<'a> {
    pub(super) people: Vec<&'a str>,
    /// Whose answer each request gets; empty if that is simply its own.
    answers: Vec<usize>,
}

impl<'a> Crowd<'a> {
    pub(super) fn of(users: &'a [UserId]) -> Self {
        let mut known = HashMap::with_capacity(users.len());
        let mut people = Vec::with_capacity(users.len());
        let mut answers = Vec::with_capacity(users.len());
        for user in users {
            let answer = *known.entry(user.as_str()).or_insert(people.len());
            if answer == people.len() {
                people.push(user.as_str());
            }
            answers.push(answer);
        }
        if people.len() == users.len() {
            answers.clear();
        }
        Self { people, answers }
    }

    /// The first request of a person gave the place, if any did; the others found it.
    pub(super) fn hand_out(&self, joined: Vec<Joined>) -> Vec<Joined> {
        if self.answers.is_empty() {
            return joined;
        }
        let mut told = vec![false; joined.len()];
        let mut answer = |&answer: &usize| {
            let repeated = std::mem::replace(&mut told[answer], true);
            match joined[answer].clone() {
                Joined::At { number, new, place } => {
                    Joined::At { number, new: new && !repeated, place }
                }
                refused @ Joined::Refused(_) => refused,
            }
        };
        self.answers.iter().map(&mut answer).collect()
    }
}
