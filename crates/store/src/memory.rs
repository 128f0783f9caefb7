//! The store in one process, and the specification of the Redis store.
//!
//! | file | contents |
//! |---|---|
//! | `memory/state.rs` | everything a store holds, and one step on one line |
//! | `memory/item_lines.rs` | the lines of all lanes of an item |
//! | `memory/line.rs` | the data of the line of one lane, and the operations that rules are made of |
//! | `memory/{queues,entry_set,liveness,outbox,admin}.rs` | the data structures of a line and of the store |
//! | `memory/generation.rs` | how a data loss is distinguished from a new store |
//! | `memory/access.rs`, `memory/signals.rs` | the block and allow list; signals of tickets |
//! | `memory/{tickets,admission,opening,control,history,pace}.rs` | the roles whose methods are rules |
//! | `memory/rules/` | one file per Lua script, with the same name |

mod access;
mod admin;
mod admission;
mod control;
mod entry_set;
mod generation;
mod history;
mod item_lines;
mod line;
mod liveness;
mod opening;
mod outbox;
mod pace;
mod queues;
mod rules;
mod signals;
mod state;
mod tickets;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use daegi_domain::{
    Item, ItemChange, ItemId, ItemUpdate, ItemUpdateKind, Millis, PolicyChange, RECOVERY_HOLD_MS,
    Settings, StoreLimits,
};

use self::generation::Generation;
use self::item_lines::ItemLines;
use self::rules::reclaim::StoreIdentity;
use self::state::State;
pub use self::state::StoreImage;
use crate::types::{
    HeartbeatRecord, ItemUpdateOutcome, LeaveLimit, OutboxBatch, PolicyUpdateOutcome, PutOperator,
    PutOutcome, ReplayState,
};
use crate::{
    AdminStore, CONTROL_LOG, ItemStore, LockBackend, MemoryLock, OutboxStore, ReplayStore, Result,
    Store,
};

/// All lines of a waiting room that is one process.
#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<State>,
    lock: MemoryLock,
    partitions: u16,
    initial_settings: Settings,
    /// The latest epoch, which survives a simulated data loss.
    latest_epoch: AtomicU64,
    /// How often the store has lost data.
    run_id: AtomicU64,
    recovery_hold: Millis,
    /// The generation of each partition when this store was created, which later steps compare with
    /// the stored one.
    generations: Vec<u64>,
    max_waiting: u64,
    leave_limit: LeaveLimit,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new(partitions: u16, settings: Settings) -> Self {
        let mut state = State::empty(partitions, settings);
        let generations = state.generations.iter_mut().map(Generation::open).collect();
        Self {
            state: Mutex::new(state),
            lock: MemoryLock::default(),
            partitions,
            initial_settings: settings,
            latest_epoch: AtomicU64::new(0),
            run_id: AtomicU64::new(0),
            recovery_hold: RECOVERY_HOLD_MS,
            generations,
            max_waiting: StoreLimits::default().max_waiting,
            leave_limit: LeaveLimit::default(),
        }
    }

    /// Sets how many tickets may wait in all lines together.
    #[must_use]
    pub fn with_max_waiting(mut self, tickets: u64) -> Self {
        self.max_waiting = tickets;
        self
    }

    /// Sets how long a line that lost data admits no ticket.
    #[must_use]
    pub fn with_recovery_hold(mut self, recovery_hold: Millis) -> Self {
        self.recovery_hold = recovery_hold;
        self
    }

    /// Sets how often a user may leave a line and join it again.
    #[must_use]
    pub fn with_leave_limit(mut self, limit: LeaveLimit) -> Self {
        self.leave_limit = limit;
        self
    }

    /// Returns a copy of the current state: the data of a replica that receives no further writes.
    pub fn image(&self) -> StoreImage {
        StoreImage(self.state().clone())
    }

    /// Continues with an earlier state, or with none, as after a fail-over or a `FLUSHALL`. This is how
    /// the specification defines a data loss.
    pub fn restore(&self, image: Option<StoreImage>) {
        let empty = || StoreImage(State::empty(self.partitions, self.initial_settings));
        let mut state = image.unwrap_or_else(empty).0;
        let run_id = self.run_id.fetch_add(1, Ordering::Relaxed) + 1;
        state.outboxes.iter_mut().for_each(|outbox| outbox.resume_after_loss(run_id));
        *self.state() = state;
    }

    fn run_id(&self) -> u64 {
        self.run_id.load(Ordering::Relaxed)
    }

    /// Returns the properties of the store that a step on a line of this partition depends on.
    fn identity(&self, state: &State, partition: usize) -> StoreIdentity {
        StoreIdentity {
            run_id: self.run_id(),
            recovery_hold: self.recovery_hold,
            loss_until: state.generations[partition].reclaim_until(),
            leave_limit: self.leave_limit,
        }
    }

    /// Checks for evidence of a data loss, then returns the same as `identity`; for a step that may
    /// reclaim a ticket.
    fn checked_identity(&self, state: &mut State, partition: usize, now: Millis) -> StoreIdentity {
        state.generations[partition].check(self.generations[partition], now);
        self.identity(state, partition)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A poisoned mutex is used further: a half-applied rule is better than a store that fails.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn partition_index(&self, id: &ItemId) -> usize {
        usize::from(crate::partition_of(id, self.partitions))
    }
}

