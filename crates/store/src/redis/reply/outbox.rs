use daegi_domain::{
    CohortRange, Draw, DrawBeacon, Drawn, EndReason, Lane, LaneName, LineEvent, Millis, Number,
    Reveal, TicketEvent, UserId,
};

use super::item_id;
use crate::redis::item_hash::{self, Hash};
use crate::types::{Epoch, OutboxBatch};
use crate::{Error, Result};

pub(in crate::redis) fn outbox(entries: Vec<(String, Hash)>) -> Result<Vec<OutboxBatch>> {
    entries.into_iter().map(|(id, fields)| batch(id, &fields)).collect()
}

fn batch(id: String, fields: &Hash) -> Result<OutboxBatch> {
    let item = item_id(fields.get("i").map_or("", String::as_str))?;
    let (lane, lane_name) = lane(fields)?;
    let at: Millis = item_hash::number(fields, "t")?;
    let epoch = epoch(fields)?;
    if let Some(kind) = fields.get("l") {
        let line = Some(line_event(kind, fields.get("d").map_or("", String::as_str), at)?);
        return Ok(OutboxBatch { id, item, lane, lane_name, epoch, events: Vec::new(), line });
    }
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
    Ok(OutboxBatch { id, item, lane, lane_name, epoch, events, line: None })
}

/// Reads the lane. Batches of the standard lane, and of releases without lanes, have none.
fn lane(fields: &Hash) -> Result<(Lane, Option<LaneName>)> {
    let lane = item_hash::maybe(fields, "k")?.map_or(Some(Lane::STANDARD), Lane::numbered);
    let lane = lane.ok_or_else(|| Error::corrupt("an outbox batch of an unknown lane"))?;
    Ok((lane, fields.get("kn").and_then(|name| LaneName::parse(name).ok())))
}

/// Reads the event of a line, and the words of its draw: reveal, first, size, root, seed, beacon; with a beacon,
/// also its round and signature.
fn line_event(kind: &str, draw: &str, at: Millis) -> Result<LineEvent> {
    let corrupt = || Error::corrupt("an outbox batch with an unreadable event of a line");
    match (kind, &draw.split(' ').collect::<Vec<_>>()[..]) {
        ("closed", _) => Ok(LineEvent::Closed { at }),
        ("opened", [""]) => Ok(LineEvent::Opened { at, draw: None }),
        ("opened", [reveal, first, size, root, seed, beacon, round @ ..]) => {
            let number = |text: &str| text.parse().map_err(|_| corrupt());
            let beacon = (!beacon.is_empty()).then(|| item_hash::bytes(beacon)).transpose()?;
            let (root, seed) = (item_hash::bytes(root)?, item_hash::bytes(seed)?);
            let round = match round {
                [] => None,
                [round, signature] => {
                    let signature = Some(item_hash::bytes(signature)?);
                    Some(DrawBeacon { round: number(round)?, signature })
                }
                _ => return Err(corrupt()),
            };
            let draw = Draw {
                reveal: Reveal(item_hash::bytes(reveal)?),
                root: Some(root),
                beacon: round,
                cohort: Some(CohortRange { first: Number(number(first)?), size: number(size)? }),
                drawn: Some(Drawn { root, beacon, seed }),
            };
            Ok(LineEvent::Opened { at, draw: Some(draw) })
        }
        _ => Err(corrupt()),
    }
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
