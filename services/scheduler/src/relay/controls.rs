//! Publishes the settings of items that changed, so that a store that lost them can get them back.
//!
//! The store marks an item in the step that changes its settings. The relay publishes the whole current
//! settings and removes the mark after the broker has confirmed, unless they changed again meanwhile. So a
//! record may be published twice, but the last one of an item is always the latest.

use daegi_domain::{ItemId, Topic};
use daegi_runtime::outage::{Backoff, OutageLog};
use daegi_store::Error;
use futures_util::future::{join_all, try_join_all};
use metrics::counter;

use super::{FIRST_BACKOFF, MAX_BACKOFF, POLL_INTERVAL, Relay, RelayError};
use crate::metrics::RELAY_FAILED;

/// Items of one partition that one round publishes at most.
const ITEMS_PER_ROUND: u32 = 100;

impl Relay {
    /// Publishes settings while this replica leads. Never returns. A failure does not stop other events.
    pub(super) async fn run_controls(self) {
        let mut outage = OutageLog::new("settings relay");
        let mut backoff = Backoff::new(FIRST_BACKOFF, MAX_BACKOFF);
        loop {
            let delay = match self.publish_controls().await {
                Ok(published) => {
                    outage.recovered();
                    backoff.reset();
                    if published > 0 {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    POLL_INTERVAL
                }
                Err(error) => {
                    if matches!(error, RelayError::Kafka(_)) {
                        counter!(RELAY_FAILED).increment(1);
                    }
                    outage.failed(&error);
                    backoff.next_delay()
                }
            };
            tokio::time::sleep(delay).await;
        }
    }

    /// Publishes settings that changed, at most 100 items of each partition. Returns of how many items.
    ///
    /// # Errors
    /// If the store or the broker is unavailable. Other partitions are published all the same.
    pub async fn publish_controls(&self) -> Result<usize, RelayError> {
        let partitions = 0..self.store.partitions();
        let published = partitions.map(|partition| self.publish_changed(partition));
        join_all(published).await.into_iter().sum()
    }

    async fn publish_changed(&self, partition: u16) -> Result<usize, RelayError> {
        let mut changed = self.store.changed_controls(partition, ITEMS_PER_ROUND).await?;
        if changed.is_empty() {
            return Ok(0);
        }
        if self.sink.takes_controls() {
            // Reserved lines (warm-up of a pod) are not restored.
            let public = changed.iter_mut().filter(|(id, _)| !id.is_reserved());
            let controls = try_join_all(public.map(|(id, version)| self.control(id, version)));
            let controls: Vec<_> = controls.await?.into_iter().flatten().collect();
            if !controls.is_empty() {
                self.sink.publish_controls(&controls).await?;
                counter!(self.sink.counter(), "type" => Topic::ControlChanged.event_type())
                    .increment(controls.len() as u64);
            }
        }
        self.store.controls_published(partition, &changed).await?;
        Ok(changed.len())
    }

    /// Reads the settings of a marked item, and sets `version` to theirs, which may be newer. Returns `None`
    /// for an item that cannot be read: its next change marks it again.
    async fn control(
        &self,
        id: &ItemId,
        version: &mut u64,
    ) -> Result<Option<daegi_domain::ItemControl>, RelayError> {
        match self.store.control(id).await {
            Ok(Some(control)) => {
                *version = control.control_version.max(*version);
                Ok(Some(control))
            }
            Ok(None) => Ok(None),
            Err(Error::Corrupt(error)) => {
                tracing::warn!(item.id = %id, %error, "settings not published: stored data unreadable");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}
