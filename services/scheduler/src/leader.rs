//! The lease, the terms and the pace of ticks.
//!
//! A replica stands by and tries for the lease; while it holds it, it ticks and relays. A term
//! ends when the lease is lost, when the store says that another replica leads, or with the
//! process, which gives the lease back at once so that the next one need not wait for it to run
//! out.

mod gauges;

use std::sync::Arc;
use std::time::Duration;

use daegi_store::{Error, Lease, Reign, SharedStore};
use metrics::{counter, histogram};
use tokio::time::Instant;

use crate::leadership::Ending;
use crate::relay::Recent;
use crate::trouble::Trouble;
use crate::{Leadership, Relay, SchedulerDeps, TickReport, Ticker, meters};
use daegi_runtime::health::Part;
use daegi_runtime::{Clock, Shutdown};
use gauges::Gauges;
pub(crate) use gauges::outbox_pending;

/// The pause after a tick that failed, and the longest a change of the tick's length waits.
const MOMENT: Duration = Duration::from_secs(1);

/// The longest a standby waits between two tries, whatever the lease: a leader that is told to stop
/// has a successor within a second.
const TRY_EVERY: Duration = Duration::from_millis(500);

/// One replica's part in leading.
#[derive(Debug)]
pub struct Leader {
    store: SharedStore,
    clock: Clock,
    health: Part,
    lease: Duration,
    outbox_max: u64,
    relay: Relay,
    leadership: Arc<Leadership>,
}

impl Leader {
    /// A replica that will tell `leadership` what it is.
    #[must_use]
    pub fn new(deps: SchedulerDeps, leadership: Arc<Leadership>) -> Self {
        Self {
            relay: Relay::new(deps.store.clone(), deps.outlet).traced(deps.traces),
            store: deps.store,
            clock: deps.clock,
            health: deps.health,
            lease: deps.lease,
            outbox_max: deps.outbox_max,
            leadership,
        }
    }

    /// What the relay of this replica published lately.
    #[must_use]
    pub fn recent(&self) -> Arc<Recent> {
        self.relay.recent()
    }

    /// Leads or stands by until the shutdown. No trouble of the store ends it.
    pub async fn run(self, shutdown: Shutdown) {
        // Draining already: balancers have nothing to do with leading, a successor has.
        let stop = shutdown.draining();
        if stop.run_until_cancelled(self.meet_store()).await.is_none() {
            return;
        }
        let mut trouble = Trouble::new("lease");
        while !stop.is_cancelled() {
            // Not cut short by the shutdown: a lock that is taken but not known cannot be given
            // back, and the next leader would have to wait for it to run out.
            if let Some(lease) = self.try_lead(&mut trouble).await {
                self.lead(lease, &shutdown).await;
            }
            let pause = tokio::time::sleep(jittered(TRY_EVERY.min(self.lease / 3)));
            stop.run_until_cancelled(pause).await;
        }
    }

    /// Ready once the store has answered: the admin API and standbys need nothing else.
    async fn meet_store(&self) {
        let mut trouble = Trouble::new("scheduler");
        while let Err(error) = self.store.settings().await {
            if trouble.met(&error) {
                self.health.set_not_ready("the store does not answer");
            }
            tokio::time::sleep(jittered(self.lease / 3)).await;
        }
        trouble.over();
        self.health.set_ready();
    }

    async fn try_lead(&self, trouble: &mut Trouble) -> Option<Lease> {
        let attempt = Lease::try_acquire(&*self.store, self.lease, self.clock.now_ms());
        match tokio::time::timeout(self.lease, attempt).await {
            Ok(Ok(lease)) => {
                trouble.over();
                return lease;
            }
            Ok(Err(error)) => trouble.met(&error),
            Err(_) => trouble.met(&"no answer within the length of a lease"),
        };
        None
    }

    /// One term, from the lease to its end.
    async fn lead(&self, lease: Lease, shutdown: &Shutdown) {
        let (epoch, lost) = (lease.epoch(), lease.lost());
        let step_down = shutdown.draining().child_token();
        shutdown.tracker().spawn(lease.hold(step_down.clone()));
        let since = self.clock.now_ms();
        self.leadership.begin(epoch, since);
        let leader = self.leadership.replica().to_owned();
        let reign = Reign { leader, epoch, since };
        let mut gauges = Gauges::new(self.store.clone());
        let ticker = Ticker::new(self.store.clone(), epoch, self.outbox_max);
        let working = async {
            tokio::select! {
                () = self.ticks(ticker, &mut gauges) => {}
                () = self.relay.run() => {}
                () = self.announce(&reign) => {}
            }
        };
        let ending = match lost.run_until_cancelled(working).await {
            Some(()) => Ending::Refused,
            None if shutdown.draining().is_cancelled() => Ending::Stopped,
            None => Ending::Lost,
        };
        // Ends the renewal, whatever ended the work; a lease that is lost stays lost.
        step_down.cancel();
        lost.cancelled().await;
        gauges.clear();
        self.leadership.end(epoch, ending);
    }

    /// Says who leads, so that standbys can. Never ends: nothing else depends on it.
    async fn announce(&self, reign: &Reign) {
        while let Err(error) = self.store.leases().announce(reign).await {
            tracing::debug!(%error, "not announced");
            tokio::time::sleep(MOMENT).await;
        }
        std::future::pending().await
    }

    /// Ticks until the store says that another replica leads. A tick that takes longer than its
    /// length is followed by the next at once, and none is caught up.
    async fn ticks(&self, mut ticker: Ticker, gauges: &mut Gauges) {
        let mut troubles = (Trouble::new("tick"), Trouble::new("outbox"));
        loop {
            let started = Instant::now();
            match ticker.tick(self.clock.now_ms()).await {
                Ok(report) => {
                    self.ticked(&report, started.elapsed(), &mut troubles.1);
                    gauges.show(&report).await;
                    let Some(away) = &report.away else {
                        troubles.0.over();
                        self.wait_for_next(started, report.length()).await;
                        continue;
                    };
                    failed(away, &mut troubles.0);
                    // Lines that were served are not served again before their time.
                    tokio::time::sleep(MOMENT.min(report.length())).await;
                }
                Err(Error::StaleEpoch(_)) => return,
                Err(error) => {
                    failed(&error, &mut troubles.0);
                    tokio::time::sleep(MOMENT).await;
                }
            }
        }
    }

    fn ticked(&self, report: &TickReport, took: Duration, outbox: &mut Trouble) {
        report.count();
        histogram!(meters::TICK_SECONDS).record(took);
        self.leadership.ticked(took, self.clock.now_ms());
        if report.outbox_full > 0 {
            outbox.met(&"full of admissions, lines are held until it drains");
        } else {
            outbox.over();
        }
        tracing::debug!(?report, "ticked");
    }

    /// Looks at the settings while it waits, so that nobody waits a minute to correct a tick that
    /// lasts a minute.
    async fn wait_for_next(&self, started: Instant, mut length: Duration) {
        while let Some(left) = length.checked_sub(started.elapsed()) {
            tokio::time::sleep(left.min(MOMENT)).await;
            if left <= MOMENT {
                return;
            }
            if let Ok(settings) = self.store.settings().await {
                length = Duration::from_millis(settings.tick_ms.into());
            }
        }
    }
}

fn failed(error: &Error, trouble: &mut Trouble) {
    counter!(meters::TICKS_FAILED).increment(1);
    trouble.met(error);
}

/// ±20 %, so that replicas started together do not ask together for ever.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.8 + 0.4 * fastrand::f64())
}
