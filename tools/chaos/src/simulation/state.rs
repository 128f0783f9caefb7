//! The shared state: store, clock, rng and history.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use daegi_domain::{ItemChange, ItemId, ItemName, Lane, Policy, Settings, TicketEvent};
use daegi_kafka::Error as KafkaError;
use daegi_scheduler::SharedSink;
use daegi_scheduler::relay::outbox_sequence;
use daegi_store::{
    ItemStore, LineCounts, MemoryStore, OutboxBatch, OutboxStore, Store, StoreImage, TicketStore,
};
use fastrand::Rng;

use super::now_or_never;
use super::sink::callback_sink;
use crate::history::{Entry, EventKind, Fault, FaultKind, ItemSetup, Millis, ObservedEvent};

/// Start of the simulated clock.
pub(super) const START: Millis = 1_700_000_000_000;

const SETTINGS: Settings = Settings { token_count_to_move: 2, tick_ms: 100 };

/// Duration of an entry; some users complete in time.
const PASS_SECONDS: u32 = 5;

/// Recovery hold; most users poll within it.
const RECOVERY_HOLD_MS: Millis = 800;

/// One of so many histories has data losses.
const DATA_LOSS_ODDS: usize = 3;

#[derive(Debug)]
pub(super) struct SimState {
    pub(super) store: Arc<MemoryStore>,
    clock: AtomicU64,
    faults_active: AtomicBool,
    received: AtomicI64,
    rng: Mutex<Rng>,
    entries: Mutex<Vec<Entry>>,
    items: Vec<ItemSetup>,
    loses_data: bool,
    /// Times of data losses, and the state of a replica.
    losses: Mutex<(Vec<Millis>, Option<StoreImage>)>,
    /// Whether the counter of a line is ahead of the clock. `docs/RECOVERY.md` describes a data loss in that state; histories do
    /// not contain it.
    ahead: AtomicBool,
    /// The turn of the running task, and its next turn with work.
    turn: AtomicU64,
    next: AtomicU64,
}

impl SimState {
    /// Creates the store with open lines.
    pub(super) fn new(seed: u64, items: Vec<ItemSetup>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let loses_data = rng.usize(0..DATA_LOSS_ODDS) == 0;
        let state = Self {
            store: Arc::new(MemoryStore::new(2, SETTINGS).with_recovery_hold(RECOVERY_HOLD_MS)),
            clock: AtomicU64::new(START),
            faults_active: AtomicBool::new(true),
            received: AtomicI64::new(0),
            rng: Mutex::new(rng),
            entries: Mutex::default(),
            items,
            loses_data,
            losses: Mutex::default(),
            ahead: AtomicBool::new(false),
            turn: AtomicU64::new(0),
            next: AtomicU64::new(0),
        };
        state.open();
        state
    }

    /// Opens the lines. None has a grace period, as in a run with processes.
    fn open(&self) {
        for item in &self.items {
            let (Ok(id), Ok(name)) = (ItemId::parse(&item.item), ItemName::parse(&item.item))
            else {
                continue;
            };
            let policy = Policy {
                max_active: item.max_active.and_then(|most| u32::try_from(most).ok()),
                pass_ttl_seconds: PASS_SECONDS,
                grace_seconds: 0,
                ..Policy::default()
            };
            let stock = u32::try_from(item.stock).unwrap_or(u32::MAX);
            let (version, policy) = (None, Some(policy));
            let change = ItemChange { id, name, stock, enabled: true, version, policy };
            // The memory store accepts every item.
            let _ = now_or_never(self.store.put_item(&change, self.now()));
        }
    }

    /// At random: takes a replica, loses all data, continues with the replica, or creates the items again.
    pub(super) fn maybe_lose_data(&self) {
        if !self.loses_data || !self.chance(0.015) {
            return;
        }
        let ahead = self.ahead.load(Ordering::Relaxed);
        match self.pick(6) {
            0 if !ahead => self.lose(FaultKind::Flush, None),
            1 if !ahead => {
                let replica = self.losses().1.take();
                if replica.is_some() {
                    self.ahead.store(true, Ordering::Relaxed);
                    self.lose(FaultKind::Rollback, replica);
                }
            }
            2 => self.losses().1 = Some(self.store.image()),
            _ => self.open(),
        }
    }

    fn lose(&self, what: FaultKind, replica: Option<StoreImage>) {
        // No other event has this time.
        let at = self.clock.fetch_add(2, Ordering::Relaxed) + 1;
        self.store.restore(replica);
        self.losses().0.push(at);
        self.write(Entry::Fault(Fault { what, target: "redis".to_owned(), from: at, to: at }));
    }

