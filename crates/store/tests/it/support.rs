//! Fixtures that several suites share.

use std::cell::RefCell;
use std::sync::Arc;

use daegi_domain::{
    EndReason, ItemChange, ItemId, ItemName, Number, Policy, Settings, Ticket, UserId,
};
use daegi_store::{
    CONTROL_LOG, Epoch, JoinOutcome, LiveState, MemoryStore, RedisConfig, RedisStore, ReplayStore,
    SharedStore, TicketState,
};
use daegi_testkit::{Redis, RedisCluster, RedisSentinel};

pub(crate) const PARTITIONS: u16 = 4;
pub(crate) const SETTINGS: Settings = Settings { token_count_to_move: 3, tick_ms: 1000 };
/// A Friday at eight.
pub(crate) const START: u64 = 1_794_600_000_000;

/// How Redis is deployed.
pub(crate) enum Topology {
    One(Redis),
    Sentinel(RedisSentinel),
    Cluster(RedisCluster),
}

thread_local! {
    /// The only store of [`both`], while a suite runs again on another topology.
    static OTHER_REDIS: RefCell<Option<RedisConfig>> = const { RefCell::new(None) };
}

impl Topology {
    pub(crate) fn config(&self) -> RedisConfig {
        match self {
            Self::One(redis) => redis.config(),
            Self::Sentinel(redis) => redis.config(),
            Self::Cluster(redis) => redis.config(),
        }
    }

    /// Deletes all data.
    pub(crate) async fn flush(&self) {
        match self {
            Self::One(redis) => redis.command::<()>(&["FLUSHALL"]).await.unwrap(),
            Self::Sentinel(redis) => redis.flush().await.unwrap(),
            Self::Cluster(redis) => redis.flush().await.unwrap(),
        }
    }

    /// Copies all data, like a replica that receives nothing from now on. Returns `false` if the topology
    /// has no second database.
    pub(crate) async fn replicate(&self) -> bool {
        let Self::One(redis) = self else { return false };
        let copy = "redis.call('SELECT', 1) redis.call('FLUSHDB') redis.call('SELECT', 0) \
            for _, key in ipairs(redis.call('KEYS', '*')) do \
            redis.call('COPY', key, key, 'DB', 1) end";
        redis.command::<()>(&["EVAL", copy, "0"]).await.unwrap();
        true
    }

    /// Continues with that copy, as if another server had written it.
    pub(crate) async fn fail_over(&self) {
        let Self::One(redis) = self else { return };
        let by_another = "redis.call('SELECT', 1) redis.call('FLUSHDB') redis.call('SELECT', 0) \
            for _, pattern in ipairs({'*:item', '*:lane-*:line'}) do \
            for _, key in ipairs(redis.call('KEYS', pattern)) do \
            redis.call('HSET', key, 'run', 'another') end end \
            for _, key in ipairs(redis.call('KEYS', '*:catalogues')) do \
            for _, log in ipairs(redis.call('HKEYS', key)) do \
            redis.call('HSET', key, log, 'read:another') end end";
        redis.command::<()>(&["SWAPDB", "0", "1"]).await.unwrap();
        redis.command::<()>(&["EVAL", by_another, "0"]).await.unwrap();
    }

    pub(crate) async fn store(&self) -> SharedStore {
        Arc::new(RedisStore::open(self.config(), PARTITIONS, SETTINGS).await.unwrap())
    }
}

/// Runs a test again with this store as the only one of [`both`].
pub(crate) fn run_again_at(redis: RedisConfig, test: fn()) {
    OTHER_REDIS.set(Some(redis));
    test();
    OTHER_REDIS.set(None);
}

/// Both stores with their names. The server stops when the second value is dropped.
pub(crate) async fn both() -> (Vec<(&'static str, SharedStore)>, Option<Redis>) {
    if let Some(redis) = OTHER_REDIS.with_borrow(Clone::clone) {
        let store = RedisStore::open(redis, PARTITIONS, SETTINGS).await.unwrap();
        return (vec![("elsewhere", Arc::new(store))], None);
    }
    let memory: SharedStore = Arc::new(MemoryStore::new(PARTITIONS, SETTINGS));
    let mut stores = vec![("memory", memory)];
    let server = daegi_testkit::redis_or_skip().await;
    if let Some(server) = &server {
        let redis = RedisStore::open(server.config(), PARTITIONS, SETTINGS).await.unwrap();
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

/// An enabled item with a stock that no test uses up.
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

/// Creates the item `concert` and begins a term.
pub(crate) async fn open_concert(store: &SharedStore, policy: Policy) -> (ItemId, Epoch) {
    store.put_item(&change("concert", policy), START).await.unwrap();
    (item("concert"), store.begin_term(0).await.unwrap())
}

/// Records that the settings of items were restored, so that updates of product services are applied.
pub(crate) async fn settings_are_restored(store: &dyn ReplayStore) {
    store.begin_replay(CONTROL_LOG).await.unwrap();
    assert!(store.complete_replay(CONTROL_LOG).await.unwrap());
}

/// Joins one user and returns the number of their ticket.
pub(crate) async fn join_number(store: &SharedStore, id: &ItemId, who: &str, now: u64) -> Number {
    match store.join(id, &[user(who)], &SETTINGS, now).await.unwrap()[0] {
        JoinOutcome::Ticket { number, .. } => number,
        JoinOutcome::Refused(refusal) => panic!("{who} was refused: {refusal:?}"),
    }
}

/// A ticket of this line.
pub(crate) fn ticket_of(id: &ItemId, user: &UserId, number: Number) -> Ticket {
    Ticket::new(id.clone(), user.clone(), number)
}

/// Tickets of this line.
pub(crate) fn tickets_of(id: &ItemId, holders: &[(UserId, Number)]) -> Vec<Ticket> {
    holders.iter().map(|(user, number)| ticket_of(id, user, *number)).collect()
}

/// Ended tickets of this line.
pub(crate) fn ended_tickets(
    id: &ItemId,
    ended: &[(UserId, Number, EndReason)],
) -> Vec<(Ticket, EndReason)> {
    let ended_ticket = |(user, number, reason): &_| (ticket_of(id, user, *number), *reason);
    ended.iter().map(ended_ticket).collect()
}

/// The state of a waiting ticket.
pub(crate) fn waiting(position: u64) -> TicketState {
    TicketState::Live(LiveState::Waiting { position: Some(position) })
}
