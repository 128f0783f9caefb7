//! Limits held connections (streams, WebSockets and long polls) per ticket and per pod. Plain polls
//! are not held and not limited here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use daegi_domain::{ItemId, Number, Ticket};
use metrics::{Gauge, counter, gauge};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::ApiLimits;
use crate::metrics::{HELD_REFUSED, HELD_SUPERSEDED, STREAMS};

/// How a client holds a connection open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Sse,
    WebSocket,
    LongPoll,
}

/// All held connections of a pod.
pub(super) struct ConnectionLimiter {
    streams: Arc<Semaphore>,
    long_polls: Arc<Semaphore>,
    per_ticket: usize,
    next_serial: AtomicU64,
    tickets: Arc<ConnectionsByTicket>,
}

type TicketKey = (ItemId, Number);

/// The connections of each ticket, oldest first.
#[derive(Default)]
struct ConnectionsByTicket(Mutex<HashMap<TicketKey, Vec<Connection>>>);

/// One connection of a ticket. It owns the semaphore permit, so that a superseded connection frees its
/// slot immediately, however slowly its client reads the last event.
struct Connection {
    serial: u64,
    transport: Transport,
    superseded: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

/// A held connection. Dropping it frees its slot.
pub(super) struct ConnectionPermit {
    key: TicketKey,
    serial: u64,
    superseded: CancellationToken,
    tickets: Arc<ConnectionsByTicket>,
    open: Gauge,
}

impl Transport {
    /// Values of the metric label `kind`, in the order of the variants.
    pub(crate) const LABELS: [&'static str; 3] = ["events", "socket", "long_poll"];

    fn label(self) -> &'static str {
        Self::LABELS[self as usize]
    }
}

impl ConnectionLimiter {
    pub(super) fn new(limits: &ApiLimits) -> Self {
        let permits = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self {
            streams: permits(limits.streams),
            long_polls: permits(limits.long_polls),
            per_ticket: limits.held_per_ticket.max(1),
            next_serial: AtomicU64::new(0),
            tickets: Arc::default(),
        }
    }

    /// Acquires a connection for a ticket, and ends the ticket's oldest one if it has too many. Returns
    /// `None` if the pod has reached its maximum for this transport.
    pub(super) fn acquire(
        &self,
        ticket: &Ticket,
        transport: Transport,
    ) -> Option<ConnectionPermit> {
        let slots = if transport == Transport::LongPoll { &self.long_polls } else { &self.streams };
        let Ok(permit) = Arc::clone(slots).try_acquire_owned() else {
            counter!(HELD_REFUSED, "kind" => transport.label()).increment(1);
            return None;
        };
        let (key, superseded) = ((ticket.item.clone(), ticket.number), CancellationToken::new());
        let serial = self.next_serial.fetch_add(1, Ordering::Relaxed);
        let open = gauge!(STREAMS, "kind" => transport.label());
        open.increment(1);
        let (token, _permit) = (superseded.clone(), permit);
        let connection = Connection { serial, transport, superseded: token, _permit };
        let oldest = self.tickets.push(&key, connection, self.per_ticket);
        if let Some(oldest) = oldest {
            counter!(HELD_SUPERSEDED, "kind" => oldest.transport.label()).increment(1);
            oldest.superseded.cancel();
        }
        Some(ConnectionPermit { key, serial, superseded, tickets: Arc::clone(&self.tickets), open })
    }
}

impl ConnectionPermit {
    /// Completes when a newer connection of the ticket has taken this one's slot.
    pub(super) async fn superseded(&self) {
        self.superseded.cancelled().await;
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.open.decrement(1);
        self.tickets.remove(&self.key, self.serial);
    }
}

impl ConnectionsByTicket {
    /// Adds a connection; returns the oldest if there are more than `max` now.
    fn push(&self, key: &TicketKey, connection: Connection, max: usize) -> Option<Connection> {
        let mut tickets = self.lock();
        let connections = tickets.entry(key.clone()).or_default();
        connections.push(connection);
        (connections.len() > max).then(|| connections.remove(0))
    }

    fn remove(&self, key: &TicketKey, serial: u64) {
        let mut tickets = self.lock();
        if let Some(connections) = tickets.get_mut(key) {
            connections.retain(|connection| connection.serial != serial);
            if connections.is_empty() {
                tickets.remove(key);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TicketKey, Vec<Connection>>> {
        // A poisoned lock is usable, because no call panics between two related changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use daegi_domain::UserId;

    use super::*;

    fn ticket(number: u64) -> Ticket {
        let (item, user) = (ItemId::parse("a").unwrap(), UserId::parse("kim").unwrap());
        Ticket::new(item, user, Number(number))
    }

    #[test]
    fn a_superseded_connection_frees_its_slot_before_it_is_dropped() {
        let some = ApiLimits::default();
        let limits = ApiLimits { streams: 3, long_polls: 1, held_per_ticket: 2, ..some };
        let limiter = ConnectionLimiter::new(&limits);
        let first = limiter.acquire(&ticket(1), Transport::Sse).unwrap();
        let second = limiter.acquire(&ticket(1), Transport::WebSocket).unwrap();
        let third = limiter.acquire(&ticket(1), Transport::LongPoll).unwrap();
        assert!(first.superseded.is_cancelled() && !second.superseded.is_cancelled());
        let others = [
            limiter.acquire(&ticket(2), Transport::Sse),
            limiter.acquire(&ticket(3), Transport::Sse),
        ];
        assert!(others.iter().all(Option::is_some) && !third.superseded.is_cancelled());
        assert!(
            limiter.acquire(&ticket(4), Transport::Sse).is_none(),
            "the pod has no stream left"
        );
        assert!(limiter.acquire(&ticket(4), Transport::LongPoll).is_none());
        drop((first, second, third, others));
        assert!(limiter.tickets.lock().is_empty(), "a ticket without connections leaves no entry");
        assert_eq!(
            (limiter.streams.available_permits(), limiter.long_polls.available_permits()),
            (3, 1)
        );
    }
}
