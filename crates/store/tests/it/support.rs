//! What several suites share.

use std::cell::RefCell;
use std::sync::Arc;

use daegi_domain::{ItemChange, ItemId, ItemName, Policy, Settings, UserId};
use daegi_store::{MemoryStore, RedisStore, SharedStore};
use daegi_testkit::{Redis, RedisCluster, RedisSentinel};

pub(crate) const PARTITIONS: u16 = 4;
pub(crate) const SETTINGS: Settings = Settings { token_count_to_move: 3, tick_ms: 1000 };
/// A Friday at eight.
pub(crate) const START: u64 = 1_794_600_000_000;

/// One of the ways people run Redis.
pub(crate) enum Setup {
    One(Redis),
    Sentinel(RedisSentinel),
    Cluster(RedisCluster),
}

thread_local! {
    /// Where [`both`] finds its only store, for a suite that runs again on another set-up.
    static ELSEWHERE: RefCell<Option<String>> = const { RefCell::new(None) };
}

impl Setup {
    pub(crate) fn url(&self) -> String {
        match self {
            Self::One(redis) => redis.url(),
            Self::Sentinel(redis) => redis.url(),
            Self::Cluster(redis) => redis.url(),
        }
    }

    /// Forgets everything.
    pub(crate) async fn flush(&self) {
        match self {
            Self::One(redis) => redis.ask::<()>(&["FLUSHALL"]).await.unwrap(),
            Self::Sentinel(redis) => redis.flush().await.unwrap(),
            Self::Cluster(redis) => redis.flush().await.unwrap(),
        }
    }

    /// Keeps a copy of everything, as a replica does that gets nothing from now on. False where
    /// there is no room for one.
    pub(crate) async fn replicate(&self) -> bool {
        let Self::One(redis) = self else { return false };
        let copy = "redis.call('SELECT', 1) redis.call('FLUSHDB') redis.call('SELECT', 0) \
            for _, key in ipairs(redis.call('KEYS', '*')) do \
            redis.call('COPY', key, key, 'DB', 1) end";
        redis.ask::<()>(&["EVAL", copy, "0"]).await.unwrap();
        true
    }

    /// Goes on with that copy, which another server has written.
    pub(crate) async fn fail_over(&self) {
        let Self::One(redis) = self else { return };
        let by_another = "redis.call('SELECT', 1) redis.call('FLUSHDB') redis.call('SELECT', 0) \
            for _, key in ipairs(redis.call('KEYS', '*:item')) do \
            redis.call('HSET', key, 'run', 'another') end \
            for _, key in ipairs(redis.call('KEYS', '*:catalogues')) do \
            for _, log in ipairs(redis.call('HKEYS', key)) do \
            redis.call('HSET', key, log, 'read:another') end end";
        redis.ask::<()>(&["SWAPDB", "0", "1"]).await.unwrap();
        redis.ask::<()>(&["EVAL", by_another, "0"]).await.unwrap();
    }

    pub(crate) async fn store(&self) -> SharedStore {
        Arc::new(RedisStore::open(&self.url(), PARTITIONS, SETTINGS).await.unwrap())
    }
}

/// Runs a test again on another set-up; its [`both`] is this one store.
pub(crate) fn again_at(url: &str, test: fn()) {
    ELSEWHERE.set(Some(url.to_owned()));
    test();
    ELSEWHERE.set(None);
}

/// Both stores, each under its name; the server lives as long as the answer.
pub(crate) async fn both() -> (Vec<(&'static str, SharedStore)>, Option<Redis>) {
    if let Some(url) = ELSEWHERE.with_borrow(Clone::clone) {
        let store = RedisStore::open(&url, PARTITIONS, SETTINGS).await.unwrap();
        return (vec![("elsewhere", Arc::new(store))], None);
    }
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
