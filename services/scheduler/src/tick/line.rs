//! The round of one item: expire and sweep each lane, and admit from all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use daegi_domain::line_rules::{is_quota_zero, line_state, quota};
use daegi_domain::{
    Item, ItemId, Lane, LineState, Millis, Number, PaceState, Phase, Settings, TicketKeys,
    round_published_at,
};
use daegi_store::{CHECKPOINT_INTERVAL_MS, Epoch, Error, Expiry, Result, SharedStore};
use tokio::time::Instant;

use crate::pace::LinePace;
use crate::{Beacons, OriginProbes};

/// Maximum number of chunks of a line that one tick sweeps if the last one holds no absent users. It
/// is low, so that the sweep of a long line is spread over many ticks.
const SWEEP_CHUNKS: u32 = 25;

/// Share of a tick's length that the sweep of a line may take if it finds absent users, in percent.
const SWEEP_SHARE: u32 = 50;

/// The longest sweep of a line in one tick, because all lines and the relay share the store.
const MAX_SWEEP: Duration = Duration::from_millis(500);

/// Share of a tick's length that must have passed since the last round, in percent. It is below 100,
/// because clocks and timers are not exact.
const MIN_TICK_PERCENT: Millis = 90;

/// Where the sweep of each lane continues; absent lanes start at the front.
pub(super) type SweepCursors = BTreeMap<Lane, Number>;

/// The input of one round of a line.
#[derive(Debug)]
pub(super) struct LineRound {
    pub(super) store: SharedStore,
    pub(super) epoch: Epoch,
    pub(super) outbox_max: u64,
    /// Signs the tokens of a cohort, whose hashes are part of a draw.
    pub(super) ticket_keys: Option<TicketKeys>,
    /// Fetches the signatures of beacons.
    pub(super) beacons: Option<Arc<Beacons>>,
    /// Probes the origins of lines with an adaptive pace.
    pub(super) probes: Option<Arc<OriginProbes>>,
    /// What is known of the line's origin.
    pub(super) pace: LinePace,
    pub(super) settings: Settings,
    pub(super) now: Millis,
    pub(super) sweep_from: SweepCursors,
}

/// The result of one round of a line, all lanes together.
#[derive(Debug)]
pub(super) struct LineRoundReport {
    pub(super) admitted: u32,
    pub(super) missed: u32,
    pub(super) expired: u32,
    pub(super) abandoned: u32,
    pub(super) outbox_full: bool,
    /// The state of the line; `None` if the item was removed.
    pub(super) state: Option<LineState>,
    /// Where the sweep of the next tick continues.
    pub(super) sweep_from: SweepCursors,
    /// Why admission failed; the rest of the round was done.
    pub(super) failure: Option<Error>,
    /// The round for which the line waits, and when it is published.
    pub(super) awaited_round: Option<(u64, Millis)>,
    /// What is known of the origin of a line with an adaptive pace, and the state of the pace.
    pub(super) pace: Option<(LinePace, PaceState)>,
}

impl LineRoundReport {
    fn empty(sweep_from: SweepCursors) -> Self {
        Self {
            admitted: 0,
            missed: 0,
            expired: 0,
            abandoned: 0,
            outbox_full: false,
            state: None,
            sweep_from,
            failure: None,
            awaited_round: None,
            pace: None,
        }
    }
}

