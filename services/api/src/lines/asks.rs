use std::collections::HashMap;
use std::sync::Arc;

use daegi_domain::{Number, UserId};
use daegi_store::Standing;

use super::batch::Counter;
use super::core::Core;
use crate::error::Result;
use crate::patience::in_time;

/// Asks the store what became of tickets that are not in the line any more.
pub(super) struct Asks(pub(super) Arc<Core>);

impl Counter for Asks {
    type Question = (UserId, Number);
    type Answer = Standing;

    async fn answer(&self, tickets: Vec<(UserId, Number)>) -> Result<Vec<Standing>> {
        let Core { id, context, .. } = &*self.0;
        let Merged { questions, answers } = merge(tickets);
        context.meters.ask_batch.record(questions.len() as f64);
        let now = context.clock.now_ms();
        let standings = in_time("resolve", context.store.resolve(id, &questions, now)).await?;
        // One standing per question; the store fails otherwise.
        let standing = |at: usize| standings.get(at).copied().unwrap_or(Standing::Forgotten);
        Ok(answers.into_iter().map(standing).collect())
    }
}

/// Questions without repeats, and which of their answers each request gets.
struct Merged {
    questions: Vec<(UserId, Number)>,
    answers: Vec<usize>,
}

fn merge(tickets: Vec<(UserId, Number)>) -> Merged {
    let mut known = HashMap::with_capacity(tickets.len());
    let mut merged = Merged { questions: Vec::new(), answers: Vec::with_capacity(tickets.len()) };
    for ticket in tickets {
        let answer = *known.entry(ticket.clone()).or_insert(merged.questions.len());
        if answer == merged.questions.len() {
            merged.questions.push(ticket);
        }
        merged.answers.push(answer);
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_that_is_asked_about_twice_is_one_question() {
        let ticket = |user: &str, number| (UserId::parse(user).unwrap(), Number(number));
        let (kim, lee) = (ticket("kim", 1), ticket("lee", 2));
        let other = ticket("kim", 3);
        let merged = merge(vec![kim.clone(), lee.clone(), kim.clone(), other.clone(), lee.clone()]);
        assert_eq!(merged.questions, [kim, lee, other]);
        assert_eq!(merged.answers, [0, 1, 0, 2, 1]);
    }
}
