//! The leader election, the terms and the interval of ticks.
//!
//! A standby tries to acquire the lease. The replica that holds it ticks and runs the relay. A term ends
//! when the lease is lost, when the store rejects the epoch, or with the process, which releases the
//! lease immediately so that the next leader need not wait until it expires.

mod line_gauges;
mod minute_recorder;
mod settings_recorder;

use std::sync::Arc;
use std::time::Duration;

use ::metrics::{counter, histogram};
use daegi_domain::TicketKeys;
use daegi_runtime::health::Component;
use daegi_runtime::outage::{OutageLog, jittered};
use daegi_runtime::{Clock, Shutdown};
use daegi_store::{CurrentLeader, Error, Lease, SharedStore};
use tokio::time::Instant;

use crate::leadership::TermEnd;
use crate::relay::RecentEvents;
use crate::{Beacons, Leadership, OriginProbes, Relay, SchedulerDeps, TickReport, Ticker, metrics};
use line_gauges::LineGauges;
pub(crate) use line_gauges::outbox_pending;
pub use minute_recorder::MinuteRecorder;

/// Delay after a tick that failed, and how often the tick length is read again during a longer tick.
const TICK_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Delay between two attempts of a standby, ±20 %; a third of the lease if that is shorter. It does not
/// grow with the lease, so that a leader that stops has a successor within one second.
const LEASE_RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Leads or stands by, for one replica.
#[derive(Debug)]
pub struct LeaderLoop {
    store: SharedStore,
    clock: Clock,
    health: Component,
    lease: Duration,
    outbox_max: u64,
    history: Duration,
    ticket_keys: TicketKeys,
    beacons: Arc<Beacons>,
    probes: Arc<OriginProbes>,
    relay: Relay,
    leadership: Arc<Leadership>,
}

impl LeaderLoop {
    /// Creates the loop of a replica; it keeps `leadership` up to date.
    #[must_use]
    pub fn new(deps: SchedulerDeps, leadership: Arc<Leadership>) -> Self {
        Self {
            relay: Relay::new(deps.store.clone(), deps.sink).with_tracer(deps.tracer),
            store: deps.store,
            clock: deps.clock,
            health: deps.health,
            lease: deps.lease,
            outbox_max: deps.outbox_max,
            history: deps.history,
            ticket_keys: deps.ticket_keys,
            beacons: deps.beacons,
            probes: Arc::new(OriginProbes::new()),
            leadership,
        }
    }

    /// Returns the events that the relay of this replica sent last, confirmed or not.
    #[must_use]
    pub fn recent(&self) -> Arc<RecentEvents> {
        self.relay.recent()
    }

    /// Leads or stands by until the shutdown. A failing store does not end it.
    pub async fn run(self, shutdown: Shutdown) {
        // The term ends at the first step of the shutdown (draining) and does not wait for load
        // balancers, so that the next leader starts early.
        let stop = shutdown.draining();
        if stop.run_until_cancelled(self.wait_for_store()).await.is_none() {
            return;
        }
        let mut outage = OutageLog::new("lease");
        while !stop.is_cancelled() {
            // The shutdown does not cancel the attempt: a cancelled attempt may still acquire the
            // lock in the store without a `Lease` to release it, and the next leader would have to
            // wait until the lock expires.
            if let Some(lease) = self.try_acquire_lease(&mut outage).await {
                self.run_term(lease, &shutdown).await;
            }
            let delay = jittered(LEASE_RETRY_INTERVAL.min(self.lease / 3));
            stop.run_until_cancelled(tokio::time::sleep(delay)).await;
        }
    }

    /// Waits until the store replies, then reports ready, because the admin API and a standby need
    /// only the store.
    async fn wait_for_store(&self) {
        let mut outage = OutageLog::new("scheduler");
        while let Err(error) = self.store.settings().await {
            if outage.failed(&error) {
                self.health.set_not_ready("the store does not answer");
            }
            tokio::time::sleep(jittered(self.lease / 3)).await;
        }
        outage.recovered();
        self.health.set_ready();
    }

    async fn try_acquire_lease(&self, outage: &mut OutageLog) -> Option<Lease> {
        let attempt = Lease::try_acquire(&*self.store, self.lease, self.clock.now_ms());
        match tokio::time::timeout(self.lease, attempt).await {
            Ok(Ok(lease)) => {
                outage.recovered();
                return lease;
            }
            Ok(Err(error)) => outage.failed(&error),
            Err(_) => outage.failed(&"no reply within the length of a lease"),
        };
        None
    }