#[async_trait]
impl ItemStore for MemoryStore {
    async fn put_item(&self, change: &ItemChange, now: Millis) -> Result<PutOutcome> {
        Ok(self.control_step(&change.id, |state, partition| {
            self.checked_identity(state, partition, now);
            let outcome = rules::items::put(&mut state.lines, change, self.run_id(), now);
            if matches!(&outcome, PutOutcome::Created(item) if item.has_opening_ahead()) {
                state.active.insert(change.id.clone());
            }
            outcome
        }))
    }

    async fn remove_item(&self, id: &ItemId, now: Millis) -> Result<bool> {
        Ok(self.control_step(id, |state, _| {
            let Some(lines) = state.lines.get_mut(id) else { return false };
            let is_removed = rules::items::remove(lines);
            if is_removed {
                lines.standard.bump_control(now);
            }
            is_removed
        }))
    }

    async fn apply_item_updates(
        &self,
        updates: &[ItemUpdate],
        now: Millis,
    ) -> Result<Vec<ItemUpdateOutcome>> {
        let run_id = self.run_id();
        let apply = |update: &ItemUpdate| {
            self.control_step(update.item(), |state, partition| {
                if state.replays.get(CONTROL_LOG) != Some(&(run_id, ReplayState::Complete)) {
                    return ItemUpdateOutcome::Held;
                }
                if matches!(update.kind, ItemUpdateKind::Upsert(_)) {
                    self.checked_identity(state, partition, now);
                }
                rules::items::apply(&mut state.lines, update, run_id, now)
            })
        };
        Ok(updates.iter().map(apply).collect())
    }

    async fn item(&self, id: &ItemId) -> Result<Option<Item>> {
        Ok(self.state().lines(id).map(|lines| lines.shared().item.clone()))
    }

    async fn items(&self) -> Result<Vec<Item>> {
        let state = self.state();
        let items = state.lines.values().map(ItemLines::shared);
        let shown = items.filter(|shared| !shared.removed && !shared.item.id.is_reserved());
        Ok(shown.map(|shared| shared.item.clone()).collect())
    }

    async fn set_policy(
        &self,
        id: &ItemId,
        change: &PolicyChange,
        revision: u64,
        now: Millis,
    ) -> Result<PolicyUpdateOutcome> {
        Ok(self.control_step(id, |state, _| {
            let Some(lines) = state.lines_mut(id) else { return PolicyUpdateOutcome::NotFound };
            let outcome = rules::set_policy::set_policy(lines, change, revision, now);
            if lines.shared().item.has_opening_ahead() {
                state.active.insert(id.clone());
            }
            outcome
        }))
    }

    async fn set_paused(&self, id: &ItemId, paused: bool, now: Millis) -> Result<Option<Item>> {
        Ok(self.control_step(id, |state, _| {
            let line = &mut state.lines_mut(id)?.standard;
            line.shared.item.paused = paused;
            line.shared.stopped |= paused;
            line.bump_control(now);
            Some(line.bump_revision(now))
        }))
    }

    async fn reset(&self, id: &ItemId, now: Millis) -> Result<Option<Item>> {
        Ok(self.control_step(id, |state, _| {
            let lines = state.lines_mut(id)?;
            lines.restart();
            lines.standard.bump_control(now);
            Some(lines.standard.bump_revision(now))
        }))
    }

