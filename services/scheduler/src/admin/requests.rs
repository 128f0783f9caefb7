//! Request bodies and queries of admin calls. A parsed body is valid except for its policy, whose
//! rules may contradict each other.
//!
//! The bodies repeat their common fields, because serde cannot flatten a struct into one that denies
//! unknown fields.

use daegi_domain::{ItemChange, ItemId, ItemName, Policy, PolicyError};
use daegi_runtime::http::QueryParams;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AdminError, AdminResult};

/// The pairs of a query, in order.
pub(super) type QueryPairs = QueryParams<Vec<(String, String)>>;

/// The body of a call that creates an item.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "itemId": "concert", "itemName": "Friday 8 pm", "remainCount": 500 }))]
pub(super) struct CreateItem {
    item_id: ItemId,
    item_name: ItemName,
    #[schemars(range(max = u32::MAX))]
    remain_count: u32,
    #[serde(default = "enabled")]
    waiting_queue_enabled: bool,
    #[serde(default)]
    policy: Policy,
}

/// The body of a call that replaces a whole item.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = update_example())]
pub(super) struct ReplaceItem {
    item_name: ItemName,
    #[schemars(range(max = u32::MAX))]
    remain_count: u32,
    waiting_queue_enabled: bool,
    #[serde(default)]
    policy: Policy,
}

/// The body of a call that changes an item and keeps its policy.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = update_example())]
pub(super) struct UpdateItem {
    item_name: ItemName,
    #[schemars(range(max = u32::MAX))]
    remain_count: u32,
    waiting_queue_enabled: bool,
}

impl CreateItem {
    pub(super) fn change(self) -> Result<ItemChange, PolicyError> {
        let whole = ReplaceItem {
            item_name: self.item_name,
            remain_count: self.remain_count,
            waiting_queue_enabled: self.waiting_queue_enabled,
            policy: self.policy,
        };
        whole.change(self.item_id)
    }
}

impl ReplaceItem {
    pub(super) fn change(self, id: ItemId) -> Result<ItemChange, PolicyError> {
        let policy = self.policy.with_beacon_round();
        policy.check()?;
        let update = UpdateItem {
            item_name: self.item_name,
            remain_count: self.remain_count,
            waiting_queue_enabled: self.waiting_queue_enabled,
        };
        Ok(ItemChange { policy: Some(policy), ..update.change(id) })
    }
}

impl UpdateItem {
    pub(super) fn change(self, id: ItemId) -> ItemChange {
        ItemChange {
            id,
            name: self.item_name,
            stock: self.remain_count,
            enabled: self.waiting_queue_enabled,
            version: None,
            policy: None,
        }
    }
}

/// Returns all values of the only parameter that a call accepts. Any other parameter is an error, because
/// ignoring a misspelt filter would return everything.
pub(super) fn query_values(query: QueryPairs, name: &str) -> AdminResult<Vec<String>> {
    let mut values = Vec::new();
    for (found, value) in query.0 {
        if found != name {
            let detail = format!("unknown query parameter {found:?}, only {name} is known");
            return Err(AdminError::Invalid(detail));
        }
        values.push(value);
    }
    Ok(values)
}

fn update_example() -> Value {
    json!({ "itemName": "Friday 8 pm", "remainCount": 500, "waitingQueueEnabled": true })
}

fn enabled() -> bool {
    true
}
