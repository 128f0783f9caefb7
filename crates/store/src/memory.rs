//! The store in one process, and the specification of the other one.
//!
//! | file | rules |
//! |---|---|
//! | `memory/rooms.rs` | everything a store holds, and one step on one line |
//! | `memory/line.rs` | what a line consists of, and the steps every rule is made of |
//! | `memory/queue.rs` | people in order, people with a deadline |
//! | `memory/items.rs` | create, change, remove, pause, reset |
//! | `memory/people.rs` | join, resolve, leave, complete |
//! | `memory/leader.rs` | admit, expire, sweep |
//! | `memory/recovery.rs` | numbers that were lost |
//! | `memory/generation.rs` | how a loss of data is distinguished from a new store |
//! | `memory/outbox.rs` | events on their way out |
//! | `memory/board.rs` | what operators changed, what processes say about themselves |

mod board;
mod generation;
mod inside;
mod items;
mod leader;
mod line;
mod outbox;
mod people;
mod queue;
mod recovery;
mod rooms;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use daegi_domain::{
    EndReason, Item, ItemChange, ItemId, ItemNews, Millis, Number, Policy, RECOVERY_HOLD_MS, Said,
    SeenPage, Settings, StoreLimits, UserId,
};

use self::generation::Generation;
use self::line::Line;
use self::outbox::Written;
pub use self::rooms::Replica;
use self::rooms::{Rooms, write_down};
use crate::lease::{Leases, MemoryLock};
use crate::model::{
    Admission, Catalogue, Closing, Counts, DepartedCursor, Epoch, Expiry, Joined, LeaveLimit,
    LineSnapshot, NewsOutcome, Notice, OutboxBatch, PolicyChange, Put, Reentry, Refusal, Standing,
    Sweep,
};
use crate::{Result, Store};

/// All lines of a waiting room that is one process.
#[derive(Debug)]
pub struct MemoryStore {
    rooms: Mutex<Rooms>,
    leases: Leases,
    partitions: u16,
    first: Settings,
    /// The latest epoch that was given, which outlives what the store holds.
    latest: AtomicU64,
    /// How often the store has lost something.
    run: AtomicU64,
    hold: Millis,
    /// The generation of each partition when this store was made: what this process knows.
    generations: Vec<u64>,
    max_waiting: u64,
    leave_limit: LeaveLimit,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(partitions: u16, settings: Settings) -> Self {
        let mut rooms = Rooms::empty(partitions, settings);
        let generations = rooms.generations.iter_mut().map(Generation::open).collect();
        Self {
            rooms: Mutex::new(rooms),
            leases: Leases::Memory(MemoryLock::default()),
            partitions,
            first: settings,
            latest: AtomicU64::new(0),
            run: AtomicU64::new(0),
            hold: RECOVERY_HOLD_MS,
            generations,
            max_waiting: StoreLimits::default().max_waiting,
            leave_limit: LeaveLimit::default(),
        }
    }

    /// The same, but at most so many tickets wait in all lines together.
    #[must_use]
    pub fn with_max_waiting(mut self, tickets: u64) -> Self {
        self.max_waiting = tickets;
        self
    }

    /// The same, but a line that lost data lets nobody in for so long.
    #[must_use]
    pub fn with_recovery_hold(mut self, hold: Millis) -> Self {
        self.hold = hold;
        self
    }

    /// The same with another limit of leaves.
    #[must_use]
    pub fn with_leave_limit(mut self, limit: LeaveLimit) -> Self {
        self.leave_limit = limit;
        self
    }

    /// What a replica has that gets nothing from now on.
    pub fn replica(&self) -> Replica {
        Replica(self.rooms().clone())
    }

    /// Goes on with what a replica has, or with nothing, as after a fail-over or a `FLUSHALL`.
    /// This is how the specification tells what losing data means.
    pub fn lose(&self, replica: Option<Replica>) {
        let empty = || Replica(Rooms::empty(self.partitions, self.first));
        let mut rooms = replica.unwrap_or_else(empty).0;
        let run = self.run.fetch_add(1, Ordering::Relaxed) + 1;
        rooms.outboxes.iter_mut().for_each(|outbox| outbox.go_on_in(run));
        *self.rooms() = rooms;
    }

    fn run(&self) -> u64 {
        self.run.load(Ordering::Relaxed)
    }

