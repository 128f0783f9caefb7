//! The item sync: from the topic into the store, until the last change is there.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use daegi_consumer::ConsumerDeps;
use daegi_domain::{ItemChanged, ItemId, ItemName, TicketKeys, Topic};
use daegi_kafka::Source;
use daegi_runtime::{Clock, Health, Shutdown};
use daegi_store::{SharedStore, partition_of};

use super::bare;
use super::message::{self, Message};
use crate::duel::Round;
use crate::stage::{Stage, renamed};

/// How often the store is asked whether it is there yet.
const GLANCE: Duration = Duration::from_millis(5);

/// How long the consumer may take for everything.
const SOON: Duration = Duration::from_secs(600);

/// How long it may take to end.
const END: Duration = Duration::from_secs(20);

/// What product services say.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Changes {
    /// 1,000 items, whose stock falls and falls.
    Sale,
    /// Every change is another item.
    Catalogue,
}

/// The changes that tell how far the consumer is.
struct Marks {
    /// The first change of each partition of the topic.
    first: Vec<ItemChanged>,
    /// The last one of each item.
    last: BTreeMap<ItemId, ItemChanged>,
    /// The last one of each partition of the topic in each partition of the store: what is read
    /// together is in order only within one of the store's, which go side by side.
    end: Vec<ItemChanged>,
}

/// The consumer on a full topic, then a bare one on the same.
pub(crate) async fn round(stage: &Stage, changes: Changes, count: usize) -> anyhow::Result<Round> {
    let (brokers, topic) = (stage.brokers(), stage.topic().await?);
    bare::publish(&brokers, &topic, &changes.messages(count)?).await?;
    let messages = message::read(&brokers, &topic, count).await?;
    let store = stage.store().await?;
    let marks = Marks::of(&messages, store.partitions())?;
    let daegi = sync(stage, store, &topic, &marks).await?;
    let bare = bare::read(&brokers, &topic, &format!("{topic}-bare"), count).await?;
    stage.remove(&[&topic]).await?;
    Ok(Round { load: message::load(&messages), daegi, bare })
}

/// Runs the consumer until everything is in the store. Joining the group takes both sides the
/// same time and says nothing, so the clock starts with the first effect.
async fn sync(
    stage: &Stage,
    store: SharedStore,
    topic: &str,
    marks: &Marks,
) -> anyhow::Result<Duration> {
    let shutdown = Shutdown::new();
    let source = Source {
        brokers: stage.brokers(),
        topics: renamed(Topic::ItemChanged, topic)?,
        group: format!("{topic}-daegi"),
    };
    let deps = ConsumerDeps {
        store: store.clone(),
        ticket_keys: TicketKeys::generate(),
        clock: Clock::system(),
        health: Health::new(&shutdown).part("consumer"),
    };
    daegi_consumer::start(Some(source), deps, &shutdown)?;
    let took = tokio::time::timeout(SOON, marks.watch(&store)).await.context("too slow")?;
    shutdown.now();
    shutdown.wait(END).await?;
    took
}

impl Marks {
    fn of(messages: &[Message], partitions: u16) -> anyhow::Result<Self> {
        let (mut first, mut end, mut last) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for message in messages {
            let change: ItemChanged = serde_json::from_slice(&message.body)?;
            first.entry(message.partition).or_insert_with(|| change.clone());
            let partition = partition_of(&change.item_id, partitions);
            end.insert((message.partition, partition), change.clone());
            last.insert(change.item_id.clone(), change);
        }
        Ok(Self { first: first.into_values().collect(), last, end: end.into_values().collect() })
    }

    /// How long it took from the first effect to the last.
    async fn watch(&self, store: &SharedStore) -> anyhow::Result<Duration> {
        while !any_applied(store, &self.first).await? {
            tokio::time::sleep(GLANCE).await;
        }
        let started = Instant::now();
        // One after the other: all at once would keep Redis from the work that is measured.
        for change in &self.end {
            while !is_applied(store, change).await? {
                tokio::time::sleep(GLANCE).await;
            }
        }
        let took = started.elapsed();
        self.check(store).await?;
        Ok(took)
    }

    /// Whether nothing is missing; a figure without this is a guess.
    async fn check(&self, store: &SharedStore) -> anyhow::Result<()> {
        let items = store.items().await?;
        ensure!(items.len() == self.last.len(), "{} of {}", items.len(), self.last.len());
        for item in items {
            let last = self.last.get(&item.id).context("an item nobody spoke of")?;
            ensure!((item.version, item.stock) == (last.version, last.remain_count), "{item:?}");
        }
        Ok(())
    }
}

async fn any_applied(store: &SharedStore, changes: &[ItemChanged]) -> anyhow::Result<bool> {
    for change in changes {
        if is_applied(store, change).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn is_applied(store: &SharedStore, change: &ItemChanged) -> anyhow::Result<bool> {
    let item = store.item(&change.item_id).await?;
    Ok(item.is_some_and(|item| item.version >= change.version))
}

impl Changes {
    fn messages(self, count: usize) -> anyhow::Result<Vec<Message>> {
        let items = match self {
            Self::Sale => 1_000,
            Self::Catalogue => count,
        };
        (0..count).map(|number| change(number % items, number / items)).collect()
    }
}

/// The body alone: what a product service writes that knows nothing of CloudEvents.
fn change(item: usize, before: usize) -> anyhow::Result<Message> {
    let event = ItemChanged {
        item_id: ItemId::parse(&format!("item-{item:06}"))?,
        item_name: ItemName::parse("Friday 8 pm, all seats")?,
        remain_count: u32::try_from(1_000_000 - before)?,
        waiting_queue_enabled: true,
        is_waiting_queue_target_item: true,
        version: before as u64 + 1,
        occurred_at: "2026-01-01T00:00:00.000Z".into(),
    };
    let (key, body) = (event.item_id.as_str().into(), serde_json::to_vec(&event)?);
    Ok(Message { partition: 0, key, body, headers: Vec::new() })
}
