//! The items of a run: several lines of every kind, so that every fault hits calls in progress.

use serde_json::{Value, json};

use crate::history::ItemSetup;

/// Duration of an entry. Some users let it expire.
const PASS_SECONDS: u64 = 8;

/// A kind of item with its policy.
pub(crate) struct ItemKind {
    name: &'static str,
    count: usize,
    mode: &'static str,
    max_active: Option<u64>,
    /// Range of the published stock.
    pub(super) stock: (u32, u32),
    tokens_per_tick: u32,
}

pub(crate) const UNLIMITED: (u32, u32) = (100_000, 100_000);

/// No kind has a grace period, so that every admission out of order is a violation.
pub(super) const ITEM_KINDS: [ItemKind; 5] = [
    // A low rate keeps a long line, so that a stale leader always has tickets to admit.
    ItemKind::new("arena", 8, "always", Some(200), UNLIMITED, 1),
    ItemKind::new("club", 4, "always", Some(4), UNLIMITED, 2),
    ItemKind::new("festival", 2, "auto", Some(8), UNLIMITED, 2),
    ItemKind::new("opera", 4, "always", None, (5, 5), 2),
    ItemKind::new("drop", 2, "always", None, (2, 10), 2),
];

impl ItemKind {
    pub(crate) const fn new(
        name: &'static str,
        count: usize,
        mode: &'static str,
        max_active: Option<u64>,
        stock: (u32, u32),
        tokens_per_tick: u32,
    ) -> Self {
        Self { name, count, mode, max_active, stock, tokens_per_tick }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = String> {
        (1..=self.count).map(|number| format!("{}-{number}", self.name))
    }

    pub(super) fn setup(&self, item: String) -> ItemSetup {
        ItemSetup { item, max_active: self.max_active, stock: self.stock.0.into() }
    }

    /// The body of the admin call.
    pub(super) fn admin_json(&self, item: &ItemSetup) -> Value {
        json!({
            "itemName": item.item, "remainCount": item.stock, "waitingQueueEnabled": true,
            "policy": {
                "mode": self.mode, "maxActive": item.max_active, "graceSeconds": 0,
                "passTtlSeconds": PASS_SECONDS, "tokensPerTick": self.tokens_per_tick
            }
        })
    }
}

/// The ids of all items.
pub(super) fn ids() -> Vec<String> {
    ITEM_KINDS.iter().flat_map(ItemKind::ids).collect()
}
