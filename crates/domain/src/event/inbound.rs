//! Events of product and order services. Unknown fields are accepted, so that these services can add some;
//! invalid fields are not.

mod de;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EndReason, ItemChange, ItemId, ItemName, UserId};

/// The body of `item.changed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemChanged {
    /// The item id: a string, or an integer, which is read as its decimal digits.
    #[serde(deserialize_with = "de::string_or_integer_id")]
    #[schemars(with = "de::TextOrNumber")]
    pub item_id: ItemId,
    /// The display name of the item.
    pub item_name: ItemName,
    /// The stock: how many are left to sell.
    #[serde(deserialize_with = "de::integer")]
    #[schemars(extend("maximum" = u32::MAX))]
    pub remain_count: u32,
    /// Whether the line is enabled.
    pub waiting_queue_enabled: bool,
    /// Whether the item has a line. `false` removes the item.
    pub is_waiting_queue_target_item: bool,
    /// The version of the item. It grows with each change; an event whose version is not above the stored one has no effect.
    #[serde(deserialize_with = "de::integer")]
    #[schemars(extend("maximum" = u64::MAX))]
    pub version: u64,
    /// When the item changed, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub occurred_at: String,
}

/// The body of `order.closed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderClosed {
    /// Event id. A repeat of this event has the same id.
    pub event_id: String,
    /// The item of the line: a string, or an integer, which is read as its decimal digits.
    #[serde(deserialize_with = "de::string_or_integer_id")]
    #[schemars(with = "de::TextOrNumber")]
    pub item_id: ItemId,
    /// The user who ordered.
    pub user_id: UserId,
    /// The token of the ticket.
    pub token: String,
    /// How the order ended.
    #[serde(deserialize_with = "de::enum_string")]
    pub outcome: Outcome,
    /// When the order ended, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub occurred_at: String,
}

/// How an order ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Outcome {
    /// The order was placed.
    Completed,
    /// The order was cancelled.
    Cancelled,
}

impl ItemChanged {
    /// Returns the change of the item. Its policy stays, because operators set it.
    pub fn change(&self) -> ItemChange {
        ItemChange {
            id: self.item_id.clone(),
            name: self.item_name.clone(),
            stock: self.remain_count,
            enabled: self.waiting_queue_enabled,
            version: Some(self.version),
            policy: None,
        }
    }
}

impl From<Outcome> for EndReason {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::Cancelled => Self::Left,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn changed(id: &Value) -> Result<ItemChanged, serde_json::Error> {
        serde_json::from_value(json!({
            "itemId": id, "itemName": "Friday 8 pm", "remainCount": 3,
            "waitingQueueEnabled": true, "isWaitingQueueTargetItem": true,
            "version": 7, "occurredAt": "2026-01-01T00:00:00Z", "warehouse": "new here"
        }))
    }

    #[test]
    fn an_item_id_may_be_a_number_and_unknown_fields_do_not_matter() {
        assert_eq!(changed(&json!(42)).unwrap().change().id.as_str(), "42");
        assert_eq!(changed(&json!("42")).unwrap(), changed(&json!(42)).unwrap());
    }

    #[test]
    fn a_bad_item_id_says_what_is_wrong() {
        for (id, why) in [
            (json!("a b"), "' '"),
            (json!(-1), "text or a whole number"),
            (json!("~daegi.x"), "reserved"),
        ] {
            let error = changed(&id).unwrap_err().to_string();
            assert!(error.contains(why), "{id}: {error}");
        }
    }
}
