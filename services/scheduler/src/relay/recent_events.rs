//! A sample of the events that the relay sent last, for operators.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use daegi_domain::{ItemId, RecentEvent, TicketEvent};
use daegi_store::OutboxBatch;

/// Events that are kept and sent with each heartbeat.
const MAX_EVENTS: usize = 40;

/// The latest events that the relay sent, recorded before the broker confirms them. Holds at most
/// 40 events, so only the last ones of a large batch.
#[derive(Debug, Default)]
pub struct RecentEvents {
    events: Mutex<VecDeque<RecentEvent>>,
}

impl RecentEvents {
    /// Returns the latest events, oldest first.
    #[must_use]
    pub fn events(&self) -> Vec<RecentEvent> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let mut events: Vec<_> = events.iter().cloned().collect();
        // Partitions are published concurrently, so their events are recorded out of order.
        events.sort_by_key(|event| event.at);
        events
    }

    pub(super) fn record(&self, batches: &[OutboxBatch]) {
        let events =
            batches.iter().flat_map(|batch| batch.events.iter().map(move |event| (batch, event)));
        let count = batches.iter().map(|batch| batch.events.len()).sum::<usize>();
        let latest = events.skip(count.saturating_sub(MAX_EVENTS));
        let mut stored = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        stored.extend(latest.map(|(batch, event)| recent_event(&batch.item, event)));
        let too_many = stored.len().saturating_sub(MAX_EVENTS);
        stored.drain(..too_many);
    }
}

fn recent_event(item: &ItemId, event: &TicketEvent) -> RecentEvent {
    let (user, at, reason) = match event {
        TicketEvent::Admitted { user, at, .. } => (user, at, None),
        TicketEvent::Ended { user, at, reason, .. } => (user, at, Some(*reason)),
    };
    RecentEvent { at: *at, item: item.clone(), user: user.clone(), reason }
}

#[cfg(test)]
mod tests {
    use daegi_domain::{Lane, Number, UserId};

    use super::*;

    #[test]
    fn the_latest_events_are_kept_in_the_order_of_their_time() {
        let batch = |from: u64, to: u64| {
            let event = |at| TicketEvent::Admitted {
                user: UserId::parse(&format!("user-{at}")).unwrap(),
                number: Number(at),
                at,
                expires_at: at + 1,
            };
            let item = ItemId::parse("concert").unwrap();
            OutboxBatch {
                id: from.to_string(),
                item,
                lane: Lane::STANDARD,
                lane_name: None,
                epoch: None,
                line: None,
                events: (from..to).map(event).collect(),
            }
        };
        let recent = RecentEvents::default();
        recent.record(&[batch(200, 300), batch(300, 310)]);
        recent.record(&[batch(0, 5)]);
        let times: Vec<_> = recent.events().iter().map(|event| event.at).collect();
        assert_eq!(times.len(), MAX_EVENTS);
        assert_eq!((times[0], times[5], times[39]), (0, 275, 309));
    }
}
