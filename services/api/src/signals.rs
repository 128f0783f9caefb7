//! Signals that a ticket belongs to a program. They change nothing by themselves: operators see how many tickets have them.
//!
//! Joins and polls set signals of tickets in the pod's memory, which is bounded; a task writes them to the store every
//! few seconds, as ticket numbers and bits. Addresses, headers and user agents are counted by their hashes in the pod and never
//! stored.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT_LANGUAGE, USER_AGENT};
use daegi_domain::{ItemId, Lane, Number, Signal, Signals, Ticket};
use daegi_runtime::outage::OutageLog;
use daegi_runtime::{Clock, Shutdown};
use daegi_store::SharedStore;
use metrics::counter;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::error::Result;
use crate::lines::TtlCache;
use crate::metrics::{SIGNALS, SIGNALS_UNRECORDED};
use crate::timeouts::with_store_timeout;

/// Interval between two writes.
const WRITE_INTERVAL: Duration = Duration::from_secs(3);
/// Tickets per store call.
const BATCH: usize = 100;
/// Tickets that wait to be written; further ones are counted and lost.
const MAX_WAITING: usize = 20_000;
/// Joins of one source, or with one set of headers, from which on a join is a signal: more than a household, fewer than a
/// program needs.
const MANY_JOINS: u32 = 20;
/// How long these joins are counted together.
const COUNT_FOR: Duration = Duration::from_secs(600);
/// Sources and sets of headers that a pod counts, per generation of the cache.
const MAX_COUNTED: usize = 32 * 1024;
/// Polls of a ticket that come too early, from which on they are a signal: several tabs and reloads make a few.
const MANY_EARLY_POLLS: u64 = 8;
/// Slots for the next polls of tickets: 2 MiB.
const SLOTS: usize = 256 * 1024;

/// Signals of tickets that are not written yet, by item.
type Pending = HashMap<ItemId, HashMap<(Lane, Number), Signals>>;

/// Finds signals of tickets.
pub(crate) struct SignalTracker {
    store: SharedStore,
    clock: Clock,
    hasher: RandomState,
    joins: TtlCache<u64, u32>,
    polls: Box<[AtomicU64]>,
    began: Instant,
    waiting: Mutex<Pending>,
}

/// What a join shows of its client, as hashes. `None` for a client that is not scored.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct JoinSignals {
    source: Option<u64>,
    /// The names of the headers in their order, and the user agent; `None` for headers of a browser.
    headers: Option<u64>,
    has_page: bool,
    has_honeypot: bool,
}

/// What is known of the polls of a ticket, in 64 bits: 16 of a hash of the ticket, 8 of a count, 40 of milliseconds.
#[derive(Clone, Copy)]
struct PollSlot {
    tag: u64,
    early: u64,
    due_ms: u64,
}

impl PollSlot {
    const TIME_BITS: u32 = 40;

    fn unpack(bits: u64) -> Self {
        let (tag, early) = (bits >> 48, bits >> Self::TIME_BITS & 0xff);
        Self { tag, early, due_ms: bits & ((1 << Self::TIME_BITS) - 1) }
    }

    fn pack(self) -> u64 {
        let time = self.due_ms & ((1 << Self::TIME_BITS) - 1);
        self.tag << 48 | self.early.min(0xff) << Self::TIME_BITS | time
    }
}

impl JoinSignals {
    /// Marks the join of the waiting page without scripts, whose form has a field that users do not see.
    pub(crate) fn of_form(self, has_honeypot: bool) -> Self {
        Self { has_page: true, has_honeypot, ..self }
    }
}

impl SignalTracker {
    /// Creates a tracker and starts its writes.
    pub(crate) fn start(store: SharedStore, clock: Clock, shutdown: &Shutdown) -> Arc<Self> {
        let polls = std::iter::repeat_with(AtomicU64::default).take(SLOTS).collect();
        let tracker = Arc::new(Self {
            store,
            clock,
            hasher: RandomState::new(),
            joins: TtlCache::new(COUNT_FOR, MAX_COUNTED),
            polls,
            began: Instant::now(),
            waiting: Mutex::default(),
        });
        let (writing, stop) = (Arc::clone(&tracker), shutdown.token().clone());
        shutdown.spawn("signals", async move {
            let (mut ticks, mut outage) = (interval(WRITE_INTERVAL), OutageLog::new("signals"));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while stop.run_until_cancelled(ticks.tick()).await.is_some() {
                match writing.write().await {
                    Ok(()) => outage.recovered(),
                    Err(error) => {
                        outage.failed(&error);
                    }
                }
            }
            // `with_store_timeout` counts a failure.
            let _ = writing.write().await;
        });
        tracker
    }

