use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use daegi_domain::{Happened, ItemId, LineEvent};
use daegi_store::OutboxBatch;

/// How many events are remembered, and so how much a notice holds.
const KEPT: usize = 40;

/// The latest events that left the outbox, for people to look at. A sample: what comes faster than
/// anybody can read is only looked at from its end.
#[derive(Debug, Default)]
pub struct Recent {
    events: Mutex<VecDeque<Happened>>,
}

impl Recent {
    /// The latest events, oldest first.
    #[must_use]
    pub fn events(&self) -> Vec<Happened> {
        let kept = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let mut events: Vec<_> = kept.iter().cloned().collect();
        // Partitions are drained side by side.
        events.sort_by_key(|event| event.at);
        events
    }

    pub(super) fn note(&self, batches: &[OutboxBatch]) {
        let events =
            batches.iter().flat_map(|batch| batch.events.iter().map(move |event| (batch, event)));
        let count = batches.iter().map(|batch| batch.events.len()).sum::<usize>();
        let latest = events.skip(count.saturating_sub(KEPT));
        let mut kept = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(latest.map(|(batch, event)| happened(&batch.item, event)));
        let too_many = kept.len().saturating_sub(KEPT);
        kept.drain(..too_many);
    }
}

fn happened(item: &ItemId, event: &LineEvent) -> Happened {
    let (user, at, reason) = match event {
        LineEvent::Activated { user, at, .. } => (user, at, None),
        LineEvent::Closed { user, at, reason, .. } => (user, at, Some(*reason)),
    };
    Happened { at: *at, item: item.clone(), user: user.clone(), reason }
}

#[cfg(test)]
mod tests {
    use daegi_domain::{Number, UserId};

    use super::*;

    #[test]
    fn the_latest_events_are_remembered_in_the_order_of_their_time() {
        let batch = |from: u64, to: u64| {
            let event = |at| LineEvent::Activated {
                user: UserId::parse(&format!("user-{at}")).unwrap(),
                number: Number(at),
                at,
                expires_at: at + 1,
            };
            let item = ItemId::parse("concert").unwrap();
            OutboxBatch {
                id: from.to_string(),
                item,
                epoch: None,
                events: (from..to).map(event).collect(),
            }
        };
        let recent = Recent::default();
        recent.note(&[batch(200, 300), batch(300, 310)]);
        recent.note(&[batch(0, 5)]);
        let times: Vec<_> = recent.events().iter().map(|event| event.at).collect();
        assert_eq!(times.len(), KEPT);
        assert_eq!((times[0], times[5], times[39]), (0, 275, 309));
    }
}
