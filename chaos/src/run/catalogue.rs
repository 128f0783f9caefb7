//! What people wait for: many lines of every kind, so that whenever a fault comes much is under way.

use serde_json::{Value, json};

use crate::history::ItemSetup;

/// How long an entry lasts. Some people let theirs run out.
const PASS_SECONDS: u64 = 8;

/// A kind of item, and how it is sold.
pub(crate) struct Kind {
    name: &'static str,
    count: usize,
    mode: &'static str,
    max_active: Option<u64>,
    /// The least and the most that the product service announces.
    pub(super) stock: (u32, u32),
    tokens_per_tick: u32,
}

pub(crate) const PLENTY: (u32, u32) = (100_000, 100_000);

/// None has a grace period, so that whoever is let in out of order is let in wrongly.
pub(super) const KINDS: [Kind; 5] = [
    // Its line is as long as its rate is low: there is always somebody whom a stale leader could let in.
    Kind::new("arena", 8, "always", Some(200), PLENTY, 1),
    Kind::new("club", 4, "always", Some(4), PLENTY, 2),
    Kind::new("festival", 2, "auto", Some(8), PLENTY, 2),
    Kind::new("opera", 4, "always", None, (5, 5), 2),
    Kind::new("drop", 2, "always", None, (2, 10), 2),
];

impl Kind {
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

    /// As operators tell it.
    pub(super) fn described(&self, item: &ItemSetup) -> Value {
        json!({
            "itemName": item.item, "remainCount": item.stock, "waitingQueueEnabled": true,
            "policy": {
                "mode": self.mode, "maxActive": item.max_active, "graceSeconds": 0,
                "passTtlSeconds": PASS_SECONDS, "tokensPerTick": self.tokens_per_tick
            }
        })
    }
}

/// Every item.
pub(super) fn ids() -> Vec<String> {
    KINDS.iter().flat_map(Kind::ids).collect()
}
