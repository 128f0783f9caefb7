//! One consumer on a memory store and a broker of its own.

use std::sync::Arc;
use std::time::Duration;

use daegi_consumer::ConsumerDeps;
use daegi_domain::{Item, ItemChanged, ItemId, ItemName, Settings, TicketKeys, Topics};
use daegi_kafka::{EmbeddedBroker, Publisher, Record, Source};
use daegi_runtime::{Clock, Health, Shutdown};
use daegi_store::{MemoryStore, SharedStore};
use daegi_testkit::eventually;

pub(crate) const PARTITIONS: u16 = 4;
pub(crate) const SETTINGS: Settings = Settings { token_count_to_move: 1, tick_ms: 1000 };
pub(crate) const SOON: Duration = Duration::from_secs(60);

pub(crate) struct Pod {
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

impl Pod {
    pub(crate) fn start() -> Self {
        Self::on(Arc::new(MemoryStore::new(PARTITIONS, SETTINGS)))
    }

    /// A pod on this store.
    pub(crate) fn on(store: SharedStore) -> Self {
        Self::with(store, Clock::system())
    }

    /// A pod on this store, with this clock.
    pub(crate) fn with(store: SharedStore, clock: Clock) -> Self {
        let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
        let publisher = Publisher::new(broker.bootstrap_servers()).unwrap();
        let (ticket_keys, shutdown) = (TicketKeys::generate(), Shutdown::new());
        let pod = Self { store, ticket_keys, clock, publisher, shutdown, broker };
        pod.read_as("pods");
        pod
    }

    fn read_as(&self, group: &str) {
        let deps = ConsumerDeps {
            store: self.store.clone(),
            ticket_keys: self.ticket_keys.clone(),
            clock: self.clock.clone(),
            health: Health::new(&self.shutdown).part("consumer"),
        };
        let source = Source {
            brokers: self.broker.bootstrap_servers().to_owned(),
            topics: Topics::default(),
            group: group.to_owned(),
        };
        daegi_consumer::start(Some(source), deps, &self.shutdown).unwrap();
    }

    /// The same pod after a restart in a group that has read nothing yet.
    pub(crate) async fn again_as(mut self, group: &str) -> Self {
        self.end().await;
        self.shutdown = Shutdown::new();
        self.read_as(group);
        self
    }

    pub(crate) async fn publish(&self, records: &[Record]) {
        self.publisher.publish(records).await.unwrap();
    }

    pub(crate) async fn changes(&self, events: &[ItemChanged]) {
        let topics = Topics::default();
        let records: Vec<_> =
            events.iter().map(|event| Record::event(event, &topics).unwrap()).collect();
        self.publish(&records).await;
    }

    /// The address of its broker.
    pub(crate) fn brokers(&self) -> &str {
        self.broker.bootstrap_servers()
    }

    /// Waits until an item is as expected.
    pub(crate) async fn until(&self, id: &str, expected: impl Fn(Option<&Item>) -> bool) {
        eventually(SOON, &format!("{id} is as expected"), async || {
            expected(self.store.item(&item(id)).await.unwrap().as_ref())
        })
        .await;
    }

    pub(crate) async fn stop(self) {
        self.end().await;
    }

    async fn end(&self) {
        self.shutdown.now();
        self.shutdown.wait(SOON).await.unwrap();
        assert!(!self.shutdown.has_failed());
    }
}
