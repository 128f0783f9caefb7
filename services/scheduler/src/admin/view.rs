//! An item as operators see it.

use daegi_domain::{Item, ItemId, ItemName, LineState, Millis, Policy, Settings};
use serde::Serialize;

use super::{Admin, Answer, ask};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ItemView {
    item_id: ItemId,
    item_name: ItemName,
    remain_count: u32,
    waiting_queue_enabled: bool,
    paused: bool,
    version: u64,
    revision: u64,
    pub(super) line_state: LineState,
    policy: Policy,
}

impl ItemView {
    pub(super) fn new(item: Item, settings: &Settings, now: Millis) -> Self {
        Self {
            line_state: LineState::of(&item, settings, now),
            item_id: item.id,
            item_name: item.name,
            remain_count: item.stock,
            waiting_queue_enabled: item.enabled,
            paused: item.paused,
            version: item.version,
            revision: item.revision,
            policy: item.policy,
        }
    }

    /// With the settings of now, because the state of a line depends on the quota.
    pub(super) async fn now(admin: &Admin, item: Item) -> Answer<Self> {
        let settings = ask(admin.store.settings()).await?;
        Ok(Self::new(item, &settings, admin.clock.now_ms()))
    }
}
