//! Maps each event to its topic and key.

use daegi_domain::{
    ControlChanged, ItemChanged, ItemId, LineClosed, LineOpened, OrderClosed, TokenActivated,
    TokenClosed, Topic,
};
use schemars::JsonSchema;
use serde::Serialize;

/// An event on the wire. The key is the item, so that the events of one item stay in order.
pub trait Event: Serialize + JsonSchema {
    /// The topic.
    const TOPIC: Topic;

    /// Returns the item, which is the key.
    fn item(&self) -> &ItemId;

    /// Returns the event id; every repeat has the same.
    fn id(&self) -> String;

    /// Returns when it happened (RFC 3339).
    fn time(&self) -> &str;
}

impl Event for TokenActivated {
    const TOPIC: Topic = Topic::TokenActivated;

    fn item(&self) -> &ItemId {
        &self.item_id
    }
    fn id(&self) -> String {
        self.event_id.to_string()
    }
    fn time(&self) -> &str {
        &self.activated_at
    }
}

impl Event for TokenClosed {
    const TOPIC: Topic = Topic::TokenClosed;

    fn item(&self) -> &ItemId {
        &self.item_id
    }
    fn id(&self) -> String {
        self.event_id.to_string()
    }
    fn time(&self) -> &str {
        &self.closed_at
    }
}

impl Event for LineOpened {
    const TOPIC: Topic = Topic::LineOpened;

    fn item(&self) -> &ItemId {
        &self.item_id
    }
    fn id(&self) -> String {
        self.event_id.to_string()
    }
    fn time(&self) -> &str {
        &self.opened_at
    }
}

impl Event for LineClosed {
    const TOPIC: Topic = Topic::LineClosed;

    fn item(&self) -> &ItemId {
        &self.item_id
    }
    fn id(&self) -> String {
        self.event_id.to_string()
    }
    fn time(&self) -> &str {
        &self.closed_at
    }
}

impl Event for ControlChanged {
    const TOPIC: Topic = Topic::ControlChanged;

    fn item(&self) -> &ItemId {
        &self.item_id
    }
    /// A version identifies one state of the settings of one item.
    fn id(&self) -> String {
        format!("{}:{}", self.item_id, self.control_version)
    }
    fn time(&self) -> &str {
        &self.changed_at
    }
}

impl Event for ItemChanged {
    const TOPIC: Topic = Topic::ItemChanged;

    fn item(&self) -> &ItemId {
        &self.item_id
    }
    /// A version identifies one change of one item.
    fn id(&self) -> String {
        format!("{}:{}", self.item_id, self.version)
    }
    fn time(&self) -> &str {
        &self.occurred_at
    }
}

impl Event for OrderClosed {
    const TOPIC: Topic = Topic::OrderClosed;

    fn item(&self) -> &ItemId {
        &self.item_id
    }
    fn id(&self) -> String {
        self.event_id.clone()
    }
    fn time(&self) -> &str {
        &self.occurred_at
    }
}
