//! A simulated user: joins, polls, is admitted, and completes, leaves or lets the entry expire.

use std::sync::Arc;

use daegi_domain::{EndReason, ItemId, Number, Ticket, UserId};
use daegi_store::{
    AdminStore, EndOutcome, Error, JoinOutcome, LiveState, Result, TicketState, TicketStore,
};

use super::faulty_store::{FaultyStore, connect};
use super::state::SimState;
use crate::history::{Call, Entry, Millis, Op, Outcome, ReplyFields};

/// Maximum number of turns between two calls of a user.
const MAX_POLL_TURNS: usize = 20;

struct VirtualUser {
    state: Arc<SimState>,
    store: FaultyStore,
    item: ItemId,
    user: UserId,
}

pub(super) async fn run(state: Arc<SimState>, number: usize) {
    let item = ItemId::parse(["arena", "opera"][number % 2]);
    let (Ok(item), Ok(user)) = (item, UserId::parse(&format!("user-{number}"))) else {
        return;
    };
    state.turns(state.pick(150)).await;
    let user_task = VirtualUser { store: connect(&state), state, item, user };
    let mut number = user_task.join().await;
    if user_task.state.chance(0.1) {
        return user_task.leave(number).await;
    }
    if user_task.state.chance(0.2) {
        number = user_task.join().await;
    }
    if user_task.poll_until(number, |status| status != "WAITING").await == "ENTERABLE" {
        user_task.state.turns(user_task.state.pick(MAX_POLL_TURNS)).await;
        match user_task.state.pick(10) {
            0..7 => user_task.complete(number).await,
            7 => user_task.leave(number).await,
            _ => {}
        }
        user_task.poll_until(number, |status| status != "WAITING" && status != "ENTERABLE").await;
    }
}

impl VirtualUser {
    async fn join(&self) -> Number {
        loop {
            let from = self.state.now();
            let joined = self.try_join().await;
            let outcome = match &joined {
                Ok(Some((number, status))) => Outcome::Ok(reply_fields(*number, status)),
                Ok(None) => Outcome::Refused { status: 404, code: "ITEM_NOT_FOUND".into() },
                Err(error) => Outcome::Unknown(error.to_string()),
            };
            self.record(Op::Join, None, from, outcome);
            if let Ok(Some((number, _))) = joined {
                return number;
            }
            self.idle().await;
        }
    }

    /// Returns `None` if the line does not exist at the moment.
    async fn try_join(&self) -> Result<Option<(Number, &'static str)>> {
        let settings = self.store.settings().await?;
        let users = std::slice::from_ref(&self.user);
        let joined = self.store.join(&self.item, users, &settings, self.state.now()).await?;
        Ok(match joined.first() {
            Some(JoinOutcome::Ticket { number, state, .. }) => Some((*number, status(*state))),
            Some(JoinOutcome::Refused(_)) | None => None,
        })
    }

    async fn poll_until(&self, number: Number, is_done: impl Fn(&str) -> bool) -> &'static str {
        loop {
            let from = self.state.now();
            let reply = self.store.resolve(&[self.ticket(number)], self.state.now()).await;
            let state = reply.map(|reply| reply.first().copied());
            let status = match state {
                Ok(Some(state)) => poll_status(state),
                Ok(None) => Err("no reply".to_owned()),
                Err(error) => Err(error.to_string()),
            };
            let outcome = match &status {
                Ok("RESTARTED") => Outcome::Refused { status: 410, code: "LINE_RESTARTED".into() },
                Ok(text) => Outcome::Ok(reply_fields(number, text)),
                Err(error) => Outcome::Unknown(error.clone()),
            };
            self.record(Op::Poll, Some(number), from, outcome);
            if let Ok(status) = status
                && is_done(status)
            {
                return status;
            }
            self.idle().await;
        }
    }

    fn ticket(&self, number: Number) -> Ticket {
        Ticket::new(self.item.clone(), self.user.clone(), number)
    }

    async fn leave(&self, number: Number) {
        let call = async || {
            let now = self.state.now();
            self.store.leave(&self.ticket(number), now).await.and_then(ended_or_retry)
        };
        self.retry(Op::Leave, number, call).await;
    }

    async fn complete(&self, number: Number) {
        let call = async || {
            let (now, reason) = (self.state.now(), EndReason::Completed);
            self.store.complete(&self.ticket(number), reason, now).await.and_then(ended_or_retry)
        };
        self.retry(Op::Complete, number, call).await;
    }

    /// Calls until there is a reply.
    async fn retry(&self, op: Op, number: Number, call: impl AsyncFn() -> Result<bool>) {
        loop {
            let from = self.state.now();
            let reply = call().await;
            let outcome = match &reply {
                // The ticket had ended, or an earlier call ended it and its reply was lost.
                Ok(false) if op == Op::Leave => Outcome::Unknown("ticket already ended".to_owned()),
                Ok(released) => Outcome::Ok(ReplyFields {
                    released: (op == Op::Complete).then_some(*released),
                    ..ReplyFields::default()
                }),
                Err(error) => Outcome::Unknown(error.to_string()),
            };
            self.record(op, Some(number), from, outcome);
            if reply.is_ok() {
                return;
            }
            self.idle().await;
        }
    }

    async fn idle(&self) {
        self.state.turns(self.state.pick(MAX_POLL_TURNS)).await;
    }

    fn record(&self, op: Op, number: Option<Number>, from: Millis, outcome: Outcome) {
        self.state.write(Entry::Call(Call {
            op,
            user: self.user.to_string(),
            item: self.item.to_string(),
            number: number.map(|number| number.0),
            from,
            to: self.state.now(),
            outcome,
        }));
    }
}

fn reply_fields(number: Number, status: &str) -> ReplyFields {
    ReplyFields {
        number: Some(number.0),
        status: Some(status.to_owned()),
        ..ReplyFields::default()
    }
}

fn status(state: LiveState) -> &'static str {
    match state {
        LiveState::Waiting { .. } => "WAITING",
        LiveState::Entered { .. } => "ENTERABLE",
    }
}

/// The status a pod returns; 503 where the store does not know the line.
fn poll_status(state: TicketState) -> std::result::Result<&'static str, String> {
    match state {
        TicketState::Live(state) => Ok(status(state)),
        TicketState::Ended(reason) => Ok(reason_text(reason)),
        TicketState::Restarted => Ok("RESTARTED"),
        TicketState::ItemUnknown | TicketState::ItemRemoved => Err("simulated 503".to_owned()),
    }
}

pub(super) fn reason_text(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Expired => "EXPIRED",
        EndReason::Completed => "COMPLETED",
        EndReason::Left => "LEFT",
        EndReason::Abandoned => "ABANDONED",
        EndReason::Replaced => "REPLACED",
    }
}

/// Whether the call ended the ticket. An error for a lost item, so that the user retries.
fn ended_or_retry(outcome: EndOutcome) -> Result<bool> {
    match outcome {
        EndOutcome::Ended => Ok(true),
        EndOutcome::AlreadyEnded => Ok(false),
        EndOutcome::ItemUnknown => Err(Error::Unavailable("the item is lost".into())),
    }
}
