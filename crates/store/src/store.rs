use std::sync::Arc;

use async_trait::async_trait;
use daegi_domain::{
    EndReason, Item, ItemChange, ItemId, ItemNews, Millis, Number, Policy, SeenPage, Settings,
    UserId,
};
use futures_util::future::try_join_all;

use crate::model::{
    Admission, Catalogue, Closing, Counts, DepartedCursor, Epoch, Expiry, Joined, LineSnapshot,
    Memory, NewsOutcome, Notice, OutboxBatch, PolicyChange, Put, Reentry, Standing, Sweep,
};
use crate::{Leases, Result};

/// The store every part of a process shares.
pub type SharedStore = Arc<dyn Store>;

/// What a waiting room keeps. Every method is one atomic step on one line, unless it says
/// otherwise; `now` is the caller's clock in Unix milliseconds.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug + 'static {
    // --- items ---------------------------------------------------------------------------

    /// Creates or changes an item. Creating it opens its line: the counter starts at
    /// [`Number::base_at`] and never goes back.
    async fn put_item(&self, change: &ItemChange, now: Millis) -> Result<Put>;

    /// Takes an item out, by an operator's hand. Its line ends as in [`Store::reset`]; entries run
    /// to their end. False: no such item.
    async fn remove_item(&self, id: &ItemId) -> Result<bool>;

    /// Applies what product services said, in this order, one answer each. Each is one atomic step
    /// on one item: a version that is not newer than the stored one changes nothing, nor does a
    /// removal without a version that was read before. The version of a removal is remembered,
    /// so that an older event cannot bring the item back.
    async fn apply_news(&self, news: &[ItemNews], now: Millis) -> Result<Vec<NewsOutcome>>;

    // --- the product services' log -------------------------------------------------------

    /// How far this store has come with reading a log from its beginning. Kept beside the items,
    /// in every partition, and of no worth to another server, so that a store that may have lost
    /// items has lost this, too.
    async fn catalogue(&self, log: &str) -> Result<Catalogue>;

    /// Notes that a log is read from its beginning, from now on, where nothing is noted yet.
    async fn begin_catalogue(&self, log: &str) -> Result<()>;

    /// Notes that all of it was read; false if items were lost since [`Store::begin_catalogue`].
    async fn end_catalogue(&self, log: &str) -> Result<bool>;

    /// One item.
    async fn item(&self, id: &ItemId) -> Result<Option<Item>>;

    /// All items, sorted by id, without reserved ones. Not one atomic step.
    async fn items(&self) -> Result<Vec<Item>>;

    /// The ids of all items, in any order. Not one atomic step.
    async fn item_ids(&self) -> Result<Vec<ItemId>> {
        Ok(self.items().await?.into_iter().map(|item| item.id).collect())
    }

    /// Replaces the policy of an item whose revision is still `revision`.
    async fn set_policy(
        &self,
        id: &ItemId,
        policy: &Policy,
        revision: u64,
        now: Millis,
    ) -> Result<PolicyChange>;

    /// Pauses or resumes admission; none if there is no such item.
    async fn set_paused(&self, id: &ItemId, paused: bool, now: Millis) -> Result<Option<Item>>;

    /// Ends the line: everybody who waits, returns or missed their turn is sent away
    /// ([`Standing::Restarted`]), the next number is the first of the new line. People inside
    /// stay until they complete, leave or expire. No event is written. None: no such item.
    async fn reset(&self, id: &ItemId, now: Millis) -> Result<Option<Item>>;

    /// Forgets a line and its item without a trace; for reserved lines only.
    async fn purge(&self, id: &ItemId) -> Result<()>;

    // --- people --------------------------------------------------------------------------

    /// Joins people in this order, one answer each; at most a thousand at a time. After a fail-over
    /// the next number is beyond every one that may have been lost with it. A number's clock
    /// ([`Number::issued_at_ms`]) is at most [`daegi_domain::MAX_CLOCK_LAG_MS`] behind `now`. `settings`
    /// count only where the store has no copy of its own: the quota of a tick is also the most direct
    /// admissions between two ticks where the policy is `auto`. New tickets beyond the policy's
    /// `max_waiting` or the limits of the store are refused, in the order of `users`; users who have a
    /// ticket keep it. A user who left the line too often is refused, see [`crate::LeaveLimit`].
    async fn join(
        &self,
        id: &ItemId,
        users: &[UserId],
        settings: &Settings,
        now: Millis,
    ) -> Result<Vec<Joined>>;

    /// What a pod needs to answer polls; none if there is no such item.
    async fn snapshot(&self, id: &ItemId, cursor: DepartedCursor) -> Result<Option<LineSnapshot>>;

    /// Notes that people were seen. Not one step across pages, which is harmless: marks only add.
    async fn mark_seen(&self, id: &ItemId, pages: &[SeenPage], now: Millis) -> Result<()>;

    /// What became of these tickets, which must be genuine. A person who missed their turn and
    /// asks in time comes back: they go to `returning`, ahead of the line. A person whose number
    /// the store lost is put back where that number belongs, and the first of them begins the
    /// time in which nobody is let in. A number counts as lost only if there is evidence of a loss: another
    /// server goes on with the line, a process knows an earlier generation, or an operator declared the
    /// loss. Otherwise a number of another store is [`Standing::Restarted`].
    async fn resolve(
        &self,
        id: &ItemId,
        tickets: &[(UserId, Number)],
        now: Millis,
    ) -> Result<Vec<Standing>>;

    /// Lets a person in again whose genuine pass says that they were let in, if the store lost
    /// that; otherwise as [`Store::resolve`]. The event is written again, with the same id.
    async fn reenter(&self, id: &ItemId, entry: &Reentry, now: Millis) -> Result<Standing>;

    /// Leaves the line or gives the entry back; false if the ticket had ended already.
    async fn leave(
        &self,
        id: &ItemId,
        user: &UserId,
        number: Number,
        now: Millis,
    ) -> Result<Closing>;

    /// Ends an entry ([`EndReason::Completed`], or [`EndReason::Left`] for a cancelled order);
    /// [`Closing::Over`] if this ticket is not inside. One that the store lost ends, too.
    async fn complete(
        &self,
        id: &ItemId,
        user: &UserId,
        number: Number,
        reason: EndReason,
        now: Millis,
    ) -> Result<Closing>;

    /// Remembers that these tickets of a line ended before the store lost data; another source, such
    /// as Kafka's `token.closed`, tells so. A number that was reclaimed meanwhile and waits leaves the line
    /// without an event. A ticket that was admitted again stays as it is. Returns false if the store knows
    /// nothing of the item. One atomic step per [`crate::CHUNK`] tickets.
    async fn note_ended(
        &self,
        id: &ItemId,
        tickets: &[(UserId, Number, EndReason)],
        now: Millis,
    ) -> Result<bool>;

    /// Records that the store lost data, because an operator says so: from `now` on and for
    /// [`crate::TAKE_BACK_MS`], numbers of earlier generations are reclaimed in every partition. Not
    /// one atomic step; calling it again is harmless.
    async fn declare_loss(&self, now: Millis) -> Result<()>;

    /// How many people are where, for these lines; unknown ones are left out. Not atomic across
    /// lines.
    async fn counts(&self, ids: &[ItemId]) -> Result<Vec<Counts>>;

    // --- the leader ----------------------------------------------------------------------

    /// Begins a term: a new epoch, which every partition holds from now on. It is beyond every
    /// epoch this process knows of, and beyond `now`, so that a store that lost the
    /// count gives none again. Called only by the holder of the lease.
    async fn begin_term(&self, now: Millis) -> Result<Epoch>;

    /// Lines of a partition that need the leader, reserved ones included.
    async fn active_lines_of(&self, partition: u16) -> Result<Vec<ItemId>>;

    /// Those of all partitions. Not atomic across them.
    async fn active_lines(&self) -> Result<Vec<ItemId>> {
        let lines = (0..self.partitions()).map(|partition| self.active_lines_of(partition));
        let mut lines: Vec<_> = try_join_all(lines).await?.into_iter().flatten().collect();
        lines.sort_unstable();
        Ok(lines)
    }

    /// Lets in up to `quota` people, at most [`crate::CHUNK`] at a time: those who came back
    /// first, then from the frontier. Pauses while the partition's outbox holds `outbox_max`
    /// admissions, and marks the line as held. Each admission has one event. Calls with the same `now` are one round; a round
    /// that begins less than `spacing` after the last one lets nobody in, whoever led then.
    async fn admit(
        &self,
        epoch: Epoch,
        id: &ItemId,
        quota: u32,
        spacing: Millis,
        outbox_max: u64,
        now: Millis,
    ) -> Result<Admission>;

    /// Ends entries and missed turns whose time is up, forgets old ends and what the front of the
    /// line has passed, and retires a line nobody is in. At most [`crate::CHUNK`] at a time. Notices
    /// a fail-over, as [`Store::join`] does.
    async fn expire(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<Expiry>;

    /// Removes people unseen for too long from the line, looking at up to [`crate::CHUNK`]
    /// people from `cursor` on.
    async fn sweep(&self, epoch: Epoch, id: &ItemId, cursor: Number, now: Millis) -> Result<Sweep>;

    // --- the outbox ----------------------------------------------------------------------

    /// How many partitions there are.
    fn partitions(&self) -> u16;

    /// The oldest batches of a partition's outbox, in order; with `after`, those behind the batch
    /// of that id, whether or not it is still there.
    async fn outbox_read(
        &self,
        partition: u16,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<OutboxBatch>>;

    /// Removes batches that are published; removing one twice is harmless.
    async fn outbox_ack(&self, partition: u16, ids: &[String]) -> Result<()>;

    /// How many events a partition's outbox holds.
    async fn outbox_len(&self, partition: u16) -> Result<u64>;

    // --- settings and health -------------------------------------------------------------

    /// What applies to every line now.
    async fn settings(&self) -> Result<Settings>;

    /// Changes what is given, keeps the rest; returns what applies now. When this returns, every
    /// partition has the new quota, so that no direct admission and no round uses an older one. If it
    /// fails, some partitions may have it: repeat the call. [`Store::copy_settings`] completes it, too.
    async fn set_settings(
        &self,
        token_count_to_move: Option<u32>,
        tick_ms: Option<u32>,
    ) -> Result<Settings>;

    /// Writes the settings into every partition whose copy of them is older. The leader calls this
    /// regularly, because a call of [`Store::set_settings`] may fail half-way and a fail-over may lose
    /// the newest copy.
    async fn copy_settings(&self) -> Result<()> {
        Ok(())
    }

    // --- what operators see --------------------------------------------------------------

    /// Writes down what an operator changed; the latest [`crate::JOURNAL_KEPT`] entries are kept.
    async fn journal_write(&self, entry: &str) -> Result<()>;

    /// What operators changed, newest first.
    async fn journal_read(&self, limit: u32) -> Result<Vec<String>>;

    /// Tells everybody what a process says about itself, in place of what it said before, and
    /// takes down what others said more than [`crate::NOTICE_KEEP_MS`] ago.
    async fn post_notice(&self, who: &str, text: &str, now: Millis) -> Result<()>;

    /// What processes said about themselves lately, sorted by process.
    async fn notices(&self, now: Millis) -> Result<Vec<Notice>>;

    /// Publishes how many tickets wait in all lines, as the leader counted them, for the limit of
    /// the whole store. A store that counts by itself ignores it.
    async fn publish_waiting(&self, _tickets: u64) -> Result<()> {
        Ok(())
    }

    /// How full the server is that is fullest; none where lines live in this process.
    async fn memory(&self) -> Result<Option<Memory>> {
        Ok(None)
    }

    /// The clock of the store's server in Unix milliseconds; `None` where lines live in this
    /// process. Nothing is decided by it: [`crate::clock_skew`] compares it with the process's clock.
    async fn server_time(&self) -> Result<Option<Millis>> {
        Ok(None)
    }

    /// Whether the store answers.
    async fn ping(&self) -> Result<()>;

    /// The lock behind the lease.
    fn leases(&self) -> &Leases;
}
