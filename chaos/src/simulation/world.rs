//! What all share: the store, the clock, chance, and the history.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use daegi_domain::{ItemChange, ItemId, ItemName, LineEvent, Policy, Settings};
use daegi_kafka::Error as KafkaError;
use daegi_scheduler::Outlet;
use daegi_scheduler::relay::{Ear, sequence};
use daegi_store::{Counts, MemoryStore, OutboxBatch, Replica, Store};
use fastrand::Rng;

use super::now_or_never;
use crate::history::{Entry, Fault, FaultKind, ItemSetup, Kind, Millis, Told};

/// When a simulation begins.
pub(super) const START: Millis = 1_700_000_000_000;

const SETTINGS: Settings = Settings { token_count_to_move: 2, tick_ms: 100 };

/// How long an entry lasts: some are used in time.
const PASS_SECONDS: u32 = 5;

/// How long a line that lost people waits for them: most ask again within it.
const HOLD_MS: Millis = 800;

/// The store of one history in so many loses something.
const SHAKY: usize = 3;

#[derive(Debug)]
pub(super) struct World {
    pub(super) store: Arc<MemoryStore>,
    clock: AtomicU64,
    storms: AtomicBool,
    heard: AtomicI64,
    rng: Mutex<Rng>,
    entries: Mutex<Vec<Entry>>,
    items: Vec<ItemSetup>,
    shaky: bool,
    /// When something was lost, and what a replica has that knows nothing since.
    losses: Mutex<(Vec<Millis>, Option<Replica>)>,
    /// Whether a counter has leapt ahead of the clock, at which a line that was lost would begin.
    /// `docs/RECOVERY.md` says what comes of losing anything then.
    ahead: AtomicBool,
    /// The turn of whoever acts, and the next one in which they have something to do.
    turn: AtomicU64,
    next: AtomicU64,
}

impl World {
    /// A world with open lines.
    pub(super) fn new(seed: u64, items: Vec<ItemSetup>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let shaky = rng.usize(0..SHAKY) == 0;
        let world = Self {
            store: Arc::new(MemoryStore::new(2, SETTINGS).with_recovery_hold(HOLD_MS)),
            clock: AtomicU64::new(START),
            storms: AtomicBool::new(true),
            heard: AtomicI64::new(0),
            rng: Mutex::new(rng),
            entries: Mutex::default(),
            items,
            shaky,
            losses: Mutex::default(),
            ahead: AtomicBool::new(false),
            turn: AtomicU64::new(0),
            next: AtomicU64::new(0),
        };
        world.open();
        world
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
            // The memory store itself takes everything.
            let _ = now_or_never(self.store.put_item(&change, self.now()));
        }
    }

    /// Now and then somebody copies what the store has, or it goes on with the copy, or with
    /// nothing, until somebody opens the lines again.
    pub(super) fn shake(&self) {
        if !self.shaky || !self.chance(0.015) {
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
            2 => self.losses().1 = Some(self.store.replica()),
            _ => self.open(),
        }
    }

    fn lose(&self, what: FaultKind, replica: Option<Replica>) {
        // Nothing else happens at this moment.
        let at = self.clock.fetch_add(2, Ordering::Relaxed) + 1;
        self.store.lose(replica);
        self.losses().0.push(at);
        self.write(Entry::Fault(Fault { what, target: "redis".to_owned(), from: at, to: at }));
    }

    fn losses(&self) -> MutexGuard<'_, (Vec<Millis>, Option<Replica>)> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Millis {
        self.clock.load(Ordering::Relaxed)
    }

    pub(super) fn tick(&self, most: u64) {
        let by = self.rng().u64(0..most);
        self.clock.fetch_add(by, Ordering::Relaxed);
    }

    pub(super) fn storms(&self) -> bool {
        self.storms.load(Ordering::Relaxed)
    }

    pub(super) fn calm(&self) {
        self.storms.store(false, Ordering::Relaxed);
        self.open();
    }

    pub(super) fn chance(&self, of: f64) -> bool {
        self.rng().f64() < of
    }

    pub(super) fn pick(&self, of: usize) -> usize {
        self.rng().usize(0..of.max(1))
    }

    /// Whether something goes wrong now.
    pub(super) fn fails(&self, of: f64) -> bool {
        self.storms() && self.chance(of)
    }

    /// Lets others go first: mostly a few of them, sometimes many.
    pub(super) async fn pause(&self) {
        let turns = match self.pick(20) {
            0 if self.storms() => self.pick(120),
            0..6 => self.pick(6),
            _ => 1,
        };
        self.turns(turns).await;
    }

    /// Lets so many of one's own turns pass. Tokio's own way would wait for a scheduler that is not
    /// there.
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

    /// It is somebody's turn, and the how manyth of theirs.
    pub(super) fn begin_turn(&self, turn: u64) {
        self.turn.store(turn, Ordering::Relaxed);
        self.next.store(u64::MAX, Ordering::Relaxed);
    }

    /// In which turn they have something to do again.
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

    pub(super) async fn counts(&self) -> Vec<Counts> {
        let ids: Vec<_> =
            self.store.items().await.unwrap_or_default().into_iter().map(|item| item.id).collect();
        self.store.counts(&ids).await.unwrap_or_default()
    }

    /// Nobody waits, nobody is inside, and every event was heard.
    pub(super) async fn is_quiet(&self) -> bool {
        for partition in 0..self.store.partitions() {
            if self.store.outbox_len(partition).await.is_ok_and(|events| events > 0) {
                return false;
            }
        }
        self.counts().await.iter().all(|counts| counts.waiting + counts.entered == 0)
    }

    /// The order service's ear; a broker that refuses may have told some, or all, before.
    pub(super) fn ear(self: &Arc<Self>) -> Outlet {
        let world = self.clone();
        Outlet::Ear(Ear(Arc::new(move |batches| {
            let fails = world.fails(0.1);
            let heard = if fails { world.pick(batches.len() + 1) } else { batches.len() };
            batches[..heard].iter().for_each(|batch| world.hear(batch));
            if fails { Err(KafkaError::GivenUp) } else { Ok(()) }
        })))
    }

    fn hear(&self, batch: &OutboxBatch) {
        for (place, event) in batch.events.iter().enumerate() {
            let told = Told {
                epoch: batch.epoch.map(|epoch| epoch.0),
                sequence: self.sequence(batch, place),
                offset: self.heard.fetch_add(1, Ordering::Relaxed),
                ..told(&batch.item, event, self.now())
            };
            self.write(Entry::Told(told));
        }
    }

    /// As Redis makes it, of the time. The memory store knows none: it tells after how many losses.
    fn sequence(&self, batch: &OutboxBatch, place: usize) -> String {
        let losses = batch.id.parse::<usize>().unwrap_or(0) >> 32;
        let since = losses.checked_sub(1).map_or(START, |last| self.losses().0[last]);
        format!("{since:016}-{}", sequence(batch, place))
    }

    fn rng(&self) -> MutexGuard<'_, Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn told(item: &ItemId, event: &LineEvent, heard: Millis) -> Told {
    let (kind, at, expires, reason) = match event {
        LineEvent::Activated { at, expires_at, .. } => {
            (Kind::Activated, *at, Some(*expires_at), None)
        }
        LineEvent::Closed { at, reason, .. } => {
            (Kind::Closed, *at, None, Some(super::person::end(*reason).to_owned()))
        }
    };
    Told {
        event: kind,
        id: event.id(item).to_string(),
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
        heard,
    }
}
