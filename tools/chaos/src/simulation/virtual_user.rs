//! A simulated user: joins, polls, is admitted, and completes, leaves or lets the entry expire.

use std::sync::Arc;

use daegi_domain::{EndReason, ItemId, Lane, Number, Ticket, UserId};
use daegi_store::{
    AdminStore, EndOutcome, Error, ItemStore, JoinOutcome, JoinRefusal, LaneJoin, LiveState,
    Result, TicketState, TicketStore,
};

use super::faulty_store::{FaultyStore, connect};
use super::observed::cohort_rank;
use super::scenario::Code;
use super::state::SimState;
use crate::history::{Call, Entry, Millis, Op, Outcome, ReplyFields, TicketNumber};

/// Maximum number of turns between two calls of a user.
const MAX_POLL_TURNS: usize = 20;

struct VirtualUser {
    state: Arc<SimState>,
    store: FaultyStore,
    item: ItemId,
    user: UserId,
}

/// The result of a join that the store answered.
enum Joined {
    Ticket(TicketNumber, &'static str),
    /// Another user has used the code.
    CodeUsed,
    /// The line does not exist at the moment.
    NoLine,
}

pub(super) async fn run(state: Arc<SimState>, number: usize) {
    let (items, code) = (&state.scenario.items, state.scenario.code(number));
    let item = ItemId::parse(&items[number % items.len()].item);
    let (Ok(item), Ok(user)) = (item, UserId::parse(&format!("user-{number}"))) else {
        return;
    };
    state.turns(state.pick(state.scenario.arrival_turns)).await;
    let user_task = VirtualUser { store: connect(&state), state, item, user };
    // A part of those with a code join without it first, and then move to its lane. A store that continues with a state of
    // before the move has the first ticket, which then replaces the second.
    if code.is_some() && !user_task.state.scenario.loses_data && user_task.state.chance(0.3) {
        user_task.join(None, None).await;
        user_task.idle().await;
    }
    let mut number = user_task.join(code, None).await;
    if user_task.state.chance(0.1) {
        return user_task.leave(number).await;
    }
    if user_task.state.chance(0.2) {
        number = user_task.join(code, Some(number)).await;
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
    /// Joins until there is a ticket: in the lane of the code, or in the standard lane if the code is used up. A user who
    /// holds a ticket keeps it then.
    async fn join(&self, mut code: Option<Code>, held: Option<TicketNumber>) -> TicketNumber {
        loop {
            let from = self.state.now();
            let joined = self.try_join(code).await;
            let refused = |status, code: &str| Outcome::Refused { status, code: code.to_owned() };
            let outcome = match &joined {
                Ok(Joined::Ticket(number, status)) => Outcome::Ok(reply_fields(*number, status)),
                Ok(Joined::CodeUsed) => refused(403, "INVALID_CODE"),
                Ok(Joined::NoLine) => refused(404, "ITEM_NOT_FOUND"),
                Err(error) => Outcome::Unknown(error.to_string()),
            };
            let code_text = code.map(Code::text);
            self.record_call(Op::Join, (None, code_text), from, outcome);
            match joined {
                Ok(Joined::Ticket(number, _)) => return number,
                Ok(Joined::CodeUsed) => match held {
                    Some(number) => return number,
                    None => code = None,
                },
                Ok(Joined::NoLine) | Err(_) => {}
            }
            self.idle().await;
        }
    }

    async fn try_join(&self, code: Option<Code>) -> Result<Joined> {
        let (settings, now) = (self.store.settings().await?, self.state.now());
        let lane = code.and_then(|code| Lane::numbered(code.lane.into())).unwrap_or_default();
        let (user, invitation) = (self.user.clone(), code.map(Code::invitation));
        let joins = [LaneJoin { user, invitation }];
        let joined = self.store.join_lane(&self.item, lane, &joins, &settings, now).await?;
        Ok(match joined.first() {
            Some(JoinOutcome::Ticket { lane, number, state, .. }) => {
                Joined::Ticket((*lane, *number).into(), status(*state))
            }
            Some(JoinOutcome::Refused(JoinRefusal::InvitationUsed)) => Joined::CodeUsed,
            Some(JoinOutcome::Refused(_)) | None => Joined::NoLine,
        })
    }

    /// The rank in the draw, as a pod adds it to its reply.
    async fn rank(&self, number: TicketNumber) -> Option<u64> {
        let item = self.item.to_string();
        let planned = self.state.scenario.items.iter().find(|planned| planned.item == item)?;
        planned.opening.as_ref()?;
        let from = self.state.now();
        let item = self.store.item(&self.item).await.ok()??;
        self.state.record_draw(&item, from);
        cohort_rank(&item, number)
    }

    async fn poll_until(
        &self,
        number: TicketNumber,
        is_done: impl Fn(&str) -> bool,
    ) -> &'static str {
        loop {
            let cohort_rank = self.rank(number).await;
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
                Ok(text) => Outcome::Ok(ReplyFields { cohort_rank, ..reply_fields(number, text) }),
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

    fn ticket(&self, number: TicketNumber) -> Ticket {
        let lane = Lane::numbered(number.lane.into()).unwrap_or_default();
        let ticket = Ticket::new(self.item.clone(), self.user.clone(), Number(number.number));
        Ticket { lane, ..ticket }
    }

    async fn leave(&self, number: TicketNumber) {
        let call = async || {
            let now = self.state.now();
            self.store.leave(&self.ticket(number), now).await.and_then(ended_or_retry)
        };
        self.retry(Op::Leave, number, call).await;
    }

    async fn complete(&self, number: TicketNumber) {
        let call = async || {
            let (now, reason) = (self.state.now(), EndReason::Completed);
            self.store.complete(&self.ticket(number), reason, now).await.and_then(ended_or_retry)
        };
        self.retry(Op::Complete, number, call).await;
    }

    /// Calls until there is a reply.
    async fn retry(&self, op: Op, number: TicketNumber, call: impl AsyncFn() -> Result<bool>) {
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

    fn record(&self, op: Op, number: Option<TicketNumber>, from: Millis, outcome: Outcome) {
        self.record_call(op, (number, None), from, outcome);
    }

    fn record_call(
        &self,
        op: Op,
        (number, code): (Option<TicketNumber>, Option<String>),
        from: Millis,
        outcome: Outcome,
    ) {
        self.state.write(Entry::Call(Call {
            op,
            user: self.user.to_string(),
            item: self.item.to_string(),
            number,
            code,
            from,
            to: self.state.now(),
            outcome,
        }));
    }
}

fn reply_fields(number: TicketNumber, status: &str) -> ReplyFields {
    ReplyFields { number: Some(number), status: Some(status.to_owned()), ..ReplyFields::default() }
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
