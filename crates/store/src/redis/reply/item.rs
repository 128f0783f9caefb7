use ::redis::Value;
use daegi_domain::{Item, ItemId, Lane};

use super::{decode, unexpected};
use crate::Result;
use crate::redis::item_hash::{self, Hash};
use crate::types::{ItemUpdateOutcome, PolicyUpdateOutcome, PutOutcome, ReplayState};

/// Reads a tag and, if the item was changed, the item.
fn tagged_item(id: &ItemId, reply: Vec<Value>) -> Result<(String, Option<Item>)> {
    let mut reply = reply.into_iter();
    let tag = decode(reply.next().unwrap_or(Value::Nil))?;
    let hash = reply.next().map(decode::<Hash>).transpose()?;
    Ok((tag, item_hash::item(id, hash.unwrap_or_default())?))
}

pub(in crate::redis) fn put(id: &ItemId, reply: Vec<Value>) -> Result<PutOutcome> {
    match tagged_item(id, reply)? {
        (tag, Some(item)) if tag == "created" => Ok(PutOutcome::Created(item)),
        (tag, Some(item)) if tag == "updated" => Ok(PutOutcome::Updated(item)),
        (tag, None) if tag == "stale" => Ok(PutOutcome::Stale),
        (tag, _) => Err(unexpected("put_items", &tag)),
    }
}

pub(in crate::redis) fn policy_update(
    id: &ItemId,
    reply: Vec<Value>,
) -> Result<PolicyUpdateOutcome> {
    if let [Value::BulkString(tag), Value::Int(lane)] = &reply[..]
        && tag == b"lanenotempty"
    {
        let lane = usize::try_from(*lane).ok().and_then(Lane::numbered);
        let lane = lane.ok_or_else(|| unexpected("set_policy", "a lane that does not exist"))?;
        return Ok(PolicyUpdateOutcome::LaneNotEmpty(lane));
    }
    match tagged_item(id, reply)? {
        (tag, Some(item)) if tag == "changed" => Ok(PolicyUpdateOutcome::Changed(item.into())),
        (tag, None) if tag == "conflict" => Ok(PolicyUpdateOutcome::Conflict),
        (tag, None) if tag == "notempty" => Ok(PolicyUpdateOutcome::LineNotEmpty),
        (tag, None) if tag == "notfound" => Ok(PolicyUpdateOutcome::NotFound),
        (tag, _) => Err(unexpected("set_policy", &tag)),
    }
}

pub(in crate::redis) fn item_update(tag: &str) -> Result<ItemUpdateOutcome> {
    match tag {
        "created" => Ok(ItemUpdateOutcome::Created),
        "updated" => Ok(ItemUpdateOutcome::Updated),
        "removed" => Ok(ItemUpdateOutcome::Removed),
        "notfound" => Ok(ItemUpdateOutcome::NotFound),
        "stale" => Ok(ItemUpdateOutcome::Stale),
        "held" => Ok(ItemUpdateOutcome::Held),
        other => Err(unexpected("put_items or remove_item", other)),
    }
}

pub(in crate::redis) fn replay_state(state: Option<&str>) -> Result<ReplayState> {
    match state {
        None => Ok(ReplayState::NotStarted),
        Some("reading") => Ok(ReplayState::InProgress),
        Some("read") => Ok(ReplayState::Complete),
        Some(other) => Err(unexpected("replay_state", other)),
    }
}
