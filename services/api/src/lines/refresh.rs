//! The task of one line: read the store four times per second while waiting tickets ask, rest while
//! none does, and carry the marks of people seen to the store.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use daegi_domain::LineState;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

use super::core::{Core, Round};
use super::reader::Reader;
use super::{Registry, View};
use crate::error::{Error, Result};
use crate::patience::in_time;

/// The rest between two reads while waiting tickets ask.
pub(super) const EVERY: Duration = Duration::from_millis(245);
/// The shortest rest, however urgently somebody asks.
const AT_LEAST: Duration = Duration::from_millis(15);
/// The rest after a look that failed: a store in trouble is not helped by a crowd at its door.
const AFTER_TROUBLE: Duration = Duration::from_millis(200);
/// A line nobody asked for during this time is dropped.
const FORGET: Duration = Duration::from_secs(60);
/// How often marks go to the store. The shortest grace period is three times as long, and people
/// are told to ask twice within it.
const FLUSH: Duration = Duration::from_secs(3);

/// Keeps one line fresh.
pub(super) struct Refresher {
    core: Arc<Core>,
    reader: Reader,
    registry: Weak<Registry>,
    in_trouble: bool,
}

impl Refresher {
    pub(super) fn new(core: Arc<Core>, reader: Reader, registry: Weak<Registry>) -> Self {
        Self { core, reader, registry, in_trouble: false }
    }

    pub(super) async fn run(mut self) -> Infallible {
        loop {
            self.rest().await;
            self.round().await;
        }
    }

    async fn rest(&self) {
        sleep(if self.in_trouble { AFTER_TROUBLE } else { AT_LEAST }).await;
        if self.core.is_wanted() || !self.core.pause() {
            let _ = timeout(EVERY - AT_LEAST, self.core.wake.notified()).await;
            return;
        }
        self.rest_until_asked().await;
        self.core.resume();
    }

    /// Requests other than those of waiting tickets wake the refresher, too, but do not keep the
    /// line in view.
    async fn rest_until_asked(&self) {
        let rest = FORGET.saturating_sub(self.core.idle());
        if timeout(rest, self.core.wake.notified()).await.is_err() {
            self.forget();
            self.core.wake.notified().await;
        }
    }

    async fn round(&mut self) {
        let began = Instant::now();
        let number = self.core.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let outcome = self.look().await;
        self.core.context.meters.refresh.record(began.elapsed());
        self.tell_trouble(&outcome);
        self.core.rounds.send_replace(Round { number, outcome });
    }

    async fn look(&mut self) -> Result<()> {
        let found = self.reader.read(&self.core.id, &self.core.context).await?;
        let was_gone = self.core.gone.swap(found.is_none(), Ordering::SeqCst);
        match found {
            Some(view) => {
                self.publish(view, was_gone);
                Ok(())
            }
            None => {
                self.forget();
                self.core.moves.send_replace(());
                Err(Error::ItemNotFound)
            }
        }
    }

    /// Old pages are noted before anybody can see the new view, so that no flush misses one.
    fn publish(&self, view: View, was_gone: bool) {
        let old = self.core.view.load_full();
        if !Arc::ptr_eq(&old.pages, &view.pages) {
            self.core.marks.leave(&old.pages, &view.pages);
        }
        let moved = was_gone || view.differs_from(&old);
        let ended = view.line.ended != old.line.ended;
        self.tell_loss(&old, &view);
        self.core.view.store(Arc::new(view));
        if moved {
            self.core.moves.send_replace(());
        }
        if ended {
            self.core.ends.send_replace(());
        }
    }

    fn forget(&self) {
        if let Some(registry) = self.registry.upgrade() {
            registry.forget(&self.core);
        }
    }

    fn tell_loss(&self, old: &View, new: &View) {
        let item = &self.core.id;
        match (old.state == LineState::Recovering, new.state == LineState::Recovering) {
            (false, true) => tracing::warn!(%item, "the line lost people and waits for them"),
            (true, false) => tracing::info!(%item, "the line goes on"),
            _ => {}
        }
    }

    /// Once when it begins and once when it is over, not five times per second.
    fn tell_trouble(&mut self, outcome: &Result<()>) {
        let item = &self.core.id;
        let trouble = outcome.as_ref().err().filter(|error| !matches!(error, Error::ItemNotFound));
        match (self.in_trouble, trouble) {
            (false, Some(error)) => tracing::warn!(%item, %error, "the line cannot be refreshed"),
            (true, None) => tracing::info!(%item, "the line is refreshed again"),
            _ => {}
        }
        self.in_trouble = trouble.is_some();
    }
}

/// Flushes marks every three seconds.
pub(super) async fn flush_for_ever(core: &Core) -> Infallible {
    let mut ticks = interval_at(Instant::now() + FLUSH, FLUSH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // A failure is counted where the store is called, and the marks are kept.
        let _ = flush(core).await;
    }
}

/// Hands all marks to the store in one call; keeps them if it does not take them.
pub(super) async fn flush(core: &Core) -> Result<()> {
    let _one_at_a_time = core.marks.flushing.lock().await;
    let taken = core.marks.take(&core.view.load().pages);
    if taken.pages.is_empty() {
        return Ok(());
    }
    let now = core.context.clock.now_ms();
    let marked = core.context.store.mark_seen(&core.id, &taken.pages, now);
    match in_time("mark_seen", marked).await {
        Ok(()) => {
            core.context.meters.seen_pages.increment(taken.pages.len() as u64);
            Ok(())
        }
        Err(error) => {
            core.marks.put_back(taken, &core.view.load().pages);
            Err(error)
        }
    }
}
