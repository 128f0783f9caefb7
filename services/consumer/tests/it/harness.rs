//! One consumer with its own store and embedded broker.

use std::sync::Arc;
use std::time::Duration;

use daegi_consumer::ConsumerDeps;
use daegi_domain::{Item, ItemChanged, ItemId, ItemName, Settings, TicketKeys, Topics};
use daegi_kafka::{ConsumerConfig, EmbeddedBroker, Publisher, Record};
use daegi_runtime::{Clock, Health, Shutdown};
use daegi_store::{MemoryStore, SharedStore};
use daegi_testkit::eventually;

pub(crate) const PARTITIONS: u16 = 4;
pub(crate) const SETTINGS: Settings = Settings { token_count_to_move: 1, tick_ms: 1000 };
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct ConsumerHarness {
    pub(crate) store: SharedStore,
    pub(crate) ticket_keys: TicketKeys,
    clock: Clock,
    publisher: Publisher,
    shutdown: Shutdown,
    broker: EmbeddedBroker,
}

pub(crate) fn item(id: &str) -> ItemId {
    ItemId::parse(id).unwrap()
}

pub(crate) fn changed(id: &str, stock: u32, version: u64) -> ItemChanged {
    ItemChanged {
        item_id: item(id),
        item_name: ItemName::parse("Friday 8 pm").unwrap(),
        remain_count: stock,
        waiting_queue_enabled: true,
        is_waiting_queue_target_item: true,
        version,
        occurred_at: "2026-01-01T00:00:00Z".into(),
    }
}

impl ConsumerHarness {
    pub(crate) fn start() -> Self {
        Self::with_store(Arc::new(MemoryStore::new(PARTITIONS, SETTINGS)))
    }

    /// A consumer on this store.
    pub(crate) fn with_store(store: SharedStore) -> Self {
        Self::with_clock(store, Clock::system())
    }

    /// A consumer on this store with this clock.
    pub(crate) fn with_clock(store: SharedStore, clock: Clock) -> Self {
        let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
        let publisher = Publisher::new(broker.bootstrap_servers()).unwrap();
        let (ticket_keys, shutdown) = (TicketKeys::generate(), Shutdown::new());
        let harness = Self { store, ticket_keys, clock, publisher, shutdown, broker };
        harness.start_as("consumers");
        harness
    }

    fn start_as(&self, group: &str) {
        let deps = ConsumerDeps {
            store: self.store.clone(),
            ticket_keys: self.ticket_keys.clone(),
            clock: self.clock.clone(),
            health: Health::new(&self.shutdown).component("consumer"),
        };
        let config = ConsumerConfig {
            brokers: self.broker.bootstrap_servers().into(),
            topics: Topics::default(),
            group: group.to_owned(),
        };
        daegi_consumer::start(Some(config), deps, &self.shutdown).unwrap();
    }

    /// Restarts the consumer in a group that has read nothing yet.
    pub(crate) async fn restart_as(mut self, group: &str) -> Self {
        self.end().await;
        self.shutdown = Shutdown::new();
        self.start_as(group);
        self
    }

    pub(crate) async fn publish(&self, records: &[Record]) {
        self.publisher.publish(records).await.unwrap();
    }

    pub(crate) async fn changes(&self, events: &[ItemChanged]) {
        let topics = Topics::default();
        let records: Vec<_> =
            events.iter().map(|event| Record::from_event(event, &topics).unwrap()).collect();
        self.publish(&records).await;
    }

    /// The address of its broker.
    pub(crate) fn brokers(&self) -> &str {
        self.broker.bootstrap_servers()
    }

    /// Waits until an item is as expected.
    pub(crate) async fn until(&self, id: &str, expected: impl Fn(Option<&Item>) -> bool) {
        eventually(TEST_TIMEOUT, &format!("{id} is as expected"), async || {
            expected(self.store.item(&item(id)).await.unwrap().as_ref())
        })
        .await;
    }

    pub(crate) async fn stop(self) {
        self.end().await;
    }

    async fn end(&self) {
        self.shutdown.stop_now();
        self.shutdown.wait(TEST_TIMEOUT).await.unwrap();
        assert!(!self.shutdown.has_failed());
    }
}
