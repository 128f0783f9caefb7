//! What operators send about items. Parsed means valid, but for the policy, whose rules may
//! contradict each other.

use daegi_domain::{ItemChange, ItemId, ItemName, Policy, PolicyError};
use serde::Deserialize;

/// The body that creates an item.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewItem {
    item_id: ItemId,
    item_name: ItemName,
    remain_count: u32,
    #[serde(default = "enabled")]
    waiting_queue_enabled: bool,
    #[serde(default)]
    policy: Policy,
}

/// The body that replaces all of an item.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WholeItem {
    item_name: ItemName,
    remain_count: u32,
    waiting_queue_enabled: bool,
    #[serde(default)]
    policy: Policy,
}

/// The body of a change by hand.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ByHand {
    item_name: ItemName,
    remain_count: u32,
    waiting_queue_enabled: bool,
}

impl NewItem {
    pub(super) fn change(self) -> Result<ItemChange, PolicyError> {
        let whole = WholeItem {
            item_name: self.item_name,
            remain_count: self.remain_count,
            waiting_queue_enabled: self.waiting_queue_enabled,
            policy: self.policy,
        };
        whole.change(self.item_id)
    }
}

impl WholeItem {
    pub(super) fn change(self, id: ItemId) -> Result<ItemChange, PolicyError> {
        self.policy.check()?;
        let by_hand = ByHand {
            item_name: self.item_name,
            remain_count: self.remain_count,
            waiting_queue_enabled: self.waiting_queue_enabled,
        };
        Ok(ItemChange { policy: Some(self.policy), ..by_hand.change(id) })
    }
}

impl ByHand {
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

fn enabled() -> bool {
    true
}