    async fn purge(&self, id: &ItemId) -> Result<()> {
        let mut state = self.state();
        state.lines.remove(id);
        state.active.remove(id);
        state.changed_controls[self.partition_index(id)].remove(id);
        Ok(())
    }
}

#[async_trait]
impl ReplayStore for MemoryStore {
    async fn replay_state(&self, log: &str) -> Result<ReplayState> {
        let (state, run_id) = (self.state(), self.run_id());
        let recorded = state.replays.get(log).filter(|(run, _)| *run == run_id);
        Ok(recorded.map_or(ReplayState::NotStarted, |(_, replay)| *replay))
    }

    async fn begin_replay(&self, log: &str) -> Result<()> {
        let (mut state, run_id) = (self.state(), self.run_id());
        let started = (run_id, ReplayState::InProgress);
        let recorded = state.replays.entry(log.to_owned()).or_insert(started);
        if recorded.0 != run_id {
            *recorded = started;
        }
        Ok(())
    }

    async fn complete_replay(&self, log: &str) -> Result<bool> {
        let (mut state, run_id) = (self.state(), self.run_id());
        let recorded = state.replays.get_mut(log).filter(|(run, _)| *run == run_id);
        Ok(recorded.map(|(_, replay)| *replay = ReplayState::Complete).is_some())
    }
}

#[async_trait]
impl OutboxStore for MemoryStore {
    async fn outbox_read(
        &self,
        partition: u16,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<OutboxBatch>> {
        Ok(self.state().outboxes[usize::from(partition)].read(after, limit))
    }

    async fn outbox_ack(&self, partition: u16, ids: &[String]) -> Result<()> {
        self.state().outboxes[usize::from(partition)].ack(ids);
        Ok(())
    }

    async fn outbox_len(&self, partition: u16) -> Result<u64> {
        Ok(self.state().outboxes[usize::from(partition)].events())
    }
}

#[async_trait]
impl AdminStore for MemoryStore {
    async fn settings(&self) -> Result<Settings> {
        Ok(self.state().settings)
    }

    async fn set_settings(
        &self,
        token_count_to_move: Option<u32>,
        tick_ms: Option<u32>,
    ) -> Result<Settings> {
        let mut state = self.state();
        let old = state.settings;
        state.settings = Settings {
            token_count_to_move: token_count_to_move.unwrap_or(old.token_count_to_move),
            tick_ms: tick_ms.unwrap_or(old.tick_ms),
        };
        Ok(state.settings)
    }

    async fn declare_loss(&self, now: Millis) -> Result<()> {
        self.state().generations.iter_mut().for_each(|generation| generation.declare_loss(now));
        Ok(())
    }

    async fn append_audit(&self, entry: &str) -> Result<()> {
        self.state().audit_log.append(entry);
        Ok(())
    }

    async fn read_audit(&self, limit: u32) -> Result<Vec<String>> {
        Ok(self.state().audit_log.read(limit))
    }

    async fn put_operator(&self, name: &str, record: &str) -> Result<PutOperator> {
        let operators = &mut self.state().operators;
        if operators.contains_key(name) {
            return Ok(PutOperator::NameTaken);
        }
        if operators.len() >= crate::MAX_OPERATORS as usize {
            return Ok(PutOperator::LimitReached);
        }
        operators.insert(name.to_owned(), record.to_owned());
        Ok(PutOperator::Stored)
    }

    async fn remove_operator(&self, name: &str) -> Result<bool> {
        Ok(self.state().operators.remove(name).is_some())
    }

    async fn operators(&self) -> Result<Vec<String>> {
        Ok(self.state().operators.values().cloned().collect())
    }

    async fn put_heartbeat(&self, process: &str, payload: &str, now: Millis) -> Result<()> {
        self.state().heartbeats.put(process, payload, now);
        Ok(())
    }

    async fn heartbeats(&self, now: Millis) -> Result<Vec<HeartbeatRecord>> {
        Ok(self.state().heartbeats.read(now))
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn partitions(&self) -> u16 {
        self.partitions
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }

    fn lock(&self) -> &dyn LockBackend {
        &self.lock
    }
}
