//! An item as a hash.

use std::collections::HashMap;
use std::str::FromStr;

use daegi_domain::{
    Branding, ChallengePolicy, CohortRange, Draw, DrawBeacon, Drawn, Guard, Item, ItemControl,
    ItemId, ItemName, LaneName, LanePolicy, Millis, Mode, Number, OnRejoin, Opening, PacePolicy,
    Policy, Reveal,
};

use serde_json::{Map, Value};

use crate::{Error, Result};

/// The share of a lane that is served before those with a weight.
const FIRST: &str = "first";

/// A hash as `HGETALL` returns it.
pub(super) type Hash = HashMap<String, String>;

/// Writes an absent value as empty text, which is no valid value of any field.
pub(super) fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Returns the fields of a policy, named as in its JSON; last those of [`opening_and_lanes`].
pub(super) fn policy(policy: &Policy) -> Vec<(&'static str, String)> {
    let mode = match policy.mode {
        Mode::Always => "always",
        Mode::Auto => "auto",
    };
    let on_rejoin = match policy.on_rejoin {
        OnRejoin::Keep => "keep",
        OnRejoin::Requeue => "requeue",
    };
    let guard = match policy.guard {
        Guard::Offline => "offline",
        Guard::Online => "online",
    };
    let challenge = match policy.challenge {
        ChallengePolicy::Off => "off",
        ChallengePolicy::Pow => "pow",
        ChallengePolicy::Widget => "widget",
    };
    let first_quota = policy.pace.adaptive().map(|pace| pace.first_quota(policy.mode));
    let mut fields = vec![
        ("mode", mode.to_owned()),
        ("pace", pace(&policy.pace)),
        ("paceFirst", optional(first_quota)),
        ("tokensPerTick", optional(policy.tokens_per_tick)),
        ("maxActive", optional(policy.max_active)),
        ("maxWaiting", optional(policy.max_waiting)),
        ("admitUpToStock", u8::from(policy.admit_up_to_stock).to_string()),
        ("passTtlSeconds", policy.pass_ttl_seconds.to_string()),
        ("graceSeconds", policy.grace_seconds.to_string()),
        ("missedKeepSeconds", policy.missed_keep_seconds.to_string()),
        ("onRejoin", on_rejoin.to_owned()),
        ("guard", guard.to_owned()),
        ("challenge", challenge.to_owned()),
        ("entryUrl", optional(policy.entry_url.as_ref())),
        ("page", page(&policy.page)),
    ];
    fields.extend(opening_and_lanes(policy));
    fields
}

