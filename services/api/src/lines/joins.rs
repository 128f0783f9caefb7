use std::collections::HashMap;
use std::sync::Arc;

use daegi_domain::UserId;
use daegi_store::Joined;

use super::batch::Counter;
use super::core::Core;
use crate::error::Result;
use crate::patience::in_time;

/// Joins people, one call for all who came at once.
pub(super) struct Joins(pub(super) Arc<Core>);

impl Counter for Joins {
    type Question = UserId;
    type Answer = Joined;

    async fn answer(&self, people: Vec<UserId>) -> Result<Vec<Joined>> {
        let Core { id, context, view, .. } = &*self.0;
        let (users, places) = distinct(people);
        context.meters.join_batch.record(users.len() as f64);
        let settings = view.load().settings;
        let now = context.clock.now_ms();
        let joined = in_time("join", context.store.join(id, &users, &settings, now)).await?;
        Ok(hand_out(&joined, &places))
    }
}

/// Everybody once, and for each request whose answer is its.
fn distinct(people: Vec<UserId>) -> (Vec<UserId>, Vec<usize>) {
    let mut known: HashMap<UserId, usize> = HashMap::with_capacity(people.len());
    let mut users = Vec::with_capacity(people.len());
    let mut place = |user: UserId| {
        *known.entry(user).or_insert_with_key(|user| {
            users.push(user.clone());
            users.len() - 1
        })
    };
    let places = people.into_iter().map(&mut place).collect();
    (users, places)
}

/// The first request of a person gave the place, if anyone did; the others found it.
fn hand_out(joined: &[Joined], places: &[usize]) -> Vec<Joined> {
    let mut told = vec![false; joined.len()];
    let mut answer = |&place: &usize| {
        let repeated = std::mem::replace(&mut told[place], true);
        match joined[place].clone() {
            Joined::At { number, new, place } => {
                Joined::At { number, new: new && !repeated, place }
            }
            refused @ Joined::Refused(_) => refused,
        }
    };
    places.iter().map(&mut answer).collect()
}

#[cfg(test)]
mod tests {
    use daegi_domain::Number;
    use daegi_store::Place;

    use super::*;

    #[test]
    fn a_person_who_is_twice_in_a_batch_is_sent_once_and_is_new_once() {
        let people = ["kim", "lee", "kim"].map(|user| UserId::parse(user).unwrap());
        let (users, places) = distinct(people.to_vec());
        assert_eq!((users.len(), &*places), (2, &[0, 1, 0][..]));
        let at = |number, new| Joined::At {
            number: Number(number),
            new,
            place: Place::Waiting { position: number },
        };
        let answers = hand_out(&[at(1, true), at(2, true)], &places);
        assert_eq!(answers, [at(1, true), at(2, true), at(1, false)]);
    }
}
