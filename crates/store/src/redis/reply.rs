//! Replies of scripts, decoded into types of this crate. The head of each script documents its reply.

mod admin;
mod admission;
mod control;
mod item;
mod line;
mod outbox;
mod ticket;

use ::redis::{FromRedisValue, Value, from_redis_value};
use daegi_domain::ItemId;

pub(super) use self::admin::heartbeats;
pub(super) use self::admission::{AdmitReply, admission, expiry, sweep};
pub(super) use self::control::{changed_controls, item_control};
pub(super) use self::item::{item_update, policy_update, put, replay_state};
pub(super) use self::line::{counts, snapshot};
pub(super) use self::outbox::outbox;
pub(super) use self::ticket::{JoinReply, end_outcome, join, refusal_tag, ticket_states, tickets};
use crate::{Error, Result};

fn decode<T: FromRedisValue>(value: Value) -> Result<T> {
    from_redis_value(value).map_err(|error| Error::corrupt(error.to_string()))
}

/// Returns how many lanes an item has whose keys a script did not get; then it has changed nothing.
pub(super) fn lanes_needed(reply: &[Value]) -> Option<usize> {
    match reply {
        [Value::BulkString(tag), Value::Int(lanes), ..] if tag == b"lanes" => {
            usize::try_from(*lanes).ok()
        }
        _ => None,
    }
}

fn unexpected(source: &str, tag: &str) -> Error {
    Error::corrupt(format!("{source} replied {tag:?}"))
}

pub(super) fn item_id(text: &str) -> Result<ItemId> {
    ItemId::parse_stored(text).map_err(|error| Error::corrupt(error.to_string()))
}