/// Returns the fields that a change of an existing item keeps: the opening as JSON, its times in Unix
/// milliseconds for the scripts, the lanes, and the round of the beacon.
pub(super) fn opening_and_lanes(policy: &Policy) -> [(&'static str, String); 6] {
    let opening = policy.opening.as_ref();
    let json = opening.map(opening_json).unwrap_or_default();
    let time = |time: fn(&Opening) -> Option<Millis>| optional(opening.and_then(time));
    [
        ("opening", json),
        ("opensAt", time(|opening| opening.opens_at)),
        ("lobbyAt", time(|opening| opening.lobby_at)),
        ("closesAt", time(|opening| opening.closes_at)),
        ("lanes", lanes(&policy.lanes)),
        ("beaconRound", optional(opening.and_then(Opening::beacon_round))),
    ]
}

/// Writes an opening as JSON. A beacon of null is left out, because a release without beacons rejects the name.
fn opening_json(opening: &Opening) -> String {
    let mut json = serde_json::to_value(opening).unwrap_or_default();
    if let Some(fields) = json.as_object_mut().filter(|_| opening.beacon.is_none()) {
        fields.remove("beacon");
    }
    json.to_string()
}

/// Writes lanes as text that scripts read, too: `members:20 vip:first`.
fn lanes(lanes: &[LanePolicy]) -> String {
    let share = |lane: &LanePolicy| {
        if lane.first { FIRST.to_owned() } else { lane.weight.to_string() }
    };
    let words: Vec<_> = lanes.iter().map(|lane| format!("{}:{}", lane.name, share(lane))).collect();
    words.join(" ")
}

/// Reads the lanes. An item of a release without this field has none.
fn read_lanes(hash: &Hash) -> Result<Vec<LanePolicy>> {
    let corrupt = |word: &str| Error::corrupt(format!("an item with the lane {word:?}"));
    let lane = |word: &str| {
        let (name, share) = word.split_once(':').ok_or_else(|| corrupt(word))?;
        let first = share == FIRST;
        let weight = if first { 0 } else { share.parse().map_err(|_| corrupt(word))? };
        let name = LaneName::parse(name).map_err(|_| corrupt(word))?;
        Ok(LanePolicy { name, weight, first })
    };
    hash.get("lanes").into_iter().flat_map(|text| text.split_whitespace()).map(lane).collect()
}

/// Returns the fields of a line whose opening is still ahead.
pub(super) fn new_draw(reveal: Option<Reveal>) -> [(&'static str, String); 11] {
    let reveal = reveal.map(|reveal| hex::encode(reveal.0)).unwrap_or_default();
    let empty = String::new;
    [
        ("openedAt", empty()),
        ("closedAt", empty()),
        ("reveal", reveal),
        ("cohortFirst", empty()),
        ("cohortSize", empty()),
        ("cohortServed", "0".to_owned()),
        ("lobbyFirst", empty()),
        ("drawRoot", empty()),
        ("drawBeacon", empty()),
        ("drawSeed", empty()),
        ("beaconSignature", empty()),
    ]
}

/// Returns the fields of the product service.
pub(super) fn product(control: &ItemControl) -> Vec<(&'static str, String)> {
    let mut fields = vec![("version", control.version.to_string())];
    if let Some(position) = control.position {
        fields.push(("readOffset", position.offset.to_string()));
        fields.push(("readAt", position.at.to_string()));
    }
    if let Some(item) = &control.item {
        fields.push(("name", item.name.as_str().to_owned()));
        fields.push(("stock", item.stock.to_string()));
        fields.push(("enabled", u8::from(item.enabled).to_string()));
    }
    fields
}

/// Returns the fields of the settings that survive a data loss.
pub(super) fn settings(item: &Item) -> Vec<(&'static str, String)> {
    let draw = item.draw.as_ref();
    let cohort = draw.and_then(|draw| draw.cohort);
    let drawn = draw.and_then(|draw| draw.drawn);
    let signature = draw.and_then(|draw| draw.beacon).and_then(|beacon| beacon.signature);
    let hash = |bytes: Option<[u8; 32]>| bytes.map(hex::encode).unwrap_or_default();
    let mut fields = policy(&item.policy);
    fields.extend([
        // The rate starts again.
        ("paceState", String::new()),
        ("paceQuota", String::new()),
        ("paused", u8::from(item.paused).to_string()),
        ("createdAt", optional(item.created_at)),
        ("openedAt", optional(item.opened_at)),
        ("closedAt", optional(item.closed_at)),
        ("reveal", hash(draw.map(|draw| draw.reveal.0))),
        ("cohortFirst", optional(cohort.map(|cohort| cohort.first.0))),
        ("cohortSize", optional(cohort.map(|cohort| cohort.size))),
        ("drawRoot", hash(draw.and_then(|draw| draw.root))),
        ("drawBeacon", hash(drawn.and_then(|drawn| drawn.beacon))),
        ("drawSeed", hash(drawn.map(|drawn| drawn.seed))),
        ("beaconSignature", signature.map(hex::encode).unwrap_or_default()),
    ]);
    fields
}

/// Reads the opening. An item of a release without this field has none.
fn read_opening(hash: &Hash) -> Result<Option<Opening>> {
    let Some(json) = hash.get("opening").filter(|json| !json.is_empty()) else { return Ok(None) };
    serde_json::from_str(json)
        .map(Some)
        .map_err(|error| Error::corrupt(format!("an item whose opening cannot be read: {error}")))
}

/// Reads the draw of an opening with the order `draw`.
fn read_draw(hash: &Hash) -> Result<Option<Draw>> {
    let Some(reveal) = hash_of(hash, "reveal")? else { return Ok(None) };
    let cohort = maybe(hash, "cohortFirst")?.zip(maybe(hash, "cohortSize")?);
    let root = hash_of(hash, "drawRoot")?;
    let result = root.zip(hash_of(hash, "drawSeed")?);
    let beacon = hash_of(hash, "drawBeacon")?;
    let signature = hash_of(hash, "beaconSignature")?;
    Ok(Some(Draw {
        reveal: Reveal(reveal),
        cohort: cohort.map(|(first, size)| CohortRange { first: Number(first), size }),
        root,
        beacon: maybe(hash, "beaconRound")?.map(|round| DrawBeacon { round, signature }),
        drawn: result.map(|(root, seed)| Drawn { root, beacon, seed }),
    }))
}

/// Reads a field of `N` bytes as hexadecimal text that may be missing.
fn hash_of<const N: usize>(hash: &Hash, field: &str) -> Result<Option<[u8; N]>> {
    let text = hash.get(field).filter(|text| !text.is_empty());
    text.map(|text| bytes(text)).transpose()
}

/// Reads `N` bytes of hexadecimal text.
pub(super) fn bytes<const N: usize>(text: &str) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes)
        .map_err(|_| Error::corrupt(format!("{text:?} is not hexadecimal text of {N} bytes")))?;
    Ok(bytes)
}

/// Writes a pace as one JSON field. Empty text is a fixed one.
fn pace(pace: &PacePolicy) -> String {
    pace.adaptive().and_then(|pace| serde_json::to_string(pace).ok()).unwrap_or_default()
}

