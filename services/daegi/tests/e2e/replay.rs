//! Reading product events again changes nothing.

mod product;

use std::time::Duration;

use daegi_testkit::{redis_or_skip, seeded_rng, shared_kafka_or_skip};

use crate::catalogue::{self, Catalogue};
use crate::member::Fleet;
use product::{History, interleaved, old_ones};

const SOON: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn reading_item_changes_again_from_the_start_or_in_another_order_changes_no_item() {
    let (Some(redis), Some(kafka)) = (redis_or_skip().await, shared_kafka_or_skip().await) else {
        return;
    };
    let mut chance = seeded_rng("replay");
    let topics = kafka.create_topics().await.unwrap();
    let mut catalogue = Catalogue::new(&kafka.bootstrap(), &topics);
    let fleet = Fleet::new(&redis).with_kafka(&kafka.bootstrap(), &topics);
    let scheduler = fleet.start_with("daegi-scheduler", &[("DAEGI_KAFKA", "off")]);
    scheduler.wait_ready().await;
    let consumer = fleet.start_ready("daegi-consumer").await;

    let histories: Vec<History> = (0..60).map(|n| History::random(n, &mut chance)).collect();
    catalogue.publish(&interleaved(&histories, &catalogue, &mut chance)).await;
    catalogue.settled(&scheduler, SOON).await;
    let before = catalogue::items(&scheduler).await;
    for history in &histories {
        let version = before.get(&history.id).map(|item| item["version"].as_u64().unwrap());
        assert_eq!(version, history.last(), "{history:?}");
    }

    // Another group has no offsets, so it reads everything.
    assert_eq!(consumer.terminate().code(), Some(0));
    let other = fleet.start_with("daegi-consumer", &[("DAEGI_CONSUMER_GROUP", "another")]);
    catalogue.settled(&scheduler, SOON).await;
    assert_eq!(catalogue::items(&scheduler).await, before, "from the start");

    catalogue.publish(&interleaved(&histories, &catalogue, &mut chance)).await;
    catalogue.settled(&scheduler, SOON).await;
    assert_eq!(catalogue::items(&scheduler).await, before, "items in another order");

    catalogue.publish(&old_ones(&histories, &catalogue, &mut chance)).await;
    catalogue.settled(&scheduler, SOON).await;
    assert_eq!(catalogue::items(&scheduler).await, before, "old versions in any order");
    assert_eq!(other.terminate().code(), Some(0));
}
