//! Ends the tickets of blocked users, in the background and a few at a time, so that a rule that blocks thousands of
//! streams does not flood the store. A ticket ends as `LEFT`; see `docs/adr/026-block-and-allow-lists.md`.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{AccessEventKind, AccessRule, Number, Ticket};
use daegi_runtime::outage::Backoff;
use daegi_store::EndOutcome;
use futures_util::StreamExt;
use metrics::counter;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::AccessControl;
use crate::lines::{LineKey, TtlCache};
use crate::metrics::BLOCKED_TICKETS;
use crate::timeouts::with_store_timeout;

/// Tickets that wait for their end: more than a pod has streams. Beyond that the next request of a ticket ends it.
const QUEUE: usize = 32 * 1024;
/// Tickets that end at the same time.
const MAX_CONCURRENT: usize = 16;
/// How long a ticket is not ended again, so that a blocked client that keeps polling costs no store call.
const REPEAT_AFTER: Duration = Duration::from_secs(60);
/// Tickets that are remembered for that.
const REMEMBERED: usize = 16 * 1024;
/// Attempts to end a ticket while the store is unavailable: about five minutes.
const ATTEMPTS: u32 = 30;
/// The first and the longest delay between two attempts.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// The tickets that are to end.
pub(super) struct Endings {
    queue: mpsc::Sender<Ending>,
    recent: TtlCache<(LineKey, Number), ()>,
}

/// A ticket, and the rule that blocks its user.
pub(super) struct Ending {
    ticket: Ticket,
    rule: Arc<AccessRule>,
}

pub(super) fn channel() -> (Endings, mpsc::Receiver<Ending>) {
    let (queue, receiver) = mpsc::channel(QUEUE);
    (Endings { queue, recent: TtlCache::new(REPEAT_AFTER, REMEMBERED) }, receiver)
}

impl Endings {
    /// Queues a ticket, unless it was queued recently.
    pub(super) fn push(&self, ticket: &Ticket, rule: &Arc<AccessRule>) {
        let key = (LineKey::from(ticket), ticket.number);
        if self.recent.get(&key).is_none() {
            let ending = Ending { ticket: ticket.clone(), rule: Arc::clone(rule) };
            if self.queue.try_send(ending).is_ok() {
                self.recent.insert(key, ());
            }
        }
    }
}

impl AccessControl {
    /// Ends queued tickets. Never returns.
    pub(super) async fn end_tickets(self: Arc<Self>, mut queue: mpsc::Receiver<Ending>) {
        let endings = futures_util::stream::poll_fn(move |context| queue.poll_recv(context));
        endings.for_each_concurrent(MAX_CONCURRENT, |ending| self.end_ticket(ending)).await;
        // `self` owns the sender, so that the stream does not end.
    }

    async fn end_ticket(&self, Ending { ticket, rule }: Ending) {
        let mut backoff = Backoff::new(RETRY_DELAYS.0, RETRY_DELAYS.1);
        for _ in 0..ATTEMPTS {
            let now = self.clock.now_ms();
            match with_store_timeout("leave", self.store.leave(&ticket, now)).await {
                Ok(EndOutcome::Ended) => {
                    counter!(BLOCKED_TICKETS).increment(1);
                    let (user, item) = (&ticket.user, &ticket.item);
                    return self.events.push(AccessEventKind::TicketEnded, &rule, user, item, now);
                }
                Ok(EndOutcome::AlreadyEnded) => return,
                // The item may be restored within seconds.
                Ok(EndOutcome::ItemUnknown) | Err(_) => sleep(backoff.next_delay()).await,
            }
        }
        // The next request of the ticket tries again.
        self.endings.recent.remove(&(LineKey::from(&ticket), ticket.number));
    }
}
