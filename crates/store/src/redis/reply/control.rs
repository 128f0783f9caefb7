use ::redis::Value;
use daegi_domain::{ItemControl, ItemId, Lane, LineControl, LogPosition, Number};

use super::{decode, item_id};
use crate::redis::item_hash::{self, Hash};
use crate::{Error, Result};

/// Reads the reply of `item_control`.
pub(in crate::redis) fn item_control(id: &ItemId, reply: Value) -> Result<Option<ItemControl>> {
    let (hash, lines): (Hash, Vec<String>) = decode(reply)?;
    let Some(control_version) = item_hash::maybe(&hash, "controlVersion")? else { return Ok(None) };
    let position = item_hash::maybe(&hash, "readOffset")?.zip(item_hash::maybe(&hash, "readAt")?);
    Ok(Some(ItemControl {
        id: id.clone(),
        control_version,
        version: item_hash::number(&hash, "version")?,
        position: position.map(|(offset, at)| LogPosition { offset, at }),
        lines: lines.chunks(4).map(line).collect::<Result<_>>()?,
        item: item_hash::item(id, hash)?,
    }))
}

fn line(words: &[String]) -> Result<LineControl> {
    let corrupt = || Error::corrupt("a line with counters that are no numbers".to_owned());
    let [lane, valid_from, tail, first] = words else { return Err(corrupt()) };
    let number = |text: &String| text.parse().map(Number).map_err(|_| corrupt());
    let lane = lane.parse().ok().and_then(Lane::numbered).ok_or_else(corrupt)?;
    let first_waiting = (!first.is_empty()).then(|| number(first)).transpose()?;
    Ok(LineControl { lane, valid_from: number(valid_from)?, tail: number(tail)?, first_waiting })
}

/// Reads items and their control versions.
pub(in crate::redis) fn changed_controls(scores: Vec<(String, f64)>) -> Result<Vec<(ItemId, u64)>> {
    scores.iter().map(|(id, version)| Ok((item_id(id)?, *version as u64))).collect()
}
