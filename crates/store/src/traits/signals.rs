use std::fmt::Debug;

use async_trait::async_trait;
use daegi_domain::{ItemId, Lane, Millis, Number, SignalCounts, Signals};

use crate::Result;

/// Signals that tickets belong to programs. Only numbers of tickets and counts are stored.
#[async_trait]
pub trait SignalStore: Debug + Send + Sync + 'static {
    /// Adds the signals of tickets of an item; a ticket counts once per signal, whichever pods report it. At most
    /// [`crate::MAX_SCORED_TICKETS`] tickets of an item are counted. All counts of an item end
    /// [`crate::SIGNAL_RETENTION_MS`] after the last call.
    async fn add_signals(
        &self,
        id: &ItemId,
        tickets: &[(Lane, Number, Signals)],
        now: Millis,
    ) -> Result<()>;

    /// Returns how many tickets of an item have signals.
    async fn signal_counts(&self, id: &ItemId, now: Millis) -> Result<SignalCounts>;
}
