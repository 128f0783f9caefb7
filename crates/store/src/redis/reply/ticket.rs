use ::redis::Value;
use daegi_domain::{EndReason, Lane, Number, UserId};

use super::{decode, unexpected};
use crate::types::{EndOutcome, JoinOutcome, JoinRefusal, LiveState, TicketState};
use crate::{Error, Result};

/// A tag, the number of users, three numbers whose meaning depends on the tag, and the lane.
type Run = (String, u64, u64, u64, u64, usize);

/// The reply of `join`.
pub(in crate::redis) enum JoinReply {
    /// One outcome per user.
    Done(Vec<JoinOutcome>),
    /// It changed nothing, because it needs the keys of this many lanes.
    OtherLanes(usize),
}

/// Reads the outcomes of `join`, which replies one run for consecutive users whose outcomes follow from
/// each other.
pub(in crate::redis) fn join(runs: Vec<Run>) -> Result<JoinReply> {
    if let [(tag, lanes, ..)] = &runs[..]
        && tag == "lanes"
    {
        return Ok(JoinReply::OtherLanes(*lanes as usize));
    }
    let mut outcomes = Vec::new();
    for run in runs {
        for nth in 0..run.1 {
            outcomes.push(join_outcome(&run, nth)?);
        }
    }
    Ok(JoinReply::Done(outcomes))
}

/// Returns the tag with which `join` refuses new tickets for this reason; empty for none.
pub(in crate::redis) fn refusal_tag(refusal: Option<JoinRefusal>) -> &'static str {
    match refusal {
        None => "",
        Some(JoinRefusal::NotFound) => "n",
        Some(JoinRefusal::Disabled) => "d",
        Some(JoinRefusal::SoldOut) => "s",
        Some(JoinRefusal::LineFull) => "l",
        Some(JoinRefusal::StoreFull) => "m",
        Some(JoinRefusal::LeftTooOften { .. }) => "c",
        Some(JoinRefusal::NotOpenYet) => "o",
        Some(JoinRefusal::LineClosed) => "z",
        Some(JoinRefusal::InvitationUsed) => "i",
    }
}

fn join_outcome(&(ref tag, _, number, a, b, lane): &Run, nth: u64) -> Result<JoinOutcome> {
    let number = Number(number + nth);
    let lane = Lane::numbered(lane).ok_or_else(|| unexpected("join", tag))?;
    let ticket = |is_new, state| JoinOutcome::Ticket { lane, number, is_new, state };
    Ok(match tag.as_str() {
        "W" => ticket(true, waiting(a, nth)),
        "w" => ticket(false, waiting(a, 0)),
        "E" => ticket(true, LiveState::Entered { admitted_at: a, expires_at: b }),
        "e" => ticket(false, LiveState::Entered { admitted_at: a, expires_at: b }),
        "n" => JoinOutcome::Refused(JoinRefusal::NotFound),
        "o" => JoinOutcome::Refused(JoinRefusal::NotOpenYet),
        "z" => JoinOutcome::Refused(JoinRefusal::LineClosed),
        "d" => JoinOutcome::Refused(JoinRefusal::Disabled),
        "s" => JoinOutcome::Refused(JoinRefusal::SoldOut),
        "l" => JoinOutcome::Refused(JoinRefusal::LineFull),
        "m" => JoinOutcome::Refused(JoinRefusal::StoreFull),
        "i" => JoinOutcome::Refused(JoinRefusal::InvitationUsed),
        "c" => JoinOutcome::Refused(JoinRefusal::LeftTooOften { wait_ms: a }),
        other => return Err(unexpected("join", other)),
    })
}

pub(in crate::redis) fn ticket_states(reply: Vec<Vec<Value>>) -> Result<Vec<TicketState>> {
    reply.into_iter().map(ticket_state).collect()
}

fn ticket_state(reply: Vec<Value>) -> Result<TicketState> {
    if let [_, Value::BulkString(reason)] = reply.as_slice() {
        let code = String::from_utf8_lossy(reason);
        let reason = EndReason::from_code(&code).ok_or_else(|| unexpected("resolve", &code))?;
        return Ok(TicketState::Ended(reason));
    }
    let (tag, [a, b]) = tag_and_numbers(reply)?;
    Ok(match tag.as_str() {
        "w" => TicketState::Live(waiting(a, 0)),
        "e" => TicketState::Live(LiveState::Entered { admitted_at: a, expires_at: b }),
        "r" => TicketState::Restarted,
        "n" => TicketState::ItemRemoved,
        "f" => TicketState::ItemUnknown,
        other => return Err(unexpected("resolve", other)),
    })
}

/// Reads a tag and up to two numbers; missing ones are 0.
fn tag_and_numbers(reply: Vec<Value>) -> Result<(String, [u64; 2])> {
    let mut reply = reply.into_iter();
    let tag = decode(reply.next().unwrap_or(Value::Nil))?;
    let mut numbers = [0; 2];
    for (slot, value) in numbers.iter_mut().zip(reply) {
        *slot = decode(value)?;
    }
    Ok((tag, numbers))
}

/// Reads users and their numbers as `ZRANGEBYSCORE` returns them.
pub(in crate::redis) fn tickets(tickets: Vec<(String, u64)>) -> Result<Vec<(UserId, Number)>> {
    let ticket = |(user, number): (String, u64)| {
        let user =
            UserId::parse_stored(&user).map_err(|error| Error::corrupt(error.to_string()))?;
        Ok((user, Number(number)))
    };
    tickets.into_iter().map(ticket).collect()
}

/// Returns the state of the nth waiting ticket of a run whose first one has this position; 0 stands for a
/// position that the script does not know.
fn waiting(first: u64, nth: u64) -> LiveState {
    LiveState::Waiting { position: (first > 0).then_some(first + nth) }
}

pub(in crate::redis) fn end_outcome(tag: &str) -> Result<EndOutcome> {
    match tag {
        "d" => Ok(EndOutcome::Ended),
        "o" => Ok(EndOutcome::AlreadyEnded),
        "f" => Ok(EndOutcome::ItemUnknown),
        other => Err(unexpected("end_ticket", other)),
    }
}
