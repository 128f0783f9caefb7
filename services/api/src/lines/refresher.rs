//! Background work of one line: reloads it four times per second while waiting tickets are polled,
//! sleeps otherwise, and flushes marks of seen tickets to the store.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use daegi_domain::LineState;
use daegi_runtime::outage::OutageLog;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

use super::RegistryInner;
use super::handle::{RefreshResult, SharedLine};
use super::snapshot::{CachedLine, LineLoader};
use crate::error::{Error, Result};
use crate::timeouts::with_store_timeout;

/// The name of this work in logs.
const COMPONENT: &str = "line refresh";

/// Interval between two loads while the line is in use. Below 250 ms, the maximum age of a position.
pub(super) const REFRESH_INTERVAL: Duration = Duration::from_millis(245);
/// Minimum interval between two loads, however many requests arrive.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_millis(15);
/// Delay after a failed load, so that a failing store is not flooded with retries.
const ERROR_BACKOFF: Duration = Duration::from_millis(200);
/// A line without a poll of a waiting ticket during this time is evicted.
const EVICT_AFTER: Duration = Duration::from_secs(60);
/// Interval between two flushes of marks. The shortest grace period (10 s) is more than three times as
/// long, and clients are instructed to poll twice within it.
const FLUSH_INTERVAL: Duration = Duration::from_secs(3);

/// Keeps one line fresh.
pub(super) struct Refresher {
    shared: Arc<SharedLine>,
    loader: LineLoader,
    registry: Weak<RegistryInner>,
    outage: OutageLog,
}

impl Refresher {
    pub(super) fn new(
        shared: Arc<SharedLine>,
        loader: LineLoader,
        registry: Weak<RegistryInner>,
    ) -> Self {
        let outage = OutageLog::for_item(COMPONENT, shared.key.item.clone());
        Self { shared, loader, registry, outage }
    }

    pub(super) async fn run(mut self) -> Infallible {
        loop {
            self.sleep().await;
            self.refresh().await;
        }
    }

    async fn sleep(&self) {
        sleep(if self.outage.is_ongoing() { ERROR_BACKOFF } else { MIN_REFRESH_INTERVAL }).await;
        if self.shared.is_in_use() || !self.shared.try_sleep() {
            let _ = timeout(
                REFRESH_INTERVAL - MIN_REFRESH_INTERVAL,
                self.shared.wake_refresher.notified(),
            )
            .await;
            return;
        }
        self.sleep_until_woken().await;
        self.shared.resume();
    }

    /// Sleeps until a request wakes the refresher. Evicts the line if no waiting ticket was polled
    /// for [`EVICT_AFTER`]; other requests wake the refresher but do not keep the line cached.
    async fn sleep_until_woken(&self) {
        let remaining = EVICT_AFTER.saturating_sub(self.shared.idle());
        if timeout(remaining, self.shared.wake_refresher.notified()).await.is_err() {
            self.evict();
            self.shared.wake_refresher.notified().await;
        }
    }

    async fn refresh(&mut self) {
        let began = Instant::now();
        let number = self.shared.started_refreshes.fetch_add(1, Ordering::SeqCst) + 1;
        let outcome = self.load().await;
        self.shared.context.metrics.refresh.record(began.elapsed());
        match &outcome {
            Ok(()) | Err(Error::ItemNotFound) => self.outage.recovered(),
            Err(error) => {
                self.outage.failed(error);
            }
        }
        self.shared.refreshes.send_replace(RefreshResult { number, outcome });
    }

    async fn load(&mut self) -> Result<()> {
        let found = self.loader.load(&self.shared.key, &self.shared.context).await?;
        let was_missing = self.shared.item_missing.swap(found.is_none(), Ordering::SeqCst);
        match found {
            Some(cached) => {
                self.publish(cached, was_missing);
                Ok(())
            }
            None => {
                self.evict();
                self.shared.changes.send_replace(());
                Err(Error::ItemNotFound)
            }
        }
    }

    /// Replaces the cached line. Retires old pages first, so that no flush misses their marks.
    fn publish(&self, cached: CachedLine, was_missing: bool) {
        let old = self.shared.cached.load_full();
        if !Arc::ptr_eq(&old.pages, &cached.pages) {
            self.shared.marks.retire_pages(&old.pages, &cached.pages);
        }
        let changed = was_missing || cached.differs_from(&old);
        let ended = cached.line.ended != old.line.ended;
        self.log_recovery(&old, &cached);
        self.shared.cached.store(Arc::new(cached));
        if changed {
            self.shared.changes.send_replace(());
        }
        if ended {
            self.shared.ends.send_replace(());
        }
    }

    fn evict(&self) {
        if let Some(registry) = self.registry.upgrade() {
            registry.evict(&self.shared);
        }
    }

    fn log_recovery(&self, old: &CachedLine, new: &CachedLine) {
        let (component, item) = (COMPONENT, &self.shared.key.item);
        match (old.state == LineState::Recovering, new.state == LineState::Recovering) {
            (false, true) => {
                tracing::warn!(component, item.id = %item, "data loss detected, admission held while tickets are reclaimed")
            }
            (true, false) => {
                tracing::info!(component, item.id = %item, "recovery finished, admission resumed")
            }
            _ => {}
        }
    }
}

/// Flushes marks every 3 s.
pub(super) async fn flush_loop(shared: &SharedLine) -> Infallible {
    let mut ticks = interval_at(Instant::now() + FLUSH_INTERVAL, FLUSH_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // `with_store_timeout` counts a failure, and the marks are restored.
        let _ = flush(shared).await;
    }
}

/// Writes all marks to the store in one call. Restores them if the call fails.
pub(super) async fn flush(shared: &SharedLine) -> Result<()> {
    let _one_at_a_time = shared.marks.flushing.lock().await;
    let drained = shared.marks.drain(&shared.cached.load().pages);
    if drained.pages.is_empty() {
        return Ok(());
    }
    let now = shared.context.clock.now_ms();
    let marked =
        shared.context.store.mark_seen(&shared.key.item, shared.key.lane, &drained.pages, now);
    match with_store_timeout("mark_seen", marked).await {
        Ok(()) => {
            shared.context.metrics.seen_pages.increment(drained.pages.len() as u64);
            Ok(())
        }
        Err(error) => {
            shared.marks.restore(drained, &shared.cached.load().pages);
            Err(error)
        }
    }
}
