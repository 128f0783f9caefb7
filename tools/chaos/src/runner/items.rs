//! The items of a run: several lines of every kind, so that every fault hits calls in progress.

use serde_json::{Value, json};

use crate::history::{ItemSetup, LaneSetup};

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
    /// Names and weights of lanes; without a weight a lane is first.
    lanes: &'static [(&'static str, Option<u32>)],
    has_opening: bool,
}

pub(crate) const UNLIMITED: (u32, u32) = (100_000, 100_000);

/// No kind has a grace period, so that every admission out of order is a violation.
pub(super) const ITEM_KINDS: [ItemKind; 7] = [
    // A low rate keeps a long line, so that a stale leader always has tickets to admit.
    ItemKind::new("arena", 8, "always", Some(200), UNLIMITED, 1),
    ItemKind::new("club", 4, "always", Some(4), UNLIMITED, 2),
    ItemKind::new("festival", 2, "auto", Some(8), UNLIMITED, 2),
    ItemKind::new("opera", 4, "always", None, (5, 5), 2),
    ItemKind::new("drop", 2, "always", None, (2, 10), 2),
    // A low rate, so that all lanes have tickets for a long time.
    ItemKind::new("fair", 2, "always", Some(200), UNLIMITED, 1).with_lanes(&[
        ("members", Some(20)),
        ("press", Some(10)),
        ("vip", None),
    ]),
    ItemKind::new("premiere", 2, "always", Some(200), UNLIMITED, 2).with_opening(),
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
        let (lanes, has_opening): (&[_], _) = (&[], false);
        Self { name, count, mode, max_active, stock, tokens_per_tick, lanes, has_opening }
    }

    const fn with_lanes(mut self, lanes: &'static [(&'static str, Option<u32>)]) -> Self {
        self.lanes = lanes;
        self
    }

    /// The lines open during the run, with a draw.
    const fn with_opening(mut self) -> Self {
        self.has_opening = true;
        self
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = String> {
        (1..=self.count).map(|number| format!("{}-{number}", self.name))
    }

    pub(super) fn setup(&self, item: String) -> ItemSetup {
        let lane = |(name, weight): &(&str, _)| LaneSetup { name: (*name).into(), weight: *weight };
        ItemSetup {
            item,
            max_active: self.max_active,
            stock: self.stock.0.into(),
            lanes: self.lanes.iter().map(lane).collect(),
            opening: None,
        }
    }

    /// The body of the admin call, without an opening, which is planned later.
    pub(super) fn admin_json(&self, item: &ItemSetup) -> Value {
        let lanes = self.lanes.iter().map(|(name, weight)| match weight {
            Some(weight) => json!({ "name": name, "weight": weight }),
            None => json!({ "name": name, "first": true }),
        });
        json!({
            "itemName": item.item, "remainCount": item.stock, "waitingQueueEnabled": true,
            "policy": {
                "mode": self.mode, "maxActive": item.max_active, "graceSeconds": 0,
                "passTtlSeconds": PASS_SECONDS, "tokensPerTick": self.tokens_per_tick,
                "lanes": lanes.collect::<Vec<_>>()
            }
        })
    }
}

/// The ids of the items with an opening.
pub(super) fn with_opening() -> Vec<String> {
    ITEM_KINDS.iter().filter(|kind| kind.has_opening).flat_map(ItemKind::ids).collect()
}

/// The ids of all items, those with more users several times.
pub(super) fn by_crowd() -> Vec<String> {
    let times = |kind: &ItemKind| if kind.lanes.is_empty() { 1 } else { 2 };
    ITEM_KINDS.iter().flat_map(|kind| (0..times(kind)).flat_map(|_| kind.ids())).collect()
}
