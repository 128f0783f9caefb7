//! The product service: says again and again what there is.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{ItemChanged, ItemId, ItemName, Topics};
use daegi_kafka::{Publisher, Record};
use fastrand::Rng;
use tokio::time::Instant;

use super::catalogue::KINDS;
use super::recorder::{Recorder, now};
use super::stage::Stage;
use crate::history::{Announced, Entry};

/// How long the broker has to be back when all is well again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Announces until the end, and then once more, each until the broker has confirmed it. Returns the
/// last version.
pub(super) async fn announce(
    stage: &Stage,
    seed: u64,
    end: Instant,
    recorder: Arc<Recorder>,
) -> anyhow::Result<u64> {
    let publisher = Publisher::new(&stage.brokers().await)?;
    let mut chance = Rng::with_seed(seed ^ 0x0070_726f_6475_6374);
    let mut version = 0;
    let mut over = false;
    while !over {
        over = Instant::now() >= end;
        version += 1;
        let (mut announced, mut records) = (Vec::new(), Vec::new());
        for (item, (least, most)) in
            KINDS.iter().flat_map(|kind| kind.ids().map(|item| (item, kind.stock)))
        {
            let stock = chance.u32(least..=most);
            records.push(record(&item, stock, version)?);
            announced.push(Announced { item, version, stock: stock.into(), at: now() });
        }
        while let Err(error) = publisher.publish(&records).await {
            anyhow::ensure!(Instant::now() < end + PATIENCE, "nobody heard of items: {error}");
        }
        announced.into_iter().for_each(|one| recorder.write(&Entry::Announced(one)));
        let pause = Duration::from_millis(chance.u64(500..3_000));
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
    Ok(Record::event(&changed, &Topics::default())?)
}
