//! What several suites share.

use std::sync::Arc;

use daegi_domain::{ItemChange, ItemId, ItemName, Policy, Settings, UserId};
use daegi_store::{MemoryStore, RedisStore, SharedStore};
use daegi_testkit::Redis;

pub(crate) const PARTITIONS: u16 = 4;
pub(crate) const SETTINGS: Settings = Settings { token_count_to_move: 3, tick_ms: 1000 };
/// A Friday at eight.
pub(crate) const START: u64 = 1_794_600_000_000;

/// Both stores, each under its name; the server lives as long as the answer.
pub(crate) async fn both() -> (Vec<(&'static str, SharedStore)>, Option<Redis>) {
    let memory: SharedStore = Arc::new(MemoryStore::new(PARTITIONS, SETTINGS));
    let mut stores = vec![("memory", memory)];
    let server = daegi_testkit::redis_or_loud().await;
    if let Some(server) = &server {
        let redis = RedisStore::open(&server.url(), PARTITIONS, SETTINGS).await.unwrap();
        stores.push(("redis", Arc::new(redis)));
    }
    (stores, server)
}

pub(crate) fn item(id: &str) -> ItemId {
    ItemId::parse(id).unwrap()
}

pub(crate) fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

pub(crate) fn users(count: usize) -> Vec<UserId> {
    (0..count).map(|index| user(&format!("user-{index}"))).collect()
}

/// An open item with plenty of stock.
pub(crate) fn change(id: &str, policy: Policy) -> ItemChange {
    ItemChange {
        id: item(id),
        name: ItemName::parse("Friday 8 pm").unwrap(),
        stock: 1_000_000,
        enabled: true,
        version: None,
        policy: Some(policy),
    }
}
