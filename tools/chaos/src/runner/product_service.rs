//! The product service: publishes the stock of all items repeatedly.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{ItemChanged, ItemId, ItemName, Topics};
use daegi_kafka::{Publisher, Record};
use fastrand::Rng;
use tokio::time::Instant;

use super::fleet::ChaosFleet;
use super::items::ITEM_KINDS;
use super::recorder::{Recorder, now};
use crate::history::{Entry, PublishedItem};

/// Limit for a publish after the last fault.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(60);

/// Publishes until `end` and then once more, each time until the broker confirms. Returns the last version.
pub(super) async fn publish_items(
    fleet: &ChaosFleet,
    seed: u64,
    end: Instant,
    recorder: Arc<Recorder>,
) -> anyhow::Result<u64> {
    let publisher = Publisher::new(&fleet.brokers().await)?;
    let mut rng = Rng::with_seed(seed ^ 0x0070_726f_6475_6374);
    let mut version = 0;
    let mut is_last = false;
    while !is_last {
        is_last = Instant::now() >= end;
        version += 1;
        let (mut published, mut records) = (Vec::new(), Vec::new());
        for (item, (min, max)) in
            ITEM_KINDS.iter().flat_map(|kind| kind.ids().map(|item| (item, kind.stock)))
        {
            let stock = rng.u32(min..=max);
            records.push(record(&item, stock, version)?);
            published.push(PublishedItem { item, version, stock: stock.into(), at: now() });
        }
        while let Err(error) = publisher.publish(&records).await {
            anyhow::ensure!(Instant::now() < end + PUBLISH_TIMEOUT, "items not published: {error}");
        }
        published.into_iter().for_each(|one| recorder.write(&Entry::Published(one)));
        let pause = Duration::from_millis(rng.u64(500..3_000));
        tokio::time::sleep_until((Instant::now() + pause).min(end)).await;
    }
    Ok(version)
}

fn record(item: &str, stock: u32, version: u64) -> anyhow::Result<Record> {
    let changed = ItemChanged {
        item_id: ItemId::parse(item)?,
        item_name: ItemName::parse(item)?,
        remain_count: stock,
        waiting_queue_enabled: true,
        is_waiting_queue_target_item: true,
        version,
        occurred_at: "2026-01-01T00:00:00Z".into(),
    };
    Ok(Record::from_event(&changed, &Topics::default())?)
}
