//! What scripts answer, in the words of the crate. Every shape stands in the script's head.

use ::redis::{FromRedisValue, Value, from_redis_value};
use daegi_domain::rate::Moves;
use daegi_domain::{EndReason, ItemId, LineEvent, Millis, Number, Rate, UserId};

use super::Sliced;
use super::fields::{self, Hash};
use crate::model::{
    Admission, Catalogue, Closing, Counts, DepartedCursor, Epoch, Expiry, Joined, LineSnapshot,
    NewsOutcome, Notice, OutboxBatch, Place, PolicyChange, Put, Refusal, Standing, Sweep, Totals,
};
use crate::{Error, Result};

fn decode<T: FromRedisValue>(value: Value) -> Result<T> {
    from_redis_value(value).map_err(|error| Error::corrupt(error.to_string()))
}

fn strange(what: &str, tag: &str) -> Error {
    Error::corrupt(format!("{what} answered {tag:?}"))
}

pub(super) fn item_id(text: &str) -> Result<ItemId> {
    ItemId::parse_stored(text).map_err(|error| Error::corrupt(error.to_string()))
}

/// A tag and, where something changed, the item.
fn tagged_item(id: &ItemId, reply: Vec<Value>) -> Result<(String, Option<daegi_domain::Item>)> {
    let mut reply = reply.into_iter();
    let tag = decode(reply.next().unwrap_or(Value::Nil))?;
    let hash = reply.next().map(decode::<Hash>).transpose()?;
    Ok((tag, fields::item(id, hash.unwrap_or_default())?))
}

pub(super) fn put(id: &ItemId, reply: Vec<Value>) -> Result<Put> {
    match tagged_item(id, reply)? {
        (tag, Some(item)) if tag == "created" => Ok(Put::Created(item)),
        (tag, Some(item)) if tag == "updated" => Ok(Put::Updated(item)),
        (tag, None) if tag == "stale" => Ok(Put::Stale),
        (tag, _) => Err(strange("put_items", &tag)),
    }
}

pub(super) fn policy_change(id: &ItemId, reply: Vec<Value>) -> Result<PolicyChange> {
    match tagged_item(id, reply)? {
        (tag, Some(item)) if tag == "changed" => Ok(PolicyChange::Changed(item.into())),
        (tag, None) if tag == "conflict" => Ok(PolicyChange::Conflict),
        (tag, None) if tag == "notfound" => Ok(PolicyChange::NotFound),
        (tag, _) => Err(strange("set_policy", &tag)),
    }
}

pub(super) fn news_outcome(tag: &str) -> Result<NewsOutcome> {
    match tag {
        "created" => Ok(NewsOutcome::Created),
        "updated" => Ok(NewsOutcome::Updated),
        "removed" => Ok(NewsOutcome::Removed),
        "notfound" => Ok(NewsOutcome::NotFound),
        "stale" => Ok(NewsOutcome::Stale),
        other => Err(strange("put_items or remove_item", other)),
    }
}

pub(super) fn closing(tag: &str) -> Result<Closing> {
    match tag {
        "d" => Ok(Closing::Done),
        "o" => Ok(Closing::Over),
        "f" => Ok(Closing::Forgotten),
        other => Err(strange("the end of a ticket", other)),
    }
}

pub(super) fn catalogue(state: Option<&str>) -> Result<Catalogue> {
    match state {
        None => Ok(Catalogue::Unread),
        Some("reading") => Ok(Catalogue::Reading),
        Some("read") => Ok(Catalogue::Read),
        Some(other) => Err(strange("a catalogue", other)),
    }
}

/// A tag followed by up to three numbers.
struct Tagged(String, [u64; 3]);

impl Tagged {
    fn read(reply: Vec<Value>) -> Result<Self> {
        let mut reply = reply.into_iter();
        let tag = decode(reply.next().unwrap_or(Value::Nil))?;
        let mut numbers = [0; 3];
        for (slot, value) in numbers.iter_mut().zip(reply) {
            *slot = decode(value)?;
        }
        Ok(Self(tag, numbers))
    }
}

/// Tag, how many people, and three numbers that fit the tag.
type Run = (String, u64, u64, u64, u64);

/// People in a row whose answers follow from each other come as one run.
pub(super) fn joined(runs: Vec<Run>) -> Result<Vec<Joined>> {
    let mut answers = Vec::new();
    for run in runs {
        for nth in 0..run.1 {
            answers.push(joined_one(&run, nth)?);
        }
    }
    Ok(answers)
}

/// The tag with which `join` refuses new tickets for this reason; empty if it does not.
pub(super) fn refusal_tag(refusal: Option<Refusal>) -> &'static str {
    match refusal {
        None => "",
        Some(Refusal::NotFound) => "n",
        Some(Refusal::Disabled) => "d",
        Some(Refusal::SoldOut) => "s",
        Some(Refusal::LineFull) => "l",
        Some(Refusal::StoreFull) => "m",
        Some(Refusal::LeftTooOften { .. }) => "c",
    }
}

