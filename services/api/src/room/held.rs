//! Held connections: streams, sockets and long polls, how many of them one ticket and one pod may
//! have. Plain polls never come here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use daegi_domain::{ItemId, Number, Ticket};
use metrics::{Gauge, counter, gauge};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::ApiLimits;
use crate::meters::{HELD_REFUSED, HELD_SUPERSEDED, STREAMS};

/// How a client holds a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Events,
    Socket,
    LongPoll,
}

/// All held connections of a pod.
pub(super) struct Held {
    streams: Arc<Semaphore>,
    long_polls: Arc<Semaphore>,
    per_ticket: usize,
    next_serial: AtomicU64,
    tickets: Arc<Tickets>,
}

type TicketKey = (ItemId, Number);

/// The connections of each ticket, oldest first.
#[derive(Default)]
struct Tickets(Mutex<HashMap<TicketKey, Vec<Connection>>>);

/// One connection as its ticket knows it. Holds the permit, so that a superseded connection frees
/// its slot at once, however slowly its client reads the end.
struct Connection {
    serial: u64,
    kind: Kind,
    superseded: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

/// A held connection; dropping it frees its slot.
pub(super) struct Hold {
    key: TicketKey,
    serial: u64,
    superseded: CancellationToken,
    tickets: Arc<Tickets>,
    open: Gauge,
}

impl Kind {
    /// All kinds, as metrics name them.
    pub(crate) const LABELS: [&'static str; 3] = ["events", "socket", "long_poll"];

    fn label(self) -> &'static str {
        Self::LABELS[self as usize]
    }
}

impl Held {
    pub(super) fn new(limits: &ApiLimits) -> Self {
        let permits = |many: usize| Arc::new(Semaphore::new(many.min(Semaphore::MAX_PERMITS)));
        Self {
            streams: permits(limits.streams),
            long_polls: permits(limits.long_polls),
            per_ticket: limits.held_per_ticket.max(1),
            next_serial: AtomicU64::new(0),
            tickets: Arc::default(),
        }
    }

    /// Holds a connection for a ticket; its oldest one ends where it has too many. Returns `None`
    /// if the pod holds as many of this kind as it may.
    pub(super) fn hold(&self, ticket: &Ticket, kind: Kind) -> Option<Hold> {
        let slots = if kind == Kind::LongPoll { &self.long_polls } else { &self.streams };
        let Ok(permit) = Arc::clone(slots).try_acquire_owned() else {
            counter!(HELD_REFUSED, "kind" => kind.label()).increment(1);
            return None;
        };
        let (key, superseded) = ((ticket.item.clone(), ticket.number), CancellationToken::new());
        let serial = self.next_serial.fetch_add(1, Ordering::Relaxed);
        let open = gauge!(STREAMS, "kind" => kind.label());
        open.increment(1);
        let (token, _permit) = (superseded.clone(), permit);
        let connection = Connection { serial, kind, superseded: token, _permit };
        let oldest = self.tickets.push(&key, connection, self.per_ticket);
        if let Some(oldest) = oldest {
            counter!(HELD_SUPERSEDED, "kind" => oldest.kind.label()).increment(1);
            oldest.superseded.cancel();
        }
        Some(Hold { key, serial, superseded, tickets: Arc::clone(&self.tickets), open })
    }
}

impl Hold {
    /// Completes when a newer connection of the ticket has taken this one's slot.
    pub(super) async fn superseded(&self) {
        self.superseded.cancelled().await;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.open.decrement(1);
        self.tickets.remove(&self.key, self.serial);
    }
}

impl Tickets {
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
        // No call panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use daegi_domain::UserId;

    use super::*;

    fn ticket(number: u64) -> Ticket {
        let (item, user) = (ItemId::parse("a").unwrap(), UserId::parse("kim").unwrap());
        Ticket { item, user, number: Number(number) }
    }

    #[test]
    fn a_superseded_connection_frees_its_slot_before_it_is_dropped() {
        let some = ApiLimits::default();
        let limits = ApiLimits { streams: 3, long_polls: 1, held_per_ticket: 2, ..some };
        let held = Held::new(&limits);
        let first = held.hold(&ticket(1), Kind::Events).unwrap();
        let second = held.hold(&ticket(1), Kind::Socket).unwrap();
        let third = held.hold(&ticket(1), Kind::LongPoll).unwrap();
        assert!(first.superseded.is_cancelled() && !second.superseded.is_cancelled());
        let others = [held.hold(&ticket(2), Kind::Events), held.hold(&ticket(3), Kind::Events)];
        assert!(others.iter().all(Option::is_some) && !third.superseded.is_cancelled());
        assert!(held.hold(&ticket(4), Kind::Events).is_none(), "the pod has no stream left");
        assert!(held.hold(&ticket(4), Kind::LongPoll).is_none());
        drop((first, second, third, others));
        assert!(held.tickets.lock().is_empty(), "nothing is kept of a ticket without connections");
        assert_eq!((held.streams.available_permits(), held.long_polls.available_permits()), (3, 1));
    }
}
