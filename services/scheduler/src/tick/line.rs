//! The round of one line: expire, admit, sweep.

use std::time::Duration;

use daegi_domain::line_rules::{line_state, quota};
use daegi_domain::{ItemId, LineState, Millis, Number, Settings};
use daegi_store::{Epoch, Error, Expiry, Result, SharedStore};
use tokio::time::Instant;

/// How many chunks of a line one tick sweeps where it finds no absent users: the sweep is slow on
/// purpose.
const SWEEP_CHUNKS: u32 = 25;

/// How much of a tick's length the sweep of a line may take where it finds absent users, in percent.
const SWEEP_SHARE: u32 = 50;

/// The longest sweep of a line in one tick, because all lines and the relay share the store.
const MAX_SWEEP: Duration = Duration::from_millis(500);

/// How much of a tick's length must have passed, in percent: clocks and timers are not exact.
const EARLIEST: Millis = 90;

/// Everything the round of a line needs.
#[derive(Debug)]
pub(super) struct LineRound {
    pub(super) store: SharedStore,
    pub(super) epoch: Epoch,
    pub(super) outbox_max: u64,
    pub(super) settings: Settings,
    pub(super) now: Millis,
    pub(super) sweep_from: Number,
}

/// What the round of a line did.
#[derive(Debug)]
pub(super) struct Moved {
    pub(super) admitted: u32,
    pub(super) missed: u32,
    pub(super) expired: u32,
    pub(super) abandoned: u32,
    pub(super) outbox_full: bool,
    /// Whether people are let in; none if there is no item any more.
    pub(super) state: Option<LineState>,
    /// Where the next tick goes on.
    pub(super) sweep_from: Number,
    /// Why admission failed, although the rest of the round was done.
    pub(super) failure: Option<Error>,
}

impl Moved {
    fn nobody(sweep_from: Number) -> Self {
        Self {
            admitted: 0,
            missed: 0,
            expired: 0,
            abandoned: 0,
            outbox_full: false,
            state: None,
            sweep_from,
            failure: None,
        }
    }
}

impl LineRound {
    /// Expiry comes first, so that a place that got free is taken in the same tick.
    pub(super) async fn run(&self, id: &ItemId) -> Result<Moved> {
        let mut moved = Moved::nobody(self.sweep_from);
        let expiry = self.expire(id, &mut moved).await?;
        if !expiry.active {
            return Ok(moved);
        }
        let item = self.store.item(id).await?;
        moved.state = item
            .as_ref()
            .map(|item| line_state(item, expiry.front_is_above_base, &self.settings, self.now));
        // The script checks the item again, atomically with the admission itself. A line that holds
        // numbers above its base still serves the others.
        let serves =
            matches!(moved.state, Some(LineState::Open | LineState::Recovering | LineState::Held));
        let served = item.as_ref().filter(|_| serves);
        let quota = served.map_or(0, |item| quota(item, &self.settings));
        // The sweep does not depend on admission: it frees memory, and admission may fail for want of it.
        match self.admit(id, quota, &mut moved).await {
            Err(stale @ Error::StaleEpoch(_)) => return Err(stale),
            admitted => moved.failure = admitted.err(),
        }
        if item.is_some_and(|item| item.policy.unseen_limit_seconds().is_some()) {
            self.sweep(id, &mut moved).await?;
        }
        Ok(moved)
    }

    /// Returns the last step.
    async fn expire(&self, id: &ItemId, moved: &mut Moved) -> Result<Expiry> {
        loop {
            let expiry = self.store.expire(self.epoch, id, self.now).await?;
            moved.expired += expiry.expired;
            moved.abandoned += expiry.abandoned;
            if !expiry.more {
                return Ok(expiry);
            }
        }
    }

    /// Asks once even where nobody may enter: it also closes the books on those who passed
    /// through since the last tick, without which an empty line would stay active.
    async fn admit(&self, id: &ItemId, mut quota: u32, moved: &mut Moved) -> Result<()> {
        let spacing = Millis::from(self.settings.tick_ms) * EARLIEST / 100;
        loop {
            let call = self.store.admit(self.epoch, id, quota, spacing, self.outbox_max, self.now);
            let admission = call.await?;
            moved.admitted += admission.admitted;
            moved.missed += admission.missed;
            moved.outbox_full |= admission.outbox_full && quota > 0;
            if !admission.more || admission.remaining == 0 {
                return Ok(());
            }
            quota = admission.remaining;
        }
    }

    /// Goes on where the last tick stopped, and stops at the end of the line. Chunks beyond
    /// [`SWEEP_CHUNKS`] are swept while each finds absent users and there is time, so that tickets
    /// of a hostile client are gone within a few ticks; every chunk is one short script.
    async fn sweep(&self, id: &ItemId, moved: &mut Moved) -> Result<()> {
        let tick = Duration::from_millis(self.settings.tick_ms.into());
        let deadline = Instant::now() + (tick * SWEEP_SHARE / 100).min(MAX_SWEEP);
        for chunk in 1.. {
            let from = moved.sweep_from;
            let sweep = self.store.sweep(self.epoch, id, from, self.now).await?;
            moved.abandoned += sweep.abandoned;
            moved.sweep_from = sweep.cursor;
            let goes_on = sweep.abandoned > 0 && Instant::now() < deadline;
            if sweep.cursor == Number(0) || (chunk >= SWEEP_CHUNKS && !goes_on) {
                break;
            }
        }
        Ok(())
    }
}
