//! The audit log: every change by an operator, in the log of this replica and in the store that all
//! replicas share.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::{Extension, Json};
use daegi_domain::{Item, ItemId, Millis, rfc3339};
use daegi_runtime::http::QueryParams;
use percent_encoding::percent_decode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::auth::Identity;
use super::{AdminResult, AdminState, COMPONENT, store_call};

/// The header with the operator's name, percent-encoded where it is not ASCII.
const OPERATOR: &str = "x-operator";

/// Maximum length of an operator's name, in characters.
const MAX_NAME: usize = 64;

/// Maximum length of a recorded text, in characters. Longer ones, such as a logo, are truncated.
const MAX_TEXT: usize = 200;

/// Entries per page unless `limit` is given.
pub(super) const DEFAULT_LIMIT: u32 = 100;

/// The name of the operator who makes a change.
#[derive(Debug)]
pub(super) struct Operator {
    name: Option<String>,
    /// Whether the name was proven by a token of its own. The name beside the admin token is what `X-Operator` says.
    is_verified: bool,
}

/// One change.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AuditEntry")]
struct Entry {
    /// RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    at: String,
    operator: Option<String>,
    /// Whether the operator proved the name with a token.
    #[serde(default)]
    operator_verified: bool,
    /// The replica that handled the call.
    replica: String,
    action: String,
    item_id: Option<ItemId>,
    /// Changed fields before the change.
    from: Value,
    /// Changed fields after it.
    to: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AuditQuery {
    item_id: Option<ItemId>,
    limit: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "entries": [{
    "at": "2026-11-20T19:00:00.000Z",
    "operator": "kim",
    "operatorVerified": true,
    "replica": "scheduler-1",
    "action": "set policy",
    "itemId": "concert",
    "from": { "maxActive": null },
    "to": { "maxActive": 200 },
}] }))]
pub(super) struct AuditPage {
    entries: Vec<Entry>,
}

/// Lists changes, newest first; of one item if `itemId` is given.
pub(super) async fn show(
    State(admin): State<Arc<AdminState>>,
    Extension(identity): Extension<Identity>,
    QueryParams(query): QueryParams<AuditQuery>,
) -> AdminResult<Json<AuditPage>> {
    let entries = store_call(admin.store.read_audit(daegi_store::MAX_AUDIT_ENTRIES)).await?;
    let entries = entries.iter().filter_map(|text| serde_json::from_str::<Entry>(text).ok());
    let entries = entries
        .filter(|entry| query.item_id.is_none() || entry.item_id == query.item_id)
        .filter(|entry| {
            identity.items().is_none()
                || entry.item_id.as_ref().is_some_and(|id| identity.covers(id))
        })
        .take(query.limit.unwrap_or(DEFAULT_LIMIT) as usize);
    Ok(Json(AuditPage { entries: entries.collect() }))
}

/// Returns the text of an entry for a change that no operator made.
pub(crate) fn audit_text(
    replica: &str,
    action: &str,
    (from, to): (Value, Value),
    now: Millis,
) -> String {
    let entry = Entry {
        at: rfc3339(now),
        operator: None,
        operator_verified: false,
        replica: replica.to_owned(),
        action: action.to_owned(),
        item_id: None,
        from,
        to,
    };
    serde_json::to_string(&entry).unwrap_or_default()
}

impl AdminState {
    /// Records a change. The change itself is done, so the call succeeds even if the audit log
    /// cannot be written; the log of this replica has the change in any case.
    pub(super) async fn record_audit(
        &self,
        operator: Operator,
        action: &str,
        item: Option<&ItemId>,
        change: (Value, Value),
    ) {
        self.overview_cache.invalidate();
        let (from, to) = diff(change.0, change.1);
        let name = operator.name().unwrap_or_default();
        let id = item.map_or("", ItemId::as_str);
        tracing::info!(admin.call = action, operator = name, item.id = id, %from, %to, "admin change");
        let entry = Entry {
            at: rfc3339(self.clock.now_ms()),
            operator_verified: operator.is_verified,
            operator: operator.name,
            replica: self.leadership.replica().to_owned(),
            action: action.to_owned(),
            item_id: item.cloned(),
            from,
            to,
        };
        let text = serde_json::to_string(&entry).unwrap_or_default();
        if let Err(error) = store_call(self.store.append_audit(&text)).await {
            tracing::warn!(
                component = COMPONENT,
                %error,
                admin.call = action,
                item.id = id,
                "change applied but not recorded in the audit log"
            );
        }
    }
}

/// Returns the fields of an item that the audit log records.
pub(super) fn audited_fields(item: &Item) -> Value {
    json!({
        "itemName": item.name, "remainCount": item.stock, "waitingQueueEnabled": item.enabled,
        "paused": item.paused, "policy": item.policy,
    })
}

/// Returns only the fields that differ, also in nested objects.
fn diff(from: Value, to: Value) -> (Value, Value) {
    let (Value::Object(from), Value::Object(mut to)) = (&from, to.clone()) else {
        return (truncated(from), truncated(to));
    };
    let (mut before, mut after) = (Map::new(), Map::new());
    for (name, old) in from {
        let new = to.remove(name).unwrap_or(Value::Null);
        if *old != new {
            let (old, new) = diff(old.clone(), new);
            before.insert(name.clone(), old);
            after.insert(name.clone(), new);
        }
    }
    after.extend(to.into_iter().map(|(name, value)| (name, truncated(value))));
    (Value::Object(before), Value::Object(after))
}

fn truncated(value: Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > MAX_TEXT => {
            text.chars().take(MAX_TEXT).chain(['…']).collect::<String>().into()
        }
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, truncated(value))).collect()
        }
        other => other,
    }
}

impl Operator {
    /// Returns the name; `None` beside the admin token without `X-Operator`.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let proven = parts.extensions.get::<Identity>().and_then(|identity| identity.name.as_ref());
        if let Some(name) = proven {
            return Ok(Self { name: Some(name.as_str().to_owned()), is_verified: true });
        }
        let header = parts.headers.get(OPERATOR).map(axum::http::HeaderValue::as_bytes);
        let name = header.map(|header| percent_decode(header).decode_utf8_lossy());
        let name = name.map(|name| {
            let plain = name.chars().filter(|letter| !letter.is_control());
            plain.take(MAX_NAME).collect::<String>().trim().to_owned()
        });
        Ok(Self { name: name.filter(|name| !name.is_empty()), is_verified: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_fields_are_recorded() {
        let from = json!({"a": 1, "b": 2, "policy": {"x": 1, "y": null}, "gone": 1});
        let to = json!({"a": 1, "b": 3, "policy": {"x": 1, "y": 5}, "new": 2});
        let (before, after) = diff(from, to);
        assert_eq!(before, json!({"b": 2, "policy": {"y": null}, "gone": 1}));
        assert_eq!(after, json!({"b": 3, "policy": {"y": 5}, "gone": null, "new": 2}));
        assert_eq!(diff(json!(1), json!(2)), (json!(1), json!(2)));
        let (_, after) = diff(Value::Null, json!({"policy": {"logo": "x".repeat(8_000)}}));
        assert!(after["policy"]["logo"].as_str().unwrap().len() < 300, "{after}");
        assert_eq!(diff(Value::Null, json!({"a": 1})), (Value::Null, json!({"a": 1})));
    }
}