    fn losses(&self) -> MutexGuard<'_, (Vec<Millis>, Option<StoreImage>)> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Millis {
        self.clock.load(Ordering::Relaxed)
    }

    pub(super) fn tick(&self, most: u64) {
        let by = self.rng().u64(0..most);
        self.clock.fetch_add(by, Ordering::Relaxed);
    }

    pub(super) fn faults_active(&self) -> bool {
        self.faults_active.load(Ordering::Relaxed)
    }

    pub(super) fn stop_faults(&self) {
        self.faults_active.store(false, Ordering::Relaxed);
        self.open();
    }

    pub(super) fn chance(&self, of: f64) -> bool {
        self.rng().f64() < of
    }

    pub(super) fn pick(&self, of: usize) -> usize {
        self.rng().usize(0..of.max(1))
    }

    /// Whether a fault occurs now.
    pub(super) fn fails(&self, of: f64) -> bool {
        self.faults_active() && self.chance(of)
    }

    /// Yields to other tasks, mostly for a few turns, sometimes for many.
    pub(super) async fn pause(&self) {
        let turns = match self.pick(20) {
            0 if self.faults_active() => self.pick(120),
            0..6 => self.pick(6),
            _ => 1,
        };
        self.turns(turns).await;
    }

    /// Waits for so many turns of this task. Tokio's timers would need a running scheduler.
    pub(super) async fn turns(&self, turns: usize) {
        let until = self.turn.load(Ordering::Relaxed) + turns as u64;
        std::future::poll_fn(|context| {
            if self.turn.load(Ordering::Relaxed) >= until {
                return Poll::Ready(());
            }
            self.next.fetch_min(until, Ordering::Relaxed);
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Begins a turn of a task; `turn` counts the turns of that task.
    pub(super) fn begin_turn(&self, turn: u64) {
        self.turn.store(turn, Ordering::Relaxed);
        self.next.store(u64::MAX, Ordering::Relaxed);
    }

    /// The next turn in which the task has work.
    pub(super) fn end_turn(&self) -> u64 {
        let next = self.next.load(Ordering::Relaxed);
        if next == u64::MAX { self.turn.load(Ordering::Relaxed) + 1 } else { next }
    }

    pub(super) fn write(&self, entry: Entry) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    pub(super) fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) async fn counts(&self) -> Vec<LineCounts> {
        let ids: Vec<_> =
            self.store.items().await.unwrap_or_default().into_iter().map(|item| item.id).collect();
        self.store.counts(&ids).await.unwrap_or_default()
    }

    /// Whether no ticket waits, no entry is left and every event was received.
    pub(super) async fn is_quiet(&self) -> bool {
        for partition in 0..self.store.partitions() {
            if self.store.outbox_len(partition).await.is_ok_and(|events| events > 0) {
                return false;
            }
        }
        self.counts().await.iter().all(|counts| counts.waiting + counts.entered == 0)
    }

    /// The sink of the relay. A failed publish may have delivered some or all events.
    pub(super) fn sink(self: &Arc<Self>) -> SharedSink {
        let state = self.clone();
        callback_sink(move |batches| {
            let fails = state.fails(0.1);
            let delivered = if fails { state.pick(batches.len() + 1) } else { batches.len() };
            batches[..delivered].iter().for_each(|batch| state.record_events(batch));
            if fails { Err(KafkaError::Aborted) } else { Ok(()) }
        })
    }

    fn record_events(&self, batch: &OutboxBatch) {
        for (index, event) in batch.events.iter().enumerate() {
            let event = ObservedEvent {
                epoch: batch.epoch.map(|epoch| epoch.0),
                sequence: self.sequence(batch, index),
                offset: self.received.fetch_add(1, Ordering::Relaxed),
                ..observed(&batch.item, event, self.now())
            };
            self.write(Entry::Event(event));
        }
    }

    /// `ce_sequence` as Redis builds it from the time. The memory store has only the number of losses, so the time of the last one is used.
    fn sequence(&self, batch: &OutboxBatch, index: usize) -> String {
        let losses = batch.id.parse::<usize>().unwrap_or(0) >> 32;
        let since = losses.checked_sub(1).map_or(START, |last| self.losses().0[last]);
        format!("{since:016}-{}", outbox_sequence(batch, index))
    }

    fn rng(&self) -> MutexGuard<'_, Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn observed(item: &ItemId, event: &TicketEvent, received_at: Millis) -> ObservedEvent {
    let (kind, at, expires, reason) = match event {
        TicketEvent::Admitted { at, expires_at, .. } => {
            (EventKind::Activated, *at, Some(*expires_at), None)
        }
        TicketEvent::Ended { at, reason, .. } => (
            EventKind::Closed,
            *at,
            None,
            Some(super::virtual_user::reason_text(*reason).to_owned()),
        ),
    };
    ObservedEvent {
        event: kind,
        id: event.id(item, Lane::STANDARD).to_string(),
        item: item.to_string(),
        user: event.user().to_string(),
        number: event.number().0,
        at,
        expires,
        reason,
        epoch: None,
        sequence: String::new(),
        partition: 0,
        offset: 0,
        received_at,
    }
}