fn joined_one(&(ref tag, _, number, a, b): &Run, nth: u64) -> Result<Joined> {
    let at = |new, place| Joined::At { number: Number(number + nth), new, place };
    Ok(match tag.as_str() {
        "W" => at(true, Place::Waiting { position: a + nth }),
        "w" => at(false, Place::Waiting { position: a }),
        "E" => at(true, Place::Entered { at: a, expires_at: b }),
        "e" => at(false, Place::Entered { at: a, expires_at: b }),
        "n" => Joined::Refused(Refusal::NotFound),
        "d" => Joined::Refused(Refusal::Disabled),
        "s" => Joined::Refused(Refusal::SoldOut),
        "l" => Joined::Refused(Refusal::LineFull),
        "m" => Joined::Refused(Refusal::StoreFull),
        "c" => Joined::Refused(Refusal::LeftTooOften { wait_ms: a }),
        other => return Err(strange("join", other)),
    })
}

pub(super) fn standings(reply: Vec<Vec<Value>>) -> Result<Vec<Standing>> {
    reply.into_iter().map(standing).collect()
}

fn standing(reply: Vec<Value>) -> Result<Standing> {
    if let [_, Value::BulkString(reason)] = reply.as_slice() {
        let code = String::from_utf8_lossy(reason);
        let reason = EndReason::from_code(&code).ok_or_else(|| strange("resolve", &code))?;
        return Ok(Standing::Ended(reason));
    }
    let Tagged(tag, [a, b, _]) = Tagged::read(reply)?;
    Ok(match tag.as_str() {
        "w" => Standing::At(Place::Waiting { position: a }),
        "e" => Standing::At(Place::Entered { at: a, expires_at: b }),
        "r" => Standing::Restarted,
        "n" => Standing::NotFound,
        "f" => Standing::Forgotten,
        other => return Err(strange("resolve", other)),
    })
}

type Fronts = (u64, u64);
type Sizes = (u64, u64, u64);
type Changes = (Vec<String>, u64, bool);

/// Flat, as the script's head says; in groups here because tuples are read up to a length.
struct SnapshotReply {
    hash: Hash,
    fronts: Fronts,
    sizes: Sizes,
    rate: Vec<(u64, u32)>,
    changes: Changes,
}

impl FromRedisValue for SnapshotReply {
    fn from_redis_value(value: Value) -> std::result::Result<Self, ::redis::ParsingError> {
        let (hash, front, frontier, waiting, returning, entered, rate, changes, read, more) =
            from_redis_value(value)?;
        let (fronts, sizes) = ((front, frontier), (waiting, returning, entered));
        Ok(Self { hash, fronts, sizes, rate, changes: (changes, read, more) })
    }
}

pub(super) fn snapshot(id: &ItemId, reply: Value) -> Result<Option<LineSnapshot>> {
    if matches!(&reply, Value::Array(parts) if parts.is_empty()) {
        return Ok(None);
    }
    let SnapshotReply { hash, fronts, sizes, rate, changes } = decode(reply)?;
    let base: u64 = fields::number(&hash, "base")?;
    let (valid_from, tail) = (fields::number(&hash, "validFrom")?, fields::number(&hash, "tail")?);
    let ended = fields::maybe(&hash, "ended")?.unwrap_or(0);
    let moves = hash.get("moves").and_then(|moves| Moves::parse(moves));
    let ((front, frontier), (waiting, returning, entered)) = (fronts, sizes);
    let (changes, read, more) = changes;
    let (departed, reclaimed) = read_changes(&changes)?;
    Ok(fields::item(id, hash)?.map(|item| LineSnapshot {
        item,
        base: Number(base),
        valid_from: Number(valid_from),
        front: Number(front),
        frontier: Number(frontier),
        tail: Number(tail),
        waiting,
        returning,
        entered,
        ended,
        rate: Rate::new(rate).with_moves(moves),
        departed,
        reclaimed,
        cursor: DepartedCursor { base, read },
        more,
    }))
}

type Ranges = Vec<(Number, Number)>;

/// A change is a number that departed, or `+from:to`.
fn read_changes(changes: &[String]) -> Result<(Vec<Number>, Ranges)> {
    let (mut departed, mut reclaimed) = (Vec::new(), Vec::new());
    for change in changes {
        let number = |text: &str| text.parse().map(Number).map_err(|_| strange("snapshot", change));
        match change.strip_prefix('+').and_then(|range| range.split_once(':')) {
            Some((from, to)) => reclaimed.push((number(from)?, number(to)?)),
            None => departed.push(number(change)?),
        }
    }
    Ok((departed, reclaimed))
}

