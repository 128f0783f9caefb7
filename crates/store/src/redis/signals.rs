use async_trait::async_trait;
use daegi_domain::{ItemId, Lane, Millis, Number, Signal, SignalCounts, Signals};

use super::RedisStore;
use super::scripts::scripts;
use crate::limits::{MAX_SCORED_TICKETS, SIGNAL_RETENTION_MS};
use crate::{Result, SignalStore};

/// The fields of counts: one per signal, in the order of its bits, then the others.
const COUNTS: [&str; Signal::ALL.len() + 2] =
    ["source", "headers", "earlyPolls", "noPage", "honeypot", "automated", "uncounted"];

#[async_trait]
impl SignalStore for RedisStore {
    async fn add_signals(
        &self,
        id: &ItemId,
        tickets: &[(Lane, Number, Signals)],
        now: Millis,
    ) -> Result<()> {
        if tickets.is_empty() {
            return Ok(());
        }
        let mut script = scripts().add_signals.invocation();
        script.key(self.keys(id).signals()).arg(now).arg(SIGNAL_RETENTION_MS);
        script.arg(MAX_SCORED_TICKETS);
        for (lane, number, signals) in tickets {
            script.arg(format!("{}:{}", lane.index(), number.0)).arg(signals.bits());
        }
        self.run(script).await
    }

    async fn signal_counts(&self, id: &ItemId, now: Millis) -> Result<SignalCounts> {
        let mut read = ::redis::cmd("HMGET");
        read.arg(self.keys(id).signals()).arg("endsAt").arg(&COUNTS);
        let stored: Vec<Option<u64>> = self.command(&read).await?;
        let count = |index: usize| stored.get(index + 1).copied().flatten().unwrap_or(0);
        if stored.first().copied().flatten().unwrap_or(0) <= now {
            return Ok(SignalCounts::default());
        }
        Ok(SignalCounts {
            source: count(0),
            headers: count(1),
            early_polls: count(2),
            no_page: count(3),
            honeypot: count(4),
            automated: count(5),
            uncounted: count(6),
        })
    }
}
