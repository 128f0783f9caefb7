//! Replaying `item.changed` changes no item.

mod product;

use std::time::Duration;

use daegi_testkit::{redis_or_skip, seeded_rng, shared_kafka_or_skip};

use crate::processes::Fleet;
use crate::product_service::{self, ProductService};
use product::{History, interleaved, past_events};

const TEST_TIMEOUT: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn replaying_item_changes_from_the_start_or_in_another_order_changes_no_item() {
    let (Some(redis), Some(kafka)) = (redis_or_skip().await, shared_kafka_or_skip().await) else {
        return;
    };
    let mut rng = seeded_rng("replay");
    let topics = kafka.create_topics().await.unwrap();
    let mut product_service = ProductService::new(&kafka.bootstrap(), &topics);
    let fleet = Fleet::new(&redis).with_kafka(&kafka.bootstrap(), &topics);
    let scheduler = fleet.start_with("daegi-scheduler", &[("DAEGI_KAFKA", "off")]);
    scheduler.wait_ready().await;
    let consumer = fleet.start_ready("daegi-consumer").await;

    let histories: Vec<History> = (0..60).map(|n| History::random(n, &mut rng)).collect();
    product_service.publish(&interleaved(&histories, &product_service, &mut rng)).await;
    product_service.settled(&scheduler, TEST_TIMEOUT).await;
    let before = product_service::items(&scheduler).await;
    for history in &histories {
        let version = before.get(&history.id).map(|item| item["version"].as_u64().unwrap());
        assert_eq!(version, history.last(), "{history:?}");
    }

    // Another group has no offsets, so it reads the topic from the start.
    assert_eq!(consumer.terminate().code(), Some(0));
    let other = fleet.start_with("daegi-consumer", &[("DAEGI_CONSUMER_GROUP", "another")]);
    product_service.settled(&scheduler, TEST_TIMEOUT).await;
    assert_eq!(product_service::items(&scheduler).await, before, "from the start");

    product_service.publish(&interleaved(&histories, &product_service, &mut rng)).await;
    product_service.settled(&scheduler, TEST_TIMEOUT).await;
    assert_eq!(product_service::items(&scheduler).await, before, "items in another order");

    product_service.publish(&past_events(&histories, &product_service, &mut rng)).await;
    product_service.settled(&scheduler, TEST_TIMEOUT).await;
    assert_eq!(product_service::items(&scheduler).await, before, "old versions in any order");
    assert_eq!(other.terminate().code(), Some(0));
}