pub(super) fn counts(id: &ItemId, counted: Vec<u64>) -> Option<Counts> {
    let [waiting, returning, missed, entered, base, frontier, tail, ref totals @ ..] = counted[..]
    else {
        return None;
    };
    let &[joined, admitted, ended, completed, expired, left, abandoned] = totals else {
        return None;
    };
    Some(Counts {
        item: id.clone(),
        waiting,
        returning,
        missed,
        entered,
        base: Number(base),
        frontier: Number(frontier),
        tail: Number(tail),
        totals: Totals { joined, admitted, ended, completed, expired, left, abandoned },
    })
}

/// A notice is kept as the time it was posted at, a space, and its text.
pub(super) fn notices(kept: Hash, oldest: Millis) -> Result<Vec<Notice>> {
    let notice = |(who, kept): (String, String)| {
        let (at, text) = kept.split_once(' ').ok_or_else(|| strange("a notice", &kept))?;
        let at = at.parse().map_err(|_| strange("a notice", at))?;
        Ok(Notice { who, text: text.to_owned(), at })
    };
    let mut notices = kept.into_iter().map(notice).collect::<Result<Vec<_>>>()?;
    notices.retain(|notice| notice.at >= oldest);
    notices.sort_unstable_by(|one, other| one.who.cmp(&other.who));
    Ok(notices)
}

/// A script that looks back answers numbers, or `slices` and how far back it must look.
fn sliced<T: FromRedisValue>(reply: Value) -> Result<Sliced<T>> {
    match &reply {
        Value::Array(parts) if matches!(parts.first(), Some(Value::BulkString(_))) => {
            let (_, seconds): (String, u32) = decode(reply)?;
            Ok(Sliced::Needs(seconds))
        }
        _ => Ok(Sliced::Done(decode(reply)?)),
    }
}

pub(super) fn admission(reply: Value) -> Result<Sliced<Admission>> {
    Ok(match sliced(reply)? {
        Sliced::Done((admitted, missed, remaining, more, outbox_full)) => {
            Sliced::Done(Admission { admitted, missed, remaining, more, outbox_full })
        }
        Sliced::Needs(seconds) => Sliced::Needs(seconds),
    })
}

pub(super) fn swept(reply: Value) -> Result<Sliced<Sweep>> {
    Ok(match sliced(reply)? {
        Sliced::Done((abandoned, cursor)) => {
            Sliced::Done(Sweep { abandoned, cursor: Number(cursor) })
        }
        Sliced::Needs(seconds) => Sliced::Needs(seconds),
    })
}

type ExpiryReply = (u32, u32, bool, bool, bool);

pub(super) fn expiry(reply: ExpiryReply) -> Expiry {
    let (expired, abandoned, more, active, front_is_above_base) = reply;
    Expiry { expired, abandoned, more, active, front_is_above_base }
}

pub(super) fn outbox(entries: Vec<(String, Hash)>) -> Result<Vec<OutboxBatch>> {
    entries.into_iter().map(|(id, fields)| batch(id, &fields)).collect()
}

fn batch(id: String, fields: &Hash) -> Result<OutboxBatch> {
    let item = item_id(fields.get("i").map_or("", String::as_str))?;
    let at: Millis = fields::number(fields, "t")?;
    let words = |field| fields.get(field).map(|text| text.split(' ').collect::<Vec<_>>());
    let events = match (words("a"), words("c")) {
        (Some(people), None) => {
            let expires_at = fields::number(fields, "e")?;
            let activated = |pair: &[&str]| {
                let (user, number) = ticket(pair)?;
                Ok(LineEvent::Activated { user, number, at, expires_at })
            };
            people.chunks(2).map(activated).collect::<Result<_>>()?
        }
        (None, Some(people)) => {
            people.chunks(3).map(|one| closed(one, at)).collect::<Result<_>>()?
        }
        _ => return Err(Error::corrupt("an outbox record of no known kind")),
    };
    Ok(OutboxBatch { id, item, epoch: epoch(fields)?, events })
}

/// None where a pod wrote, or a release that did not write it down.
fn epoch(fields: &Hash) -> Result<Option<Epoch>> {
    match fields.get("p").map(String::as_str) {
        None | Some("") => Ok(None),
        Some(_) => fields::number(fields, "p").map(Epoch).map(Some),
    }
}

fn closed(words: &[&str], at: Millis) -> Result<LineEvent> {
    let (user, number) = ticket(words)?;
    let reason = words.get(2).and_then(|code| EndReason::from_code(code));
    let reason = reason.ok_or_else(|| Error::corrupt("an end without a reason"))?;
    Ok(LineEvent::Closed { user, number, at, reason })
}

fn ticket(words: &[&str]) -> Result<(UserId, Number)> {
    let user = words.first().and_then(|user| UserId::parse_stored(user).ok());
    let number = words.get(1).and_then(|number| number.parse().ok()).map(Number);
    user.zip(number).ok_or_else(|| Error::corrupt("an outbox record without user and number"))
}
