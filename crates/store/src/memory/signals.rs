use std::collections::BTreeMap;

use async_trait::async_trait;
use daegi_domain::{ItemId, Lane, Millis, Number, SignalCounts, Signals};

use super::MemoryStore;
use crate::limits::{MAX_SCORED_TICKETS, SIGNAL_RETENTION_MS};
use crate::{Result, SignalStore};

/// The signals of the tickets of one item.
#[derive(Debug, Clone, Default)]
pub(super) struct ItemSignals {
    tickets: BTreeMap<(Lane, Number), Signals>,
    counts: SignalCounts,
    ends_at: Millis,
}

impl ItemSignals {
    fn add(&mut self, ticket: (Lane, Number), signals: Signals) {
        let known = self.tickets.get(&ticket).copied();
        if known.is_none() && self.tickets.len() >= MAX_SCORED_TICKETS as usize {
            self.counts.uncounted += 1;
            return;
        }
        let before = known.unwrap_or(Signals::NONE);
        let after = before.union(signals);
        self.counts.add(before, after);
        self.tickets.insert(ticket, after);
    }
}

#[async_trait]
impl SignalStore for MemoryStore {
    async fn add_signals(
        &self,
        id: &ItemId,
        tickets: &[(Lane, Number, Signals)],
        now: Millis,
    ) -> Result<()> {
        if tickets.is_empty() {
            return Ok(());
        }
        let mut state = self.state();
        let stored = state.signals.entry(id.clone()).or_default();
        if stored.ends_at <= now {
            *stored = ItemSignals::default();
        }
        stored.ends_at = now + SIGNAL_RETENTION_MS;
        tickets.iter().for_each(|(lane, number, signals)| stored.add((*lane, *number), *signals));
        Ok(())
    }

    async fn signal_counts(&self, id: &ItemId, now: Millis) -> Result<SignalCounts> {
        let state = self.state();
        let stored = state.signals.get(id).filter(|stored| stored.ends_at > now);
        Ok(stored.map_or_else(SignalCounts::default, |stored| stored.counts))
    }
}