    /// What a step on a line of this partition must know of the store.
    fn store(&self, rooms: &Rooms, partition: usize) -> recovery::Store {
        let loss_until = rooms.generations[partition].reclaim_until();
        let leave_limit = self.leave_limit;
        recovery::Store { run: self.run(), hold: self.hold, loss_until, leave_limit }
    }

    /// The same for a step that may restore a place: it looks for evidence of a loss first.
    fn checked_store(&self, rooms: &mut Rooms, partition: usize, now: Millis) -> recovery::Store {
        rooms.generations[partition].check(self.generations[partition], now);
        self.store(rooms, partition)
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        // A panic elsewhere cannot leave a rule half applied that matters more than answering.
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outbox_of(&self, id: &ItemId) -> usize {
        usize::from(crate::partition_of(id, self.partitions))
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn put_item(&self, change: &ItemChange, now: Millis) -> Result<Put> {
        let (mut rooms, partition) = (self.rooms(), self.outbox_of(&change.id));
        self.checked_store(&mut rooms, partition, now);
        Ok(items::put(&mut rooms.lines, change, self.run(), now))
    }

    async fn remove_item(&self, id: &ItemId) -> Result<bool> {
        Ok(self.rooms().lines.get_mut(id).is_some_and(items::remove))
    }

    async fn apply_news(&self, news: &[ItemNews], now: Millis) -> Result<Vec<NewsOutcome>> {
        let mut rooms = self.rooms();
        let apply = |news: &ItemNews| {
            if let Said::Changed(change) = &news.said {
                self.checked_store(&mut rooms, self.outbox_of(&change.id), now);
            }
            items::apply(&mut rooms.lines, news, self.run(), now)
        };
        Ok(news.iter().map(apply).collect())
    }

    async fn catalogue(&self, log: &str) -> Result<Catalogue> {
        let (rooms, now) = (self.rooms(), self.run());
        let noted = rooms.catalogues.get(log).filter(|(run, _)| *run == now);
        Ok(noted.map_or(Catalogue::Unread, |(_, how_far)| *how_far))
    }

    async fn begin_catalogue(&self, log: &str) -> Result<()> {
        let (mut rooms, now) = (self.rooms(), self.run());
        let reading = (now, Catalogue::Reading);
        let noted = rooms.catalogues.entry(log.to_owned()).or_insert(reading);
        if noted.0 != now {
            *noted = reading;
        }
        Ok(())
    }

    async fn end_catalogue(&self, log: &str) -> Result<bool> {
        let (mut rooms, now) = (self.rooms(), self.run());
        let noted = rooms.catalogues.get_mut(log).filter(|(run, _)| *run == now);
        Ok(noted.map(|(_, how_far)| *how_far = Catalogue::Read).is_some())
    }

    async fn item(&self, id: &ItemId) -> Result<Option<Item>> {
        Ok(self.rooms().line(id).map(|line| line.item.clone()))
    }

    async fn items(&self) -> Result<Vec<Item>> {
        let rooms = self.rooms();
        let shown =
            rooms.lines.values().filter(|line| !line.removed && !line.item.id.is_reserved());
        Ok(shown.map(|line| line.item.clone()).collect())
    }

    async fn set_policy(
        &self,
        id: &ItemId,
        policy: &Policy,
        revision: u64,
        now: Millis,
    ) -> Result<PolicyChange> {
        Ok(match self.rooms().line_mut(id) {
            None => PolicyChange::NotFound,
            Some(line) if line.item.revision != revision => PolicyChange::Conflict,
            Some(line) => {
                line.item.policy = policy.clone();
                PolicyChange::Changed(line.touched(now).into())
            }
        })
    }

    async fn set_paused(&self, id: &ItemId, paused: bool, now: Millis) -> Result<Option<Item>> {
        Ok(self.rooms().line_mut(id).map(|line| {
            line.item.paused = paused;
            line.stopped |= paused;
            line.touched(now)
        }))
    }

    async fn reset(&self, id: &ItemId, now: Millis) -> Result<Option<Item>> {
        Ok(self.rooms().line_mut(id).map(|line| {
            line.restart();
            line.touched(now)
        }))
    }

    async fn purge(&self, id: &ItemId) -> Result<()> {
        let mut rooms = self.rooms();
        rooms.lines.remove(id);
        rooms.active.remove(id);
        Ok(())
    }

    async fn join(
        &self,
        id: &ItemId,
        users: &[UserId],
        _settings: &Settings,
        now: Millis,
    ) -> Result<Vec<Joined>> {
        let outbox = self.outbox_of(id);
        let mut rooms = self.rooms();
        let rooms = &mut *rooms;
        let store = self.store(rooms, outbox);
        let most = rooms.most_waiting(id, self.max_waiting);
        let Some(line) = rooms.lines.get_mut(id) else {
            return Ok(vec![Joined::Refused(Refusal::NotFound); users.len()]);
        };
        let mut written = Written::default();
        let settings = &rooms.settings;
        let joined = people::join(line, users, settings, most, store, now, &mut written);
        if joined.iter().any(|one| matches!(one, Joined::At { new: true, .. })) {
            rooms.active.insert(id.clone());
        }
        write_down(line, &mut rooms.outboxes[outbox], written);
        Ok(joined)
    }

    async fn snapshot(&self, id: &ItemId, cursor: DepartedCursor) -> Result<Option<LineSnapshot>> {
        Ok(self.rooms().line(id).map(|line| line.snapshot(cursor)))
    }

    async fn mark_seen(&self, id: &ItemId, pages: &[SeenPage], now: Millis) -> Result<()> {
        if let Some(line) = self.rooms().line_mut(id) {
            pages.iter().for_each(|page| line.mark_page(page, now));
        }
        Ok(())
    }

    async fn resolve(
        &self,
        id: &ItemId,
        tickets: &[(UserId, Number)],
        now: Millis,
    ) -> Result<Vec<Standing>> {
        let (mut rooms, outbox) = (self.rooms(), self.outbox_of(id));
        let store = self.checked_store(&mut rooms, outbox, now);
        let standings = rooms.lives(id, outbox, |line, written| {
            let resolve = |ticket| people::resolve(line, ticket, store, now, written);
            tickets.iter().map(resolve).collect()
        });
        Ok(standings.unwrap_or_else(|| vec![Standing::Forgotten; tickets.len()]))
    }

    async fn reenter(&self, id: &ItemId, entry: &Reentry, now: Millis) -> Result<Standing> {
        let (mut rooms, outbox) = (self.rooms(), self.outbox_of(id));
        let store = self.checked_store(&mut rooms, outbox, now);
        let standing = rooms
            .lives(id, outbox, |line, written| recovery::reenter(line, entry, store, now, written));
        Ok(standing.unwrap_or(Standing::Forgotten))
    }

    async fn leave(
        &self,
        id: &ItemId,
        user: &UserId,
        number: Number,
        now: Millis,
    ) -> Result<Closing> {
        let (mut rooms, outbox) = (self.rooms(), self.outbox_of(id));
        let store = self.checked_store(&mut rooms, outbox, now);
        let closing = rooms.change(id, outbox, None, |line, written| {
            Some(people::leave(line, user, number, store, now, written))
        });
        Ok(closing.unwrap_or(Closing::Forgotten))
    }

    async fn complete(
        &self,
        id: &ItemId,
        user: &UserId,
        number: Number,
        reason: EndReason,
        now: Millis,
    ) -> Result<Closing> {
        let (mut rooms, outbox) = (self.rooms(), self.outbox_of(id));
        let store = self.checked_store(&mut rooms, outbox, now);
        let closing = rooms.change(id, outbox, None, |line, written| {
            Some(people::complete(line, user, number, reason, store, now, written))
        });
        Ok(closing.unwrap_or(Closing::Forgotten))
    }

    async fn note_ended(
        &self,
        id: &ItemId,
        tickets: &[(UserId, Number, EndReason)],
        now: Millis,
    ) -> Result<bool> {
        let mut rooms = self.rooms();
        let Some(line) = rooms.lines.get_mut(id) else { return Ok(tickets.is_empty()) };
        for (user, number, reason) in tickets {
            line.note_ended(user, *number, *reason, now);
        }
        Ok(true)
    }

    async fn declare_loss(&self, now: Millis) -> Result<()> {
        self.rooms().generations.iter_mut().for_each(|one| one.declare_loss(now));
        Ok(())
    }

    async fn counts(&self, ids: &[ItemId]) -> Result<Vec<Counts>> {
        let rooms = self.rooms();
        Ok(ids.iter().filter_map(|id| rooms.line(id)).map(Line::counts).collect())
    }

    async fn begin_term(&self, now: Millis) -> Result<Epoch> {
        let mut rooms = self.rooms();
        let latest = self.latest.load(Ordering::Relaxed).max(rooms.epoch);
        rooms.epoch = latest.max(now) + 1;
        self.latest.store(rooms.epoch, Ordering::Relaxed);
        Ok(Epoch(rooms.epoch))
    }

    async fn active_lines_of(&self, partition: u16) -> Result<Vec<ItemId>> {
        let is_there = |id: &&ItemId| crate::partition_of(id, self.partitions) == partition;
        Ok(self.rooms().active.iter().filter(is_there).cloned().collect())
    }

    async fn admit(
        &self,
        epoch: Epoch,
        id: &ItemId,
        quota: u32,
        spacing: Millis,
        outbox_max: u64,
        now: Millis,
    ) -> Result<Admission> {
        let outbox = self.outbox_of(id);
        let mut rooms = self.rooms();
        rooms.check(epoch)?;
        let rooms = &mut *rooms;
        let room = outbox_max.saturating_sub(rooms.outboxes[outbox].admissions());
        let settings = rooms.settings;
        // The operator may have set the quota to 0 since this round began.
        let stopped = settings.token_count_to_move == 0;
        let quota = if stopped { 0 } else { quota };
        let admit = |line: &mut Line, written: &mut Written| {
            Some(leader::admit(line, quota, &settings, spacing, room, now, written))
        };
        let admission = rooms.change(id, outbox, Some(epoch), admit);
        Ok(admission.unwrap_or(Admission { remaining: quota, ..Admission::default() }))
    }

    async fn expire(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<Expiry> {
        let (mut rooms, outbox) = (self.rooms(), self.outbox_of(id));
        rooms.check(epoch)?;
        let store = self.store(&rooms, outbox);
        let expire =
            |line: &mut Line, written: &mut Written| leader::expire(line, store, now, written);
        let expiry = rooms.change(id, outbox, Some(epoch), expire);
        if !expiry.active {
            rooms.active.remove(id);
        }
        Ok(expiry)
    }

    async fn sweep(&self, epoch: Epoch, id: &ItemId, cursor: Number, now: Millis) -> Result<Sweep> {
        let outbox = self.outbox_of(id);
        let mut rooms = self.rooms();
        rooms.check(epoch)?;
        let settings = rooms.settings;
        let swept = |line: &mut Line, written: &mut Written| {
            Some(leader::sweep(line, cursor, &settings, now, written))
        };
        let swept = rooms.change(id, outbox, Some(epoch), swept);
        Ok(swept.unwrap_or(Sweep { abandoned: 0, cursor: Number(0) }))
    }

    fn partitions(&self) -> u16 {
        self.partitions
    }

    async fn outbox_read(
        &self,
        partition: u16,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<OutboxBatch>> {
        Ok(self.rooms().outboxes[usize::from(partition)].read(after, limit))
    }

    async fn outbox_ack(&self, partition: u16, ids: &[String]) -> Result<()> {
        self.rooms().outboxes[usize::from(partition)].ack(ids);
        Ok(())
    }

    async fn outbox_len(&self, partition: u16) -> Result<u64> {
        Ok(self.rooms().outboxes[usize::from(partition)].events())
    }

    async fn settings(&self) -> Result<Settings> {
        Ok(self.rooms().settings)
    }

    async fn set_settings(
        &self,
        token_count_to_move: Option<u32>,
        tick_ms: Option<u32>,
    ) -> Result<Settings> {
        let mut rooms = self.rooms();
        let old = rooms.settings;
        rooms.settings = Settings {
            token_count_to_move: token_count_to_move.unwrap_or(old.token_count_to_move),
            tick_ms: tick_ms.unwrap_or(old.tick_ms),
        };
        Ok(rooms.settings)
    }

    async fn journal_write(&self, entry: &str) -> Result<()> {
        self.rooms().board.write(entry);
        Ok(())
    }

    async fn journal_read(&self, limit: u32) -> Result<Vec<String>> {
        Ok(self.rooms().board.read(limit))
    }

    async fn post_notice(&self, who: &str, text: &str, now: Millis) -> Result<()> {
        self.rooms().board.post(who, text, now);
        Ok(())
    }

    async fn notices(&self, now: Millis) -> Result<Vec<Notice>> {
        Ok(self.rooms().board.notices(now))
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }

    fn leases(&self) -> &Leases {
        &self.leases
    }
}
