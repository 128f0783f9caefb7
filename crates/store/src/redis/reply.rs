//! Replies of scripts, decoded into types of this crate. The head of each script documents its reply.

mod admin;
mod admission;
mod item;
mod line;
mod outbox;
mod ticket;

use ::redis::{FromRedisValue, Value, from_redis_value};
use daegi_domain::ItemId;

pub(super) use self::admin::heartbeats;
pub(super) use self::admission::{AdmitReply, admission, expiry, sweep};
pub(super) use self::item::{item_update, policy_update, put, replay_state};
pub(super) use self::line::{counts, snapshot};
pub(super) use self::outbox::outbox;
pub(super) use self::ticket::{end_outcome, join_outcomes, refusal_tag, ticket_states, tickets};
use crate::{Error, Result};

fn decode<T: FromRedisValue>(value: Value) -> Result<T> {
    from_redis_value(value).map_err(|error| Error::corrupt(error.to_string()))
}

fn unexpected(source: &str, tag: &str) -> Error {
    Error::corrupt(format!("{source} replied {tag:?}"))
}

pub(super) fn item_id(text: &str) -> Result<ItemId> {
    ItemId::parse_stored(text).map_err(|error| Error::corrupt(error.to_string()))
}
