use ::redis::{FromRedisValue, Value, from_redis_value};
use daegi_domain::rate::Moves;
use daegi_domain::{EntryFlow, ItemId, Lane, Number, Rank, Rate};

use super::{decode, unexpected};
use crate::Result;
use crate::redis::item_hash::{self, Hash};
use crate::types::{ChangeCursor, LineCounts, LineSnapshot, LineTotals};

type Fronts = (u64, u64);
type Sizes = (u64, u64, u64);
type Changes = (Vec<String>, u64, bool);

/// The reply of `snapshot`. The script replies a flat list; the groups keep each tuple within the length
/// that the Redis library can read.
struct SnapshotReply {
    hash: Hash,
    /// The hash of the line; empty for the standard lane, whose line is part of the item's hash.
    line: Hash,
    fronts: Fronts,
    sizes: Sizes,
    rate: Vec<(u64, u32)>,
    changes: Changes,
}

impl FromRedisValue for SnapshotReply {
    fn from_redis_value(value: Value) -> std::result::Result<Self, ::redis::ParsingError> {
        let (hash, line, front, frontier, waiting, returning, entered, rate, changes, read, more) =
            from_redis_value(value)?;
        let (fronts, sizes) = ((front, frontier), (waiting, returning, entered));
        Ok(Self { hash, line, fronts, sizes, rate, changes: (changes, read, more) })
    }
}

pub(in crate::redis) fn snapshot(
    id: &ItemId,
    lane: Lane,
    reply: Value,
) -> Result<Option<LineSnapshot>> {
    if matches!(&reply, Value::Array(parts) if parts.is_empty()) {
        return Ok(None);
    }
    let SnapshotReply { hash, line, fronts, sizes, rate, changes } = decode(reply)?;
    if !lane.is_standard() && line.is_empty() {
        return Ok(item_hash::item(id, hash)?.map(|item| LineSnapshot::empty(item, lane)));
    }
    let counters = if lane.is_standard() { &hash } else { &line };
    let base: u64 = item_hash::number(counters, "base")?;
    let (valid_from, tail) =
        (item_hash::number(counters, "validFrom")?, item_hash::number(counters, "tail")?);
    let ended = item_hash::maybe(counters, "ended")?.unwrap_or(0);
    let completed = item_hash::maybe(counters, "ended:C")?.unwrap_or(0);
    let flow = counters.get("entryFlow").and_then(|flow| EntryFlow::parse(flow));
    let moves = counters.get("moves").and_then(|moves| Moves::parse(moves));
    let ((front, frontier), (waiting, returning, entered)) = (fronts, sizes);
    let (changes, read, more) = changes;
    let (departed, reclaimed) = read_changes(&changes)?;
    Ok(item_hash::item(id, hash)?.map(|item| LineSnapshot {
        item,
        lane,
        base: Number(base),
        valid_from: Number(valid_from),
        front: Rank(front),
        frontier: Rank(frontier),
        tail: Number(tail),
        waiting,
        returning,
        entered,
        ended,
        completed,
        rate: Rate::new(rate).with_moves(moves),
        flow,
        departed,
        reclaimed,
        cursor: ChangeCursor { base, read },
        more,
    }))
}

type Ranges = Vec<(Number, Number)>;

/// Reads changes: a departed number, or `+from:to` for a reclaimed range.
fn read_changes(changes: &[String]) -> Result<(Vec<Number>, Ranges)> {
    let (mut departed, mut reclaimed) = (Vec::new(), Vec::new());
    for change in changes {
        let number =
            |text: &str| text.parse().map(Number).map_err(|_| unexpected("snapshot", change));
        match change.strip_prefix('+').and_then(|range| range.split_once(':')) {
            Some((from, to)) => reclaimed.push((number(from)?, number(to)?)),
            None => departed.push(number(change)?),
        }
    }
    Ok((departed, reclaimed))
}

/// Reads the counts of one lane, and how many lanes the item has.
pub(in crate::redis) fn counts(id: &ItemId, counts: Vec<u64>) -> Option<(LineCounts, usize)> {
    let [waiting, returning, missed, entered, base, front, tail, ref totals @ ..] = counts[..]
    else {
        return None;
    };
    let &[joined, admitted, ended, completed, expired, left, abandoned, lanes] = totals else {
        return None;
    };
    let totals = LineTotals { joined, admitted, ended, completed, expired, left, abandoned };
    let counts = LineCounts {
        item: id.clone(),
        waiting,
        returning,
        missed,
        entered,
        totals,
        lanes: Vec::new(),
        base: Number(base),
        front: Number(front),
        tail: Number(tail),
    };
    Some((counts, lanes as usize))
}
