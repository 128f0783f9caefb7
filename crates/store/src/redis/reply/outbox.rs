use daegi_domain::{EndReason, Millis, Number, TicketEvent, UserId};

use super::item_id;
use crate::redis::item_hash::{self, Hash};
use crate::types::{Epoch, OutboxBatch};
use crate::{Error, Result};

pub(in crate::redis) fn outbox(entries: Vec<(String, Hash)>) -> Result<Vec<OutboxBatch>> {
    entries.into_iter().map(|(id, fields)| batch(id, &fields)).collect()
}

fn batch(id: String, fields: &Hash) -> Result<OutboxBatch> {
    let item = item_id(fields.get("i").map_or("", String::as_str))?;
    let at: Millis = item_hash::number(fields, "t")?;
    let words = |field| fields.get(field).map(|text| text.split(' ').collect::<Vec<_>>());
    let events = match (words("a"), words("c")) {
        (Some(admitted), None) => {
            let expires_at = item_hash::number(fields, "e")?;
            let event = |pair: &[&str]| {
                let (user, number) = ticket(pair)?;
                Ok(TicketEvent::Admitted { user, number, at, expires_at })
            };
            admitted.chunks(2).map(event).collect::<Result<_>>()?
        }
        (None, Some(ended)) => {
            ended.chunks(3).map(|words| end(words, at)).collect::<Result<_>>()?
        }
        _ => return Err(Error::corrupt("an outbox batch of unknown kind")),
    };
    Ok(OutboxBatch { id, item, epoch: epoch(fields)?, events })
}

/// Reads the epoch. Batches that pods write have none, nor have batches of releases without this field.
fn epoch(fields: &Hash) -> Result<Option<Epoch>> {
    match fields.get("p").map(String::as_str) {
        None | Some("") => Ok(None),
        Some(_) => item_hash::number(fields, "p").map(Epoch).map(Some),
    }
}

fn end(words: &[&str], at: Millis) -> Result<TicketEvent> {
    let (user, number) = ticket(words)?;
    let reason = words.get(2).and_then(|code| EndReason::from_code(code));
    let reason =
        reason.ok_or_else(|| Error::corrupt("an outbox batch with an end without a reason"))?;
    Ok(TicketEvent::Ended { user, number, at, reason })
}

fn ticket(words: &[&str]) -> Result<(UserId, Number)> {
    let user = words.first().and_then(|user| UserId::parse_stored(user).ok());
    let number = words.get(1).and_then(|number| number.parse().ok()).map(Number);
    user.zip(number).ok_or_else(|| Error::corrupt("an outbox batch without user and number"))
}
