//! A scheduler on a memory store, with a manual clock and stepped ticks.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{
    Item, ItemChange, ItemId, ItemName, Lane, LivenessPage, Millis, Number, Policy, Settings,
    Ticket, TicketEvent, TicketKeys, UserId,
};
use daegi_runtime::Clock;
use daegi_scheduler::{Beacons, TickReport, Ticker};
use daegi_store::{
    JoinOutcome, LineCounts, LiveState, MemoryStore, PutOutcome, SharedStore, Store, TicketState,
};

/// A time in 2023, at the start of a liveness slice.
pub(crate) const START: u64 = 1_700_000_010_000;
const PARTITIONS: u16 = 4;
pub(crate) const OUTBOX_MAX: u64 = 100_000;

pub(crate) struct SchedulerHarness {
    pub(crate) store: SharedStore,
    pub(crate) clock: Clock,
    ticker: Ticker,
}

pub(crate) fn store(quota: u32) -> SharedStore {
    memory(quota)
}

pub(crate) fn memory(quota: u32) -> Arc<MemoryStore> {
    let settings = Settings { token_count_to_move: quota, tick_ms: 1000 };
    Arc::new(MemoryStore::new(PARTITIONS, settings))
}

pub(crate) fn item(id: &str) -> ItemId {
    ItemId::parse_stored(id).unwrap()
}

pub(crate) fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

pub(crate) fn policy(json: &str) -> Policy {
    let policy: Policy = serde_json::from_str(json).unwrap();
    policy.check().unwrap();
    policy
}

pub(crate) async fn put(store: &dyn Store, id: &str, stock: u32, policy: Option<Policy>) -> Item {
    put_at(store, id, stock, policy, START).await
}

async fn put_at(
    store: &dyn Store,
    id: &str,
    stock: u32,
    policy: Option<Policy>,
    now: Millis,
) -> Item {
    let change = ItemChange {
        id: item(id),
        name: ItemName::parse("A concert").unwrap(),
        stock,
        enabled: true,
        version: None,
        policy,
    };
    match store.put_item(&change, now).await.unwrap() {
        PutOutcome::Created(item) | PutOutcome::Updated(item) => item,
        PutOutcome::Stale => panic!("an operator's change is never stale"),
    }
}

impl SchedulerHarness {
    /// A scheduler whose leader is in its first term.
    pub(crate) async fn open(quota: u32) -> Self {
        Self::with_outbox(quota, OUTBOX_MAX).await
    }

    /// A scheduler whose clock begins at another time.
    pub(crate) async fn open_at(quota: u32, start: Millis) -> Self {
        Self { clock: Clock::manual(start), ..Self::open(quota).await }
    }

    pub(crate) async fn with_outbox(quota: u32, outbox_max: u64) -> Self {
        let store = store(quota);
        let epoch = store.begin_term(0).await.unwrap();
        Self {
            ticker: Ticker::new(store.clone(), epoch, outbox_max),
            clock: Clock::manual(START),
            store,
        }
    }

    /// Sets the keys of draws.
    pub(crate) fn with_ticket_keys(self, keys: &TicketKeys) -> Self {
        Self { ticker: self.ticker.with_ticket_keys(keys.clone()), ..self }
    }

    /// Sets where the signatures of beacons come from.
    pub(crate) fn with_beacons(self, beacons: Arc<Beacons>) -> Self {
        Self { ticker: self.ticker.with_beacons(beacons), ..self }
    }

    pub(crate) async fn put(&self, id: &str, stock: u32, rules: &str) -> Item {
        put_at(&*self.store, id, stock, Some(policy(rules)), self.clock.now_ms()).await
    }

    pub(crate) async fn join(&self, id: &str, users: &[&str]) -> Vec<Number> {
        let users: Vec<_> = users.iter().map(|name| user(name)).collect();
        self.join_users(id, &users).await
    }

    pub(crate) async fn join_users(&self, id: &str, users: &[UserId]) -> Vec<Number> {
        let settings = self.store.settings().await.unwrap();
        let joined = self.store.join(&item(id), users, &settings, self.clock.now_ms()).await;
        let number = |joined| match joined {
            JoinOutcome::Ticket { number, .. } => number,
            JoinOutcome::Refused(refusal) => panic!("refused: {refusal:?}"),
        };
        joined.unwrap().into_iter().map(number).collect()
    }

    pub(crate) async fn see(&self, id: &str, numbers: impl IntoIterator<Item = Number>) {
        let pages = LivenessPage::of(numbers);
        let now = self.clock.now_ms();
        self.store.mark_seen(&item(id), Lane::STANDARD, &pages, now).await.unwrap();
    }

    pub(crate) async fn tick(&mut self) -> TickReport {
        self.try_tick().await.unwrap()
    }

    pub(crate) async fn try_tick(&mut self) -> daegi_store::Result<TickReport> {
        self.ticker.tick(self.clock.now_ms()).await
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) async fn state(&self, id: &str, name: &str, number: Number) -> TicketState {
        let now = self.clock.now_ms();
        let states = self.store.resolve(&[Ticket::new(item(id), user(name), number)], now).await;
        states.unwrap()[0]
    }

    pub(crate) async fn is_entered(&self, id: &str, name: &str, number: Number) -> bool {
        let state = self.state(id, name, number).await;
        matches!(state, TicketState::Live(LiveState::Entered { .. }))
    }

    pub(crate) async fn counts(&self, id: &str) -> LineCounts {
        self.store.counts(&[item(id)]).await.unwrap().remove(0)
    }

    /// Sets the stock, as a product service does.
    pub(crate) async fn put_stock(&self, id: &str, stock: u32) {
        put_at(&*self.store, id, stock, None, self.clock.now_ms()).await;
    }

    /// Admitted users since the last call.
    pub(crate) async fn take_admitted(&self) -> Vec<String> {
        let admitted = self.admitted().await;
        for partition in 0..PARTITIONS {
            let batches = self.store.outbox_read(partition, None, u32::MAX).await.unwrap();
            let ids: Vec<_> = batches.into_iter().map(|batch| batch.id).collect();
            self.store.outbox_ack(partition, &ids).await.unwrap();
        }
        admitted
    }

    /// Admitted users so far, in the order of their events.
    pub(crate) async fn admitted(&self) -> Vec<String> {
        let mut users = Vec::new();
        for partition in 0..PARTITIONS {
            for batch in self.store.outbox_read(partition, None, u32::MAX).await.unwrap() {
                let activated = batch.events.iter().filter_map(|event| match event {
                    TicketEvent::Admitted { user, .. } => Some(user.to_string()),
                    TicketEvent::Ended { .. } => None,
                });
                users.extend(activated);
            }
        }
        users
    }
}