/// Reads the pace. An item of a release without this field has a fixed one.
fn read_pace(hash: &Hash) -> Result<PacePolicy> {
    match hash.get("pace").map(String::as_str) {
        None | Some("") => Ok(PacePolicy::Fixed),
        Some(json) => serde_json::from_str(json)
            .map(PacePolicy::Adaptive)
            .map_err(|error| Error::corrupt(format!("an item whose pace cannot be read: {error}"))),
    }
}

/// Writes the branding as one JSON field, because scripts do not read it. Empty text is the default. Fields with their
/// default are left out, so that pods of the last release, which reject unknown fields, read an item without new ones.
fn page(branding: &Branding) -> String {
    let fields = |branding: &Branding| match serde_json::to_value(branding) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let defaults = fields(&Branding::default());
    let mut custom = fields(branding);
    custom.retain(|name, value| defaults.get(name) != Some(value));
    if custom.is_empty() { String::new() } else { Value::Object(custom).to_string() }
}

/// Reads the branding. An item of a release without this field has the default.
fn read_page(hash: &Hash) -> Result<Branding> {
    match hash.get("page").map(String::as_str) {
        None | Some("") => Ok(Branding::default()),
        Some(json) => serde_json::from_str(json)
            .map_err(|error| Error::corrupt(format!("an item whose page cannot be read: {error}"))),
    }
}

/// Reads an item. Returns `None` if there is none or it was removed.
pub(super) fn item(id: &ItemId, hash: Hash) -> Result<Option<Item>> {
    if hash.get("removed").is_none_or(|removed| removed != "0") {
        return Ok(None);
    }
    let text = |field| text(&hash, field);
    Ok(Some(Item {
        id: id.clone(),
        name: ItemName::parse(text("name")?).map_err(|error| Error::corrupt(error.to_string()))?,
        stock: number(&hash, "stock")?,
        enabled: text("enabled")? == "1",
        paused: text("paused")? == "1",
        recovering_until: maybe(&hash, "recoveringUntil")?.unwrap_or(0),
        hold_new_until: maybe(&hash, "behindUntil")?.unwrap_or(0),
        held_until: maybe(&hash, "heldUntil")?.unwrap_or(0),
        opened_at: maybe(&hash, "openedAt")?,
        closed_at: maybe(&hash, "closedAt")?,
        draw: read_draw(&hash)?,
        version: number(&hash, "version")?,
        revision: number(&hash, "revision")?,
        control_version: maybe(&hash, "controlVersion")?.unwrap_or(0),
        created_at: maybe(&hash, "createdAt")?,
        updated_at: maybe(&hash, "updatedAt")?,
        // A state of another release is left out: the leader starts again.
        pace: hash.get("paceState").and_then(|state| state.parse().ok()),
        policy: Policy {
            pace: read_pace(&hash)?,
            mode: if text("mode")? == "auto" { Mode::Auto } else { Mode::Always },
            tokens_per_tick: maybe(&hash, "tokensPerTick")?,
            max_active: maybe(&hash, "maxActive")?,
            max_waiting: maybe(&hash, "maxWaiting")?,
            admit_up_to_stock: text("admitUpToStock")? == "1",
            pass_ttl_seconds: number(&hash, "passTtlSeconds")?,
            grace_seconds: number(&hash, "graceSeconds")?,
            missed_keep_seconds: number(&hash, "missedKeepSeconds")?,
            on_rejoin: match text("onRejoin")? {
                "requeue" => OnRejoin::Requeue,
                _ => OnRejoin::Keep,
            },
            // An item of a release without this field has the default.
            guard: match hash.get("guard").map(String::as_str) {
                Some("online") => Guard::Online,
                _ => Guard::Offline,
            },
            // As `guard`.
            challenge: match hash.get("challenge").map(String::as_str) {
                Some("pow") => ChallengePolicy::Pow,
                Some("widget") => ChallengePolicy::Widget,
                _ => ChallengePolicy::Off,
            },
            entry_url: maybe(&hash, "entryUrl")?,
            opening: read_opening(&hash)?,
            lanes: read_lanes(&hash)?,
            page: read_page(&hash)?,
        },
    }))
}

fn text<'a>(hash: &'a Hash, field: &str) -> Result<&'a str> {
    let value = hash.get(field).map(String::as_str);
    value.ok_or_else(|| Error::corrupt(format!("an item without {field}")))
}

/// Reads a field that must exist.
pub(super) fn number<T: FromStr>(hash: &Hash, field: &str) -> Result<T> {
    let value = text(hash, field)?;
    value.parse().map_err(|_| Error::corrupt(format!("an item whose {field} is {value:?}")))
}

/// Reads a field that may be missing.
pub(super) fn maybe<T: FromStr>(hash: &Hash, field: &str) -> Result<Option<T>> {
    match hash.get(field).map(String::as_str) {
        None | Some("") => Ok(None),
        Some(_) => number(hash, field).map(Some),
    }
}
