//! An item as a hash.

use std::collections::HashMap;
use std::str::FromStr;

use daegi_domain::{Branding, Guard, Item, ItemId, ItemName, Mode, OnRejoin, Policy};

use crate::{Error, Result};

/// A hash as `HGETALL` returns it.
pub(super) type Hash = HashMap<String, String>;

/// Writes an absent value as empty text, which is no valid value of any field.
pub(super) fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Returns the fields of a policy, named as in its JSON.
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
    vec![
        ("mode", mode.to_owned()),
        ("tokensPerTick", optional(policy.tokens_per_tick)),
        ("maxActive", optional(policy.max_active)),
        ("maxWaiting", optional(policy.max_waiting)),
        ("admitUpToStock", u8::from(policy.admit_up_to_stock).to_string()),
        ("passTtlSeconds", policy.pass_ttl_seconds.to_string()),
        ("graceSeconds", policy.grace_seconds.to_string()),
        ("missedKeepSeconds", policy.missed_keep_seconds.to_string()),
        ("onRejoin", on_rejoin.to_owned()),
        ("guard", guard.to_owned()),
        ("entryUrl", optional(policy.entry_url.as_ref())),
        ("page", page(&policy.page)),
    ]
}

/// Writes the branding as one JSON field, because scripts do not read it. Empty text is the default.
fn page(branding: &Branding) -> String {
    let custom = Some(branding).filter(|branding| **branding != Branding::default());
    custom.and_then(|branding| serde_json::to_string(branding).ok()).unwrap_or_default()
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
        version: number(&hash, "version")?,
        revision: number(&hash, "revision")?,
        created_at: maybe(&hash, "createdAt")?,
        updated_at: maybe(&hash, "updatedAt")?,
        policy: Policy {
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
            entry_url: maybe(&hash, "entryUrl")?,
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
