//! Settings of items that the store lost.

use std::sync::Arc;

use daegi_domain::{ControlChanged, Item, ItemControl, Policy, Topics};
use daegi_kafka::Record;
use daegi_runtime::Clock;
use daegi_store::{MemoryStore, RedisStore};

use crate::harness::{ConsumerHarness, PARTITIONS, SETTINGS, changed, item};

/// Publishes the settings that changed, like the relay.
async fn publish(harness: &ConsumerHarness) -> Vec<ItemControl> {
    let mut controls = Vec::new();
    for partition in 0..PARTITIONS {
        for (id, _) in harness.store.changed_controls(partition, 100).await.unwrap() {
            controls.push(harness.store.control(&id).await.unwrap().unwrap());
        }
    }
    let record = |control| ControlChanged::new(control, &harness.ticket_keys);
    let records =
        controls.iter().map(|control| Record::from_event(&record(control), &Topics::default()));
    harness.publish(&records.map(Result::unwrap).collect::<Vec<_>>()).await;
    controls
}

async fn set_limit(harness: &ConsumerHarness, limit: u32) {
    let id = item("concert");
    let revision = harness.store.item(&id).await.unwrap().unwrap().revision;
    let policy = Policy { max_active: Some(limit), ..Policy::default() };
    let now = Clock::system().now_ms();
    harness.store.set_policy(&id, &policy.into(), revision, now).await.unwrap();
}

/// A paused line with a policy, of an item of a product service, and an item of an operator.
async fn settings_come_back(harness: &ConsumerHarness, lose: impl AsyncFnOnce()) {
    harness.changes(&[changed("concert", 10, 1)]).await;
    harness.until("concert", |item| item.is_some()).await;
    set_limit(harness, 5).await;
    assert_eq!(publish(harness).await.len(), 1);
    set_limit(harness, 7).await;
    harness.store.set_paused(&item("concert"), true, Clock::system().now_ms()).await.unwrap();
    let opera = daegi_domain::ItemChange { version: None, ..changed("opera", 3, 1).change() };
    harness.store.put_item(&opera, Clock::system().now_ms()).await.unwrap();
    publish(harness).await;
    harness.changes(&[changed("concert", 9, 2)]).await;
    harness.until("concert", |item| item.is_some_and(|item| item.stock == 9)).await;

    lose().await;
    let has_settings = |item: &Item| item.paused && item.policy.max_active == Some(7);
    harness
        .until("concert", |item| {
            // A record of before may be applied first, but never an item without settings.
            assert!(item.is_none_or(|item| item.policy != Policy::default()), "{item:?}");
            item.is_some_and(|item| has_settings(item) && (item.stock, item.version) == (9, 2))
        })
        .await;
    harness.until("opera", |item| item.is_some_and(|item| item.stock == 3)).await;
}

#[tokio::test]
async fn settings_that_the_memory_store_lost_come_back_before_their_items() {
    let memory = Arc::new(MemoryStore::new(PARTITIONS, SETTINGS));
    let harness = ConsumerHarness::with_store(memory.clone());
    settings_come_back(&harness, async || memory.restore(None)).await;
    harness.stop().await;
}

#[tokio::test]
async fn settings_that_redis_lost_come_back_before_their_items() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    let store = RedisStore::open(&redis.url(), PARTITIONS, SETTINGS).await.unwrap();
    let harness = ConsumerHarness::with_store(Arc::new(store));
    settings_come_back(&harness, async || {
        let mut connection = redis.connection().await.unwrap();
        let () = redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
    })
    .await;
    harness.stop().await;
}

#[tokio::test]
async fn records_that_cannot_be_read_are_skipped_and_change_nothing_without_a_loss() {
    let harness = ConsumerHarness::start();
    harness.changes(&[changed("concert", 10, 1)]).await;
    harness.until("concert", |item| item.is_some()).await;
    set_limit(&harness, 5).await;
    let before = publish(&harness).await;
    set_limit(&harness, 6).await;
    let broken: Vec<_> = [Some(&b"{"[..]), Some(b"{\"itemId\":1}"), None]
        .map(|body| Record::raw("control.changed", "concert", body))
        .into();
    harness.publish(&broken).await;
    let old = ControlChanged::new(&before[0], &harness.ticket_keys);
    harness.publish(&[Record::from_event(&old, &Topics::default()).unwrap()]).await;
    // Behind them in the same partition.
    let mut end = before[0].clone();
    end.id = item("end");
    end.item = end.item.map(|item| Item { id: end.id.clone(), ..item });
    let end = ControlChanged::new(&end, &harness.ticket_keys);
    let mut end = Record::from_event(&end, &Topics::default()).unwrap();
    end.key = Some(b"concert".to_vec());
    harness.publish(&[end]).await;
    harness.until("end", |item| item.is_some()).await;
    harness.until("concert", |item| item.unwrap().policy.max_active == Some(6)).await;
    harness.stop().await;
}