    /// Returns what the headers of a join show. `page` is the header of the waiting page.
    pub(crate) fn join_signals(
        &self,
        source: Option<impl Hash>,
        headers: &HeaderMap,
        page: &str,
    ) -> JoinSignals {
        let source = source.map(|source| self.hasher.hash_one((0, source)));
        // All browsers send the languages of their users.
        let is_browser = headers.contains_key(ACCEPT_LANGUAGE);
        let names: Vec<&str> = headers.keys().map(axum::http::HeaderName::as_str).collect();
        let agent = headers.get(USER_AGENT).map(axum::http::HeaderValue::as_bytes);
        let set = (!is_browser).then(|| self.hasher.hash_one((1, names, agent)));
        JoinSignals {
            source,
            headers: set,
            has_page: headers.contains_key(page),
            has_honeypot: false,
        }
    }

    /// Scores a new ticket.
    pub(crate) fn joined(&self, ticket: &Ticket, join: JoinSignals) {
        let mut signals = Signals::NONE;
        if join.source.is_some_and(|source| self.count_join(source)) {
            signals = signals.with(Signal::Source);
        }
        if join.headers.is_some_and(|headers| self.count_join(headers)) {
            signals = signals.with(Signal::Headers);
        }
        if !join.has_page {
            signals = signals.with(Signal::NoPage);
        }
        if join.has_honeypot {
            signals = signals.with(Signal::Honeypot);
        }
        self.add(ticket, signals);
    }

    /// Counts a join. Returns whether there were many like it.
    fn count_join(&self, key: u64) -> bool {
        let joins = self.joins.get(&key).unwrap_or(0).saturating_add(1);
        self.joins.insert(key, joins);
        joins > MANY_JOINS
    }

    /// Scores a poll of a waiting ticket, whose response says when to poll again. Needs no lock.
    pub(crate) fn polled(&self, ticket: &Ticket, poll_after_ms: u64) {
        let hash = self.hasher.hash_one((2, &ticket.item, ticket.lane, ticket.number));
        let (tag, index) = (hash >> 48, hash as usize % SLOTS);
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let slot = PollSlot::unpack(self.polls[index].load(Ordering::Relaxed));
        let known = if slot.tag == tag { slot.early } else { 0 };
        let is_early = slot.tag == tag && now_ms < slot.due_ms;
        let early = known + u64::from(is_early);
        // A poll after half of the time is still obedient: responses take time, and clients have jitter.
        let next = PollSlot { tag, early, due_ms: now_ms + poll_after_ms / 2 };
        self.polls[index].store(next.pack(), Ordering::Relaxed);
        if is_early && early == MANY_EARLY_POLLS {
            self.add(ticket, Signals::NONE.with(Signal::EarlyPolls));
        }
    }

    fn add(&self, ticket: &Ticket, signals: Signals) {
        if signals.is_empty() || ticket.item.is_reserved() {
            return;
        }
        for signal in Signal::ALL.into_iter().filter(|signal| signals.contains(*signal)) {
            counter!(SIGNALS, "signal" => label(signal)).increment(1);
        }
        let mut waiting = self.lock();
        if waiting.values().map(HashMap::len).sum::<usize>() >= MAX_WAITING {
            counter!(SIGNALS_UNRECORDED).increment(1);
            return;
        }
        let tickets = waiting.entry(ticket.item.clone()).or_default();
        let known = tickets.entry((ticket.lane, ticket.number)).or_default();
        *known = known.union(signals);
    }

    /// Writes all waiting signals. Those of a failed call are lost: they are shown, and decide nothing.
    async fn write(&self) -> Result<()> {
        let waiting = std::mem::take(&mut *self.lock());
        let now = self.clock.now_ms();
        for (item, tickets) in waiting {
            let tickets: Vec<_> = tickets
                .into_iter()
                .map(|((lane, number), signals)| (lane, number, signals))
                .collect();
            for batch in tickets.chunks(BATCH) {
                let written = self.store.add_signals(&item, batch, now);
                with_store_timeout("add_signals", written).await?;
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        // A poisoned lock is usable, because no call panics between two related changes.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the value of the label `signal`.
pub(crate) fn label(signal: Signal) -> &'static str {
    match signal {
        Signal::Source => "source",
        Signal::Headers => "headers",
        Signal::EarlyPolls => "early_polls",
        Signal::NoPage => "no_page",
        Signal::Honeypot => "honeypot",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_keeps_its_parts() {
        let slot = PollSlot { tag: 0xabcd, early: 300, due_ms: (1 << 40) - 1 };
        let read = PollSlot::unpack(slot.pack());
        assert_eq!((read.tag, read.early, read.due_ms), (0xabcd, 255, (1 << 40) - 1));
    }
}
