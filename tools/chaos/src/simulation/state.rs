//! The shared state: store, clock, rng and history.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use daegi_domain::{ItemChange, ItemId, ItemName, Reveal, Settings, TicketKeys};
use daegi_kafka::Error as KafkaError;
use daegi_scheduler::SharedSink;
use daegi_scheduler::relay::outbox_sequence;
use daegi_store::{
    ItemStore, LineCounts, MemoryStore, OutboxBatch, OutboxStore, Store, StoreImage, TicketStore,
};
use fastrand::Rng;

use super::now_or_never;
use super::observed;
use super::scenario::{LEADER_SKEW, Scenario, planned_opening, policy};
use super::sink::callback_sink;
use crate::history::{Entry, Fault, FaultKind, ItemSetup, Millis, ObservedDraw};

/// Start of the simulated clock.
pub(super) const START: Millis = 1_700_000_000_000;

const SETTINGS: Settings = Settings { token_count_to_move: 2, tick_ms: 100 };

/// Recovery hold; most users poll within it.
const RECOVERY_HOLD_MS: Millis = 800;

/// Signs the tokens of all tickets.
const TICKET_SECRETS: &str = "1:000102030405060708090a0b0c0d0e0f";

/// The calls of a leader that opens a line.
const OPENING_CALLS: [&str; 4] = ["freeze_cohort", "waiting_from", "put_leaves", "open_line"];

/// Points at which a leader can die: before and after each of these calls.
pub(super) const OPENING_POINTS: usize = 2 * OPENING_CALLS.len();

#[derive(Debug)]
pub(super) struct SimState {
    pub(super) store: Arc<MemoryStore>,
    clock: AtomicU64,
    faults_active: AtomicBool,
    received: AtomicI64,
    rng: Mutex<Rng>,
    entries: Mutex<Vec<Entry>>,
    pub(super) scenario: Scenario,
    /// Whether the running leader dies, and the point of an opening at which the first one does.
    dies: AtomicBool,
    first_death: AtomicUsize,
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
    /// Creates the store with all lines. `first_death` is the point of an opening at which the first leader that gets there
    /// dies.
    pub(super) fn new(
        seed: u64,
        scenario: impl FnOnce(&mut Rng) -> Scenario,
        first_death: Option<usize>,
    ) -> Self {
        let mut rng = Rng::with_seed(seed);
        let scenario = scenario(&mut rng);
        let state = Self {
            store: Arc::new(MemoryStore::new(2, SETTINGS).with_recovery_hold(RECOVERY_HOLD_MS)),
            clock: AtomicU64::new(START),
            faults_active: AtomicBool::new(true),
            received: AtomicI64::new(0),
            rng: Mutex::new(rng),
            entries: Mutex::default(),
            scenario,
            dies: AtomicBool::new(false),
            first_death: AtomicUsize::new(first_death.unwrap_or(usize::MAX)),
            losses: Mutex::default(),
            ahead: AtomicBool::new(false),
            turn: AtomicU64::new(0),
            next: AtomicU64::new(0),
        };
        state.put_items();
        state.scenario.items.iter().for_each(|item| state.plan_opening(item));
        state.scenario.codes().into_iter().for_each(|code| state.write(Entry::Code(code)));
        state
    }

    /// Creates the items, or sets them again. An item with an opening is set only once, because another policy would
    /// remove the opening.
    fn put_items(&self) {
        for item in &self.scenario.items {
            let (Ok(id), Ok(name)) = (ItemId::parse(&item.item), ItemName::parse(&item.item))
            else {
                continue;
            };
            let exists = now_or_never(self.store.item(&id)).is_ok_and(|found| found.is_some());
            if item.opening.is_some() && exists {
                continue;
            }
            let stock = u32::try_from(item.stock).unwrap_or(u32::MAX);
            let (version, policy) = (None, Some(policy(item)));
            let change = ItemChange { id, name, stock, enabled: true, version, policy };
            // The memory store accepts every item.
            let _ = now_or_never(self.store.put_item(&change, self.now()));
        }
    }

