//! A memory store behind a gate, which sees every call and decides what becomes of it.

use std::sync::Arc;

use async_trait::async_trait;
use daegi_domain::{
    EndReason, Item, ItemChange, ItemId, ItemNews, Millis, Number, Policy, SeenPage, Settings,
    UserId,
};
use daegi_store::{
    Admission, Catalogue, Closing, Counts, DepartedCursor, Epoch, Expiry, Joined, Leases,
    LineSnapshot, MemoryStore, NewsOutcome, Notice, OutboxBatch, PolicyChange, Put, Reentry,
    Result, Standing, Store, Sweep,
};

/// What becomes of calls, by their names in [`Store`].
pub trait Gate: std::fmt::Debug + Send + Sync + 'static {
    /// Before a call is carried out. What fails here does not reach the store.
    fn before(&self, call: &'static str) -> impl Future<Output = Result<()>> + Send;

    /// After a call was carried out. What fails here was done, and nobody hears of it.
    ///
    /// # Errors
    /// If nobody is to hear of it.
    fn after(&self, _call: &'static str) -> Result<()> {
        Ok(())
    }

    /// Numbers that were seen are on their way to the store.
    fn marks(&self, _id: &ItemId, _pages: &[SeenPage]) {}
}

/// A memory store behind a gate.
#[derive(Debug, Clone)]
pub struct Gated<G> {
    /// What is behind it.
    pub store: Arc<MemoryStore>,
    /// What is before it.
    pub gate: G,
}

macro_rules! gated {
    ($self:ident.$call:ident($($word:expr),*)) => {{
        $self.gate.before(stringify!($call)).await?;
        let answer = $self.store.$call($($word),*).await;
        $self.gate.after(stringify!($call))?;
        answer
    }};
}

#[async_trait]
impl<G: Gate> Store for Gated<G> {
    async fn put_item(&self, change: &ItemChange, now: Millis) -> Result<Put> {
        gated!(self.put_item(change, now))
    }

    async fn remove_item(&self, id: &ItemId) -> Result<bool> {
        gated!(self.remove_item(id))
    }

    async fn apply_news(&self, news: &[ItemNews], now: Millis) -> Result<Vec<NewsOutcome>> {
        gated!(self.apply_news(news, now))
    }

    async fn catalogue(&self, log: &str) -> Result<Catalogue> {
        gated!(self.catalogue(log))
    }

    async fn begin_catalogue(&self, log: &str) -> Result<()> {
        gated!(self.begin_catalogue(log))
    }

    async fn end_catalogue(&self, log: &str) -> Result<bool> {
        gated!(self.end_catalogue(log))
    }

    async fn item(&self, id: &ItemId) -> Result<Option<Item>> {
        gated!(self.item(id))
    }

    async fn items(&self) -> Result<Vec<Item>> {
        gated!(self.items())
    }

    async fn item_ids(&self) -> Result<Vec<ItemId>> {
        gated!(self.item_ids())
    }

    async fn set_policy(
        &self,
        id: &ItemId,
        policy: &Policy,
        rev: u64,
        now: Millis,
    ) -> Result<PolicyChange> {
        gated!(self.set_policy(id, policy, rev, now))
    }

    async fn set_paused(&self, id: &ItemId, paused: bool, now: Millis) -> Result<Option<Item>> {
        gated!(self.set_paused(id, paused, now))
    }

    async fn reset(&self, id: &ItemId, now: Millis) -> Result<Option<Item>> {
        gated!(self.reset(id, now))
    }

    async fn purge(&self, id: &ItemId) -> Result<()> {
        gated!(self.purge(id))
    }

    async fn join(
        &self,
        id: &ItemId,
        users: &[UserId],
        settings: &Settings,
        now: Millis,
    ) -> Result<Vec<Joined>> {
        gated!(self.join(id, users, settings, now))
    }

