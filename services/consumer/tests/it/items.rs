//! Events of product services.

use std::sync::Arc;

use daegi_domain::ItemChanged;
use daegi_kafka::Record;
use daegi_store::RedisStore;

use crate::harness::{ConsumerHarness, PARTITIONS, SETTINGS, changed, item};

fn has_stock(stock: u32) -> impl Fn(Option<&daegi_domain::Item>) -> bool {
    move |item| item.is_some_and(|item| item.stock == stock)
}

#[tokio::test]
async fn items_are_created_changed_and_removed_and_old_versions_change_nothing() {
    let harness = ConsumerHarness::start();
    harness.changes(&[changed("concert", 10, 1), changed("concert", 7, 2)]).await;
    harness.until("concert", has_stock(7)).await;

    // One key, one partition: when the last of these is applied, the others are, too.
    harness.changes(&[changed("concert", 99, 1), changed("concert", 98, 2)]).await;
    harness.changes(&[changed("concert", 5, 3)]).await;
    harness.until("concert", has_stock(5)).await;

    let gone = ItemChanged { is_waiting_queue_target_item: false, ..changed("concert", 5, 4) };
    harness.changes(&[gone]).await;
    harness.until("concert", |item| item.is_none()).await;
    harness.changes(&[changed("concert", 5, 3), changed("concert", 4, 5)]).await;
    harness.until("concert", has_stock(4)).await;
    harness.stop().await;
}

#[tokio::test]
async fn a_tombstone_removes_the_item_and_an_older_version_does_not_restore_it() {
    let harness = ConsumerHarness::start();
    harness.changes(&[changed("42", 10, 1)]).await;
    harness.until("42", has_stock(10)).await;
    harness.publish(&[Record::raw("item.changed", "42", None)]).await;
    harness.until("42", |item| item.is_none()).await;
    harness.changes(&[changed("42", 10, 1), changed("42", 3, 2)]).await;
    harness.until("42", has_stock(3)).await;
    harness.stop().await;
}

#[tokio::test]
async fn a_replay_by_a_new_group_leaves_the_items_unchanged() {
    let harness = ConsumerHarness::start();
    let gone = ItemChanged { is_waiting_queue_target_item: false, ..changed("44", 1, 2) };
    harness.changes(&[changed("42", 10, 1)]).await;
    // Removed without a version, and created again.
    harness.publish(&[Record::raw("item.changed", "42", None)]).await;
    harness.changes(&[changed("42", 9, 2), changed("43", 5, 7), changed("44", 1, 1), gone]).await;
    for (id, stock) in [("42", 9), ("43", 5)] {
        harness.until(id, has_stock(stock)).await;
    }
    harness.until("44", |item| item.is_none()).await;
    let before = harness.store.items().await.unwrap();

    let harness = harness.restart_as("others").await;
    // Behind everything that is replayed, in each partition.
    for (n, key) in ["42", "43", "44"].into_iter().enumerate() {
        let end = serde_json::to_vec(&changed(&format!("end-{n}"), 1, 1)).unwrap();
        harness.publish(&[Record::raw("item.changed", key, Some(&end))]).await;
        harness.until(&format!("end-{n}"), has_stock(1)).await;
        harness.store.remove_item(&item(&format!("end-{n}")), 0).await.unwrap();
    }
    assert_eq!(harness.store.items().await.unwrap(), before);
    harness.stop().await;
}

#[tokio::test]
async fn a_redis_that_lost_its_items_gets_them_back_by_a_replay() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    let store = RedisStore::open(&redis.url(), PARTITIONS, SETTINGS).await.unwrap();
    let harness = ConsumerHarness::with_store(Arc::new(store));
    let news: Vec<_> = (0..20).map(|n| changed(&format!("item-{n}"), 10 + n, 3)).collect();
    harness.changes(&news).await;
    let all_are_stored = async || {
        for (n, event) in news.iter().enumerate() {
            harness.until(&format!("item-{n}"), has_stock(event.remain_count)).await;
        }
    };
    all_are_stored().await;
    let mut connection = redis.connection().await.unwrap();
    let () = redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
    all_are_stored().await;
    harness.stop().await;
}
