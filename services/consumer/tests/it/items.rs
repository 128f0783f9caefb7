//! What product services say about items.

use daegi_domain::ItemChanged;
use daegi_kafka::Record;

use crate::pod::{Pod, changed};

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