    /// Runs one term, from the lease to its end.
    async fn run_term(&self, lease: Lease, shutdown: &Shutdown) {
        let (epoch, lost) = (lease.epoch(), lease.lost());
        let step_down = shutdown.draining().child_token();
        shutdown.tracker().spawn(lease.hold(step_down.clone()));
        let since = self.clock.now_ms();
        self.leadership.term_began(epoch, since);
        let leader = self.leadership.replica().to_owned();
        let current = CurrentLeader { leader, epoch, since };
        let mut gauges = LineGauges::new(self.store.clone());
        let ticker = Ticker::new(self.store.clone(), epoch, self.outbox_max)
            .with_ticket_keys(self.ticket_keys.clone())
            .with_beacons(self.beacons.clone())
            .with_probes(self.probes.clone());
        let minutes = MinuteRecorder::new(self.store.clone(), epoch, self.history);
        let working = async {
            tokio::select! {
                () = self.run_ticks(ticker, &mut gauges, &minutes) => {}
                () = minutes.run(&self.clock) => {}
                () = self.relay.run() => {}
                () = self.beacons.run() => {}
                () = self.probes.clone().run() => {}
                () = self.publish_leader(&current) => {}
                () = settings_recorder::run(&*self.store, epoch, &self.clock) => {}
            }
        };
        let end = match lost.run_until_cancelled(working).await {
            Some(()) => TermEnd::Fenced,
            None if shutdown.draining().is_cancelled() => TermEnd::Stopped,
            None => TermEnd::LeaseLost,
        };
        // Ends the renewal and releases the lease if the store rejected the epoch. In the other cases
        // the lease is already lost or released, and this changes nothing.
        step_down.cancel();
        lost.cancelled().await;
        gauges.clear();
        self.leadership.term_ended(epoch, end);
    }

    /// Publishes the leader record, so that standbys can name the leader. Never returns, because a return
    /// would end the term.
    async fn publish_leader(&self, current: &CurrentLeader) {
        while let Err(error) = self.store.lock().publish_leader(current).await {
            tracing::debug!(%error, "leader record not published");
            tokio::time::sleep(TICK_RETRY_INTERVAL).await;
        }
        std::future::pending().await
    }

    /// Ticks until the store rejects the epoch. A tick that takes longer than its length is followed by
    /// the next one immediately, and missed ticks are not caught up.
    async fn run_ticks(
        &self,
        mut ticker: Ticker,
        gauges: &mut LineGauges,
        minutes: &MinuteRecorder,
    ) {
        let mut tick_outage = OutageLog::new("tick");
        let mut outbox_outage = OutageLog::new("outbox");
        let mut beacon_outage = OutageLog::new("beacon");
        loop {
            let started = Instant::now();
            match ticker.tick(self.clock.now_ms()).await {
                Ok(report) => {
                    self.record_tick(&report, started.elapsed(), &mut outbox_outage);
                    record_beacons(&report, &mut beacon_outage);
                    minutes.note_tick(&report.lines);
                    gauges.update(&report, self.clock.now_ms()).await;
                    let Some(error) = &report.unavailable else {
                        tick_outage.recovered();
                        self.wait_for_next(started, report.length()).await;
                        continue;
                    };
                    tick_failed(error, &mut tick_outage);
                    // The early retry serves only lines that this tick skipped: the admit script does
                    // nothing for a line whose last round is less than 90 % of a tick ago.
                    tokio::time::sleep(TICK_RETRY_INTERVAL.min(report.length())).await;
                }
                Err(Error::StaleEpoch(_)) => return,
                Err(error) => {
                    tick_failed(&error, &mut tick_outage);
                    tokio::time::sleep(TICK_RETRY_INTERVAL).await;
                }
            }
        }
    }

    fn record_tick(&self, report: &TickReport, took: Duration, outbox: &mut OutageLog) {
        report.record();
        histogram!(metrics::TICK_SECONDS).record(took);
        self.leadership.record_tick(took, self.clock.now_ms());
        if report.outbox_full > 0 {
            outbox.failed(&"outbox full, admission held until events are published");
        } else {
            outbox.recovered();
        }
        tracing::debug!(?report, "tick finished");
    }

    /// Waits for the next tick. Reads the settings once per second meanwhile, so that a tick of one
    /// minute can be shortened within a second.
    async fn wait_for_next(&self, started: Instant, mut length: Duration) {
        while let Some(left) = length.checked_sub(started.elapsed()) {
            tokio::time::sleep(left.min(TICK_RETRY_INTERVAL)).await;
            if left <= TICK_RETRY_INTERVAL {
                return;
            }
            if let Ok(settings) = self.store.settings().await {
                length = Duration::from_millis(settings.tick_ms.into());
            }
        }
    }
}

/// Logs that a line waits for a beacon that is overdue.
fn record_beacons(report: &TickReport, outage: &mut OutageLog) {
    match report.beacon_overdue.iter().min_by_key(|beacon| beacon.published_at) {
        Some(beacon) => drop(outage.failed(beacon)),
        None => outage.recovered(),
    }
}

fn tick_failed(error: &Error, outage: &mut OutageLog) {
    counter!(metrics::TICKS_FAILED).increment(1);
    outage.failed(error);
}
