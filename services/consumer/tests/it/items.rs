//! What product services say about items.

use std::sync::Arc;

use daegi_domain::ItemChanged;
use daegi_kafka::Record;
use daegi_store::RedisStore;

use crate::pod::{PARTITIONS, Pod, SETTINGS, changed, item};

fn has_stock(stock: u32) -> impl Fn(Option<&daegi_domain::Item>) -> bool {
    move |item| item.is_some_and(|item| item.stock == stock)
}

#[tokio::test]
async fn items_come_change_and_go_and_old_versions_change_nothing() {
    let pod = Pod::start();
    pod.changes(&[changed("concert", 10, 1), changed("concert", 7, 2)]).await;
    pod.until("concert", has_stock(7)).await;

    // One key, one partition: when the last of these has its effect, the others had theirs.
    pod.changes(&[changed("concert", 99, 1), changed("concert", 98, 2)]).await;
    pod.changes(&[changed("concert", 5, 3)]).await;
    pod.until("concert", has_stock(5)).await;

    let gone = ItemChanged { is_waiting_queue_target_item: false, ..changed("concert", 5, 4) };
    pod.changes(&[gone]).await;
    pod.until("concert", |item| item.is_none()).await;
    pod.changes(&[changed("concert", 5, 3), changed("concert", 4, 5)]).await;
    pod.until("concert", has_stock(4)).await;
    pod.stop().await;
}

#[tokio::test]
async fn a_tombstone_takes_the_item_out_and_an_older_version_does_not_bring_it_back() {
    let pod = Pod::start();
    pod.changes(&[changed("42", 10, 1)]).await;
    pod.until("42", has_stock(10)).await;
    pod.publish(&[Record::raw("item.changed", "42", None)]).await;
    pod.until("42", |item| item.is_none()).await;
    pod.changes(&[changed("42", 10, 1), changed("42", 3, 2)]).await;
    pod.until("42", has_stock(3)).await;
    pod.stop().await;
}

#[tokio::test]
async fn everything_read_again_by_a_new_group_leaves_the_items_unchanged() {
    let pod = Pod::start();
    let gone = ItemChanged { is_waiting_queue_target_item: false, ..changed("44", 1, 2) };
    pod.changes(&[changed("42", 10, 1)]).await;
    // Gone without a word about its version, and back.
    pod.publish(&[Record::raw("item.changed", "42", None)]).await;
    pod.changes(&[changed("42", 9, 2), changed("43", 5, 7), changed("44", 1, 1), gone]).await;
    for (id, stock) in [("42", 9), ("43", 5)] {
        pod.until(id, has_stock(stock)).await;
    }
    pod.until("44", |item| item.is_none()).await;
    let before = pod.store.items().await.unwrap();

    let pod = pod.again_as("others").await;
    // Behind everything that is read again, in each partition.
    for (n, key) in ["42", "43", "44"].into_iter().enumerate() {
        let end = serde_json::to_vec(&changed(&format!("end-{n}"), 1, 1)).unwrap();
        pod.publish(&[Record::raw("item.changed", key, Some(&end))]).await;
        pod.until(&format!("end-{n}"), has_stock(1)).await;
        pod.store.remove_item(&item(&format!("end-{n}"))).await.unwrap();
    }
    assert_eq!(pod.store.items().await.unwrap(), before);
    pod.stop().await;
}

#[tokio::test]
async fn a_redis_that_lost_its_items_gets_them_back_by_itself() {
    let Some(redis) = daegi_testkit::redis_or_loud().await else { return };
    let store = RedisStore::open(&redis.url(), PARTITIONS, SETTINGS).await.unwrap();
    let pod = Pod::on(Arc::new(store));
    let news: Vec<_> = (0..20).map(|n| changed(&format!("item-{n}"), 10 + n, 3)).collect();
    pod.changes(&news).await;
    let all_are_there = async || {
        for (n, event) in news.iter().enumerate() {
            pod.until(&format!("item-{n}"), has_stock(event.remain_count)).await;
        }
    };
    all_are_there().await;
    let mut connection = redis.connection().await.unwrap();
    let () = redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
    all_are_there().await;
    pod.stop().await;
}
