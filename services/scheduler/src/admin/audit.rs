//! Who changed what: every change by an operator, in the log of this replica and in the journal
//! that all replicas share.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use daegi_domain::{Item, ItemId, rfc3339};
use daegi_runtime::http::QueryParams;
use percent_encoding::percent_decode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Admin, Answer, ask};

/// The header in which an operator may say who they are, percent-encoded where it is not ASCII.
const OPERATOR: &str = "x-operator";

/// The longest name of an operator.
const LONGEST: usize = 64;

/// The longest text that is written down whole. A logo is longer, and nobody reads it here.
const LONGEST_TEXT: usize = 200;

/// How many entries are answered where nobody says.
const LIMIT: u32 = 100;

/// Who makes a call, as they say themselves: all operators share one token.
#[derive(Debug)]
pub(super) struct Operator(Option<String>);

/// One change.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    /// RFC 3339.
    at: String,
    operator: Option<String>,
    /// The replica that was asked.
    replica: String,
    action: String,
    item_id: Option<ItemId>,
    /// What differs, before
    from: Value,
    /// and after.
    to: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Asked {
    item_id: Option<ItemId>,
    limit: Option<u32>,
}

#[derive(Debug, Serialize)]
pub(super) struct Journal {
    entries: Vec<Entry>,
}

/// The latest changes first; of one item, if asked.
pub(super) async fn show(
    State(admin): State<Arc<Admin>>,
    QueryParams(asked): QueryParams<Asked>,
) -> Answer<Json<Journal>> {
    let entries = ask(admin.store.journal_read(daegi_store::JOURNAL_KEPT)).await?;
    let entries = entries.iter().filter_map(|text| serde_json::from_str::<Entry>(text).ok());
    let entries = entries
        .filter(|entry| asked.item_id.is_none() || entry.item_id == asked.item_id)
        .take(asked.limit.unwrap_or(LIMIT) as usize);
    Ok(Json(Journal { entries: entries.collect() }))
}

impl Admin {
    /// Writes a change down. The change is done: a journal that cannot be written is no reason
    /// to tell the operator otherwise, and the log of this replica has it in any case.
    pub(super) async fn note(
        &self,
        Operator(operator): Operator,
        action: &str,
        item: Option<&ItemId>,
        change: (Value, Value),
    ) {
        self.pictures.outdated();
        let (from, to) = differing(change.0, change.1);
        let name = operator.as_deref().unwrap_or_default();
        let id = item.map_or("", ItemId::as_str);
        tracing::info!(admin.call = action, operator = name, item.id = id, %from, %to, "admin change");
        let entry = Entry {
            at: rfc3339(self.clock.now_ms()),
            operator,
            replica: self.leadership.replica().to_owned(),
            action: action.to_owned(),
            item_id: item.cloned(),
            from,
            to,
        };
        let text = serde_json::to_string(&entry).unwrap_or_default();
        if let Err(error) = ask(self.store.journal_write(&text)).await {
            tracing::warn!(%error, admin.call = action, "the journal misses a change");
        }
    }
}

/// What there is to know about an item.
pub(super) fn facts(item: &Item) -> Value {
    json!({
        "itemName": item.name, "remainCount": item.stock, "waitingQueueEnabled": item.enabled,
        "paused": item.paused, "policy": item.policy,
    })
}

/// Only what differs, of objects within objects, too.
fn differing(from: Value, to: Value) -> (Value, Value) {
    let (Value::Object(from), Value::Object(mut to)) = (&from, to.clone()) else {
        return (shortened(from), shortened(to));
    };
    let (mut before, mut after) = (Map::new(), Map::new());
    for (name, old) in from {
        let new = to.remove(name).unwrap_or(Value::Null);
        if *old != new {
            let (old, new) = differing(old.clone(), new);
            before.insert(name.clone(), old);
            after.insert(name.clone(), new);
        }
    }
    after.extend(to.into_iter().map(|(name, value)| (name, shortened(value))));
    (Value::Object(before), Value::Object(after))
}

fn shortened(value: Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > LONGEST_TEXT => {
            text.chars().take(LONGEST_TEXT).chain(['…']).collect::<String>().into()
        }
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, shortened(value))).collect()
        }
        other => other,
    }
}

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let said = parts.headers.get(OPERATOR).map(axum::http::HeaderValue::as_bytes);
        let name = said.map(|said| percent_decode(said).decode_utf8_lossy());
        let name = name.map(|name| {
            let plain = name.chars().filter(|letter| !letter.is_control());
            plain.take(LONGEST).collect::<String>().trim().to_owned()
        });
        Ok(Self(name.filter(|name| !name.is_empty())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_written_down() {
        let from = json!({"a": 1, "b": 2, "policy": {"x": 1, "y": null}, "gone": 1});
        let to = json!({"a": 1, "b": 3, "policy": {"x": 1, "y": 5}, "new": 2});
        let (before, after) = differing(from, to);
        assert_eq!(before, json!({"b": 2, "policy": {"y": null}, "gone": 1}));
        assert_eq!(after, json!({"b": 3, "policy": {"y": 5}, "gone": null, "new": 2}));
        assert_eq!(differing(json!(1), json!(2)), (json!(1), json!(2)));
        let (_, after) = differing(Value::Null, json!({"policy": {"logo": "x".repeat(8_000)}}));
        assert!(after["policy"]["logo"].as_str().unwrap().len() < 300, "{after}");
        assert_eq!(differing(Value::Null, json!({"a": 1})), (Value::Null, json!({"a": 1})));
    }
}
