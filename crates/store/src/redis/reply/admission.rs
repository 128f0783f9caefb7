use ::redis::{FromRedisValue, Value};
use daegi_domain::Number;
use daegi_domain::draw::Cohort;

use super::decode;
use crate::Result;
use crate::redis::{Windowed, item_hash};
use crate::types::{Admission, Expiry, Sweep};

/// Reads the reply of a script that reads liveness: numbers, or `slices` and how many seconds it must read.
fn windowed<T: FromRedisValue>(reply: Value) -> Result<Windowed<T>> {
    match &reply {
        Value::Array(values) if matches!(values.first(), Some(Value::BulkString(_))) => {
            let (_, seconds): (String, u32) = decode(reply)?;
            Ok(Windowed::NeedsWindow(seconds))
        }
        _ => Ok(Windowed::Done(decode(reply)?)),
    }
}

/// The reply of `admit`.
pub(in crate::redis) enum AdmitReply {
    /// It admitted tickets.
    Done {
        admission: Admission,
        /// How many ranks of the drawn cohort were served.
        served_ranks: u64,
        /// Whether more ranks could be served than the caller passed.
        needs_ranks: bool,
    },
    /// It changed nothing, because it needs the keys of this many lanes.
    OtherLanes(usize),
    /// It changed nothing, because it needs other ranks of this cohort: those after `served_ranks`.
    OtherRanks { cohort: Cohort, served_ranks: u64 },
}

pub(in crate::redis) fn admission(reply: Value) -> Result<Windowed<AdmitReply>> {
    let tag = match &reply {
        Value::Array(values) => values.first(),
        _ => None,
    };
    if matches!(tag, Some(Value::BulkString(tag)) if tag == b"lanes") {
        let (_, lanes): (String, usize) = decode(reply)?;
        return Ok(Windowed::Done(AdmitReply::OtherLanes(lanes)));
    }
    if matches!(tag, Some(Value::BulkString(tag)) if tag == b"ranks") {
        let (_, first, size, served_ranks, seed): (String, u64, u64, u64, String) = decode(reply)?;
        let cohort = Cohort::new(Number(first), size, item_hash::bytes(&seed)?);
        return Ok(Windowed::Done(AdmitReply::OtherRanks { cohort, served_ranks }));
    }
    Ok(match windowed(reply)? {
        Windowed::Done((
            admitted,
            missed,
            remaining,
            more,
            outbox_full,
            served_ranks,
            needs_ranks,
        )) => {
            let admission = Admission { admitted, missed, remaining, more, outbox_full };
            Windowed::Done(AdmitReply::Done { admission, served_ranks, needs_ranks })
        }
        Windowed::NeedsWindow(seconds) => Windowed::NeedsWindow(seconds),
    })
}

pub(in crate::redis) fn sweep(reply: Value) -> Result<Windowed<Sweep>> {
    Ok(match windowed(reply)? {
        Windowed::Done((abandoned, cursor)) => {
            Windowed::Done(Sweep { abandoned, cursor: Number(cursor) })
        }
        Windowed::NeedsWindow(seconds) => Windowed::NeedsWindow(seconds),
    })
}

type ExpiryReply = (u32, u32, bool, bool, bool, usize);

pub(in crate::redis) fn expiry(reply: ExpiryReply) -> Expiry {
    let (expired, abandoned, more, active, front_is_above_base, lanes) = reply;
    Expiry { expired, abandoned, more, active, front_is_above_base, lanes }
}
