use ::redis::{FromRedisValue, Value};
use daegi_domain::Number;

use super::decode;
use crate::Result;
use crate::redis::Windowed;
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

pub(in crate::redis) fn admission(reply: Value) -> Result<Windowed<Admission>> {
    Ok(match windowed(reply)? {
        Windowed::Done((admitted, missed, remaining, more, outbox_full)) => {
            Windowed::Done(Admission { admitted, missed, remaining, more, outbox_full })
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

type ExpiryReply = (u32, u32, bool, bool, bool);

pub(in crate::redis) fn expiry(reply: ExpiryReply) -> Expiry {
    let (expired, abandoned, more, active, front_is_above_base) = reply;
    Expiry { expired, abandoned, more, active, front_is_above_base }
}