impl LineRound {
    /// Runs the round. Expiry comes first, so that capacity it frees is used in the same tick; an opening
    /// comes before admission, so that the line admits in the tick that opens it.
    pub(super) async fn run(&self, id: &ItemId) -> Result<LineRoundReport> {
        let mut report = LineRoundReport::empty(self.sweep_from.clone());
        let expiry = self.expire(id, Lane::STANDARD, &mut report).await?;
        if !expiry.active {
            return Ok(report);
        }
        let mut front_is_above_base = expiry.front_is_above_base;
        for lane in (1..=expiry.lanes).filter_map(Lane::numbered) {
            let expiry = self.expire(id, lane, &mut report).await?;
            front_is_above_base &= expiry.front_is_above_base;
        }
        let mut item = match self.store.item(id).await? {
            Some(item) => self.follow_opening(item).await?,
            None => None,
        };
        if item.as_ref().is_some_and(|item| is_checkpoint_due(item, self.now)) {
            self.store.checkpoint_control(self.epoch, id, self.now).await?;
        }
        report.awaited_round = item
            .as_ref()
            .and_then(|item| item.awaited_round(self.now))
            .map(|round| (round, round_published_at(round)));
        report.state = item
            .as_ref()
            .map(|item| line_state(item, front_is_above_base, &self.settings, self.now));
        // A recovering or held line gets its quota, too, because the script checks the item and the
        // outbox again, atomically with the admission. While a line holds numbers above its base, it
        // still serves the numbers below.
        let serves =
            matches!(report.state, Some(LineState::Open | LineState::Recovering | LineState::Held));
        if let Some(item) = item.as_mut().filter(|_| serves) {
            self.follow_origin(item, &mut report).await?;
        }
        let served = item.as_ref().filter(|_| serves);
        let quota = served.map_or(0, |item| quota(item, &self.settings));
        // An adaptive pace below one user per tick admits none in most ticks. A call with a quota of 0 would mark the
        // line as stopped, and absence would not count.
        let waits_for_quota =
            quota == 0 && served.is_some_and(|item| !is_quota_zero(item, &self.settings));
        // The sweep runs even if admission failed, because it frees memory of the store and a full
        // memory may be why admission failed.
        let admission = async {
            match waits_for_quota {
                true => Ok(()),
                false => self.admit(id, quota, &mut report).await,
            }
        };
        match admission.await {
            Err(stale @ Error::StaleEpoch(_)) => return Err(stale),
            admitted => report.failure = admitted.err(),
        }
        if item.is_some_and(|item| item.policy.absence_limit_seconds().is_some()) {
            for lane in (0..=expiry.lanes).filter_map(Lane::numbered) {
                self.sweep(id, lane, &mut report).await?;
            }
        }
        Ok(report)
    }

    /// Runs the step of an adaptive pace.
    async fn follow_origin(&self, item: &mut Item, report: &mut LineRoundReport) -> Result<()> {
        let Some(pace) = item.policy.pace.adaptive() else { return Ok(()) };
        let probed = self.probes.as_ref().and_then(|probes| probes.signal(pace));
        let mut known = self.pace.clone();
        let leader = (&self.store, self.epoch);
        let step = known.step(leader, (item, pace), probed, &self.settings, self.now).await?;
        item.pace = step.or(item.pace.take());
        report.pace = item.pace.clone().map(|state| (known, state));
        Ok(())
    }

    /// Expires entries until none is due. Returns the last reply.
    async fn expire(
        &self,
        id: &ItemId,
        lane: Lane,
        report: &mut LineRoundReport,
    ) -> Result<Expiry> {
        loop {
            let expiry = self.store.expire(self.epoch, id, lane, self.now).await?;
            report.expired += expiry.expired;
            report.abandoned += expiry.abandoned;
            if !expiry.more {
                return Ok(expiry);
            }
        }
    }

    /// Admits up to `quota` tickets. Calls the store once even for a quota of 0: the script also
    /// settles direct admissions since the last tick, otherwise an empty line would stay active.
    async fn admit(&self, id: &ItemId, mut quota: u32, report: &mut LineRoundReport) -> Result<()> {
        let spacing = Millis::from(self.settings.tick_ms) * MIN_TICK_PERCENT / 100;
        loop {
            let call = self.store.admit(self.epoch, id, quota, spacing, self.outbox_max, self.now);
            let admission = call.await?;
            report.admitted += admission.admitted;
            report.missed += admission.missed;
            report.outbox_full |= admission.outbox_full && quota > 0;
            if !admission.more || admission.remaining == 0 {
                return Ok(());
            }
            quota = admission.remaining;
        }
    }

    /// Sweeps from where the last tick stopped to the end of the line at most. Chunks beyond
    /// [`SWEEP_CHUNKS`] are swept while each finds absent users and there is time, so that tickets
    /// of a hostile client are removed within a few ticks. Every chunk is one short script.
    async fn sweep(&self, id: &ItemId, lane: Lane, report: &mut LineRoundReport) -> Result<()> {
        let tick = Duration::from_millis(self.settings.tick_ms.into());
        let deadline = Instant::now() + (tick * SWEEP_SHARE / 100).min(MAX_SWEEP);
        for chunk in 1.. {
            let from = report.sweep_from.get(&lane).copied().unwrap_or(Number(0));
            let sweep = self.store.sweep(self.epoch, id, lane, from, self.now).await?;
            report.abandoned += sweep.abandoned;
            report.sweep_from.insert(lane, sweep.cursor);
            let goes_on = sweep.abandoned > 0 && Instant::now() < deadline;
            if sweep.cursor == Number(0) || (chunk >= SWEEP_CHUNKS && !goes_on) {
                break;
            }
        }
        Ok(())
    }
}

/// Returns whether the counter of a lobby may have to be recorded.
fn is_checkpoint_due(item: &Item, now: Millis) -> bool {
    item.phase(now) == Phase::Lobby && item.control_version + CHECKPOINT_INTERVAL_MS <= now
}