    async fn snapshot(&self, id: &ItemId, cursor: DepartedCursor) -> Result<Option<LineSnapshot>> {
        gated!(self.snapshot(id, cursor))
    }

    async fn mark_seen(&self, id: &ItemId, pages: &[SeenPage], now: Millis) -> Result<()> {
        self.gate.marks(id, pages);
        gated!(self.mark_seen(id, pages, now))
    }

    async fn resolve(
        &self,
        id: &ItemId,
        tickets: &[(UserId, Number)],
        now: Millis,
    ) -> Result<Vec<Standing>> {
        gated!(self.resolve(id, tickets, now))
    }

    async fn reenter(&self, id: &ItemId, entry: &Reentry, now: Millis) -> Result<Standing> {
        gated!(self.reenter(id, entry, now))
    }

    async fn leave(
        &self,
        id: &ItemId,
        user: &UserId,
        number: Number,
        now: Millis,
    ) -> Result<Closing> {
        gated!(self.leave(id, user, number, now))
    }

    async fn complete(
        &self,
        id: &ItemId,
        user: &UserId,
        number: Number,
        reason: EndReason,
        now: Millis,
    ) -> Result<Closing> {
        gated!(self.complete(id, user, number, reason, now))
    }

    async fn note_ended(
        &self,
        id: &ItemId,
        tickets: &[(UserId, Number, EndReason)],
        now: Millis,
    ) -> Result<bool> {
        gated!(self.note_ended(id, tickets, now))
    }

    async fn declare_loss(&self, now: Millis) -> Result<()> {
        gated!(self.declare_loss(now))
    }

    async fn counts(&self, ids: &[ItemId]) -> Result<Vec<Counts>> {
        gated!(self.counts(ids))
    }

    async fn begin_term(&self, now: Millis) -> Result<Epoch> {
        gated!(self.begin_term(now))
    }

    async fn active_lines_of(&self, partition: u16) -> Result<Vec<ItemId>> {
        gated!(self.active_lines_of(partition))
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
        gated!(self.admit(epoch, id, quota, spacing, outbox_max, now))
    }

    async fn expire(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<Expiry> {
        gated!(self.expire(epoch, id, now))
    }

    async fn sweep(&self, epoch: Epoch, id: &ItemId, from: Number, now: Millis) -> Result<Sweep> {
        gated!(self.sweep(epoch, id, from, now))
    }

    fn partitions(&self) -> u16 {
        self.store.partitions()
    }

    async fn outbox_read(
        &self,
        partition: u16,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<OutboxBatch>> {
        gated!(self.outbox_read(partition, after, limit))
    }

    async fn outbox_ack(&self, partition: u16, ids: &[String]) -> Result<()> {
        gated!(self.outbox_ack(partition, ids))
    }

    async fn outbox_len(&self, partition: u16) -> Result<u64> {
        gated!(self.outbox_len(partition))
    }

    async fn settings(&self) -> Result<Settings> {
        gated!(self.settings())
    }

    async fn set_settings(&self, count: Option<u32>, tick_ms: Option<u32>) -> Result<Settings> {
        gated!(self.set_settings(count, tick_ms))
    }

    async fn copy_settings(&self) -> Result<()> {
        gated!(self.copy_settings())
    }

    async fn journal_write(&self, entry: &str) -> Result<()> {
        gated!(self.journal_write(entry))
    }

    async fn journal_read(&self, limit: u32) -> Result<Vec<String>> {
        gated!(self.journal_read(limit))
    }

    async fn post_notice(&self, who: &str, text: &str, now: Millis) -> Result<()> {
        gated!(self.post_notice(who, text, now))
    }

    async fn notices(&self, now: Millis) -> Result<Vec<Notice>> {
        gated!(self.notices(now))
    }

    async fn ping(&self) -> Result<()> {
        gated!(self.ping())
    }

    fn leases(&self) -> &Leases {
        self.store.leases()
    }
}