    fn plan_opening(&self, item: &ItemSetup) {
        let reveal = Reveal(std::array::from_fn(|_| self.rng().u8(..)));
        let (Some(change), Some(id)) =
            (planned_opening(item, reveal), observed::item_id(&item.item))
        else {
            return;
        };
        if let Ok(Some(stored)) = now_or_never(self.store.item(&id)) {
            let call = self.store.set_policy(&id, &change, stored.revision, self.now());
            let _ = now_or_never(call);
        }
        if let Ok(Some(stored)) = now_or_never(self.store.item(&id)) {
            self.record_draw(&stored, self.now());
        }
    }

    /// Records what a pod would return of the draw.
    pub(super) fn record_draw(&self, item: &daegi_domain::Item, from: Millis) {
        if item.policy.opening.is_some() {
            let (to, record) = (self.now(), item.draw.as_ref().and_then(observed::draw_record));
            let item = item.id.to_string();
            self.write(Entry::Draw(ObservedDraw { item, from, to, record }));
        }
    }

    /// At random: takes a replica, loses all data, continues with the replica, or creates the items again.
    pub(super) fn maybe_lose_data(&self) {
        if !self.scenario.loses_data || !self.chance(0.015) {
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
            _ => self.put_items(),
        }
    }

    fn lose(&self, what: FaultKind, replica: Option<StoreImage>) {
        // No other event has this time.
        let at = self.clock.fetch_add(2, Ordering::Relaxed) + 1;
        self.store.restore(replica);
        self.losses().0.push(at);
        self.write(Entry::Fault(Fault { what, target: "redis".to_owned(), from: at, to: at }));
    }

    /// Decides whether a leader dies at this call, before or after its execution.
    pub(super) fn leader_dies(&self, call: &str, after: bool) -> bool {
        let Some(at) = OPENING_CALLS.iter().position(|name| *name == call) else { return false };
        let point = 2 * at + usize::from(after);
        let first = &self.first_death;
        let is_first =
            first.compare_exchange(point, usize::MAX, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let dies = is_first || self.fails(self.scenario.dies_at_opening);
        if dies {
            self.dies.store(true, Ordering::Relaxed);
            let (what, target, at) = (FaultKind::Kill, "leader".to_owned(), self.now());
            self.write(Entry::Fault(Fault { what, target, from: at, to: at }));
        }
        dies
    }

    /// Whether the leader that ran last has died.
    pub(super) fn take_death(&self) -> bool {
        self.dies.swap(false, Ordering::Relaxed)
    }

    /// The difference of a leader's clock, as ms to add and to subtract. The store compares times of users with those of
    /// leaders after a data loss, so that such histories have one clock.
    pub(super) fn leader_skew(&self) -> (Millis, Millis) {
        if self.scenario.loses_data {
            return (0, 0);
        }
        let mut rng = self.rng();
        if rng.bool() { (rng.u64(..LEADER_SKEW), 0) } else { (0, rng.u64(..LEADER_SKEW)) }
    }

    /// Signs the tokens of all tickets.
    pub(super) fn ticket_keys() -> Option<TicketKeys> {
        TICKET_SECRETS.parse().ok()
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
        self.put_items();
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
        let received_at = self.now();
        for (index, event) in batch.events.iter().enumerate() {
            let place = (self.received.fetch_add(1, Ordering::Relaxed), received_at);
            let sequence = self.sequence(batch, index);
            self.write(Entry::Event(observed::ticket_event(batch, event, sequence, place)));
        }
        let opening = batch.line.as_ref().and_then(|event| {
            observed::opening(batch, event, self.sequence(batch, 0), received_at)
        });
        if let Some(opening) = opening {
            self.write(Entry::Opened(opening));
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
