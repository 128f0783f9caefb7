//! A memory store that counts its calls and can be away, quickly or slowly.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Mutex;

use async_trait::async_trait;
use daegi_domain::{
    EndReason, Item, ItemChange, ItemId, ItemNews, Millis, Number, Policy, SeenPage, Settings,
    UserId,
};
use daegi_store::{
    Admission, Catalogue, Counts, DepartedCursor, Epoch, Error, Expiry, Joined, Leases,
    LineSnapshot, MemoryStore, NewsOutcome, Notice, OutboxBatch, PolicyChange, Put, Reentry,
    Replica, Result, Standing, Store, Sweep,
};

/// How the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// It answers.
    Up,
    /// It refuses at once.
    Refusing,
    /// It never answers.
    Hanging,
}

#[derive(Debug)]
pub(crate) struct Probe {
    inner: MemoryStore,
    mood: Mutex<Mood>,
    calls: Mutex<HashMap<&'static str, usize>>,
    marked: Mutex<Vec<(ItemId, SeenPage)>>,
}

impl Probe {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            inner: MemoryStore::new(4, settings),
            mood: Mutex::new(Mood::Up),
            calls: Mutex::default(),
            marked: Mutex::default(),
        }
    }

    pub(crate) fn set_mood(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// What a replica has that gets nothing from now on.
    pub(crate) fn replica(&self) -> Replica {
        self.inner.replica()
    }

    /// Loses everything but what the replica has.
    pub(crate) fn lose(&self, replica: Option<Replica>) {
        self.inner.lose(replica);
    }

    /// How often this was called.
    pub(crate) fn calls(&self, call: &str) -> usize {
        self.calls.lock().unwrap().get(call).copied().unwrap_or(0)
    }

    /// How often the store was told that this number was seen.
    pub(crate) fn marks(&self, item: &ItemId, number: Number) -> usize {
        let page = number.0 / daegi_domain::liveness::PAGE_NUMBERS;
        let is_it =
            |(id, seen): &&(ItemId, SeenPage)| id == item && seen.page == page && seen.has(number);
        self.marked.lock().unwrap().iter().filter(is_it).count()
    }

    /// Counts a call, and lets it through only if the store is up.
    async fn gate(&self, call: &'static str) -> Result<()> {
        *self.calls.lock().unwrap().entry(call).or_default() += 1;
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Up => Ok(()),
            Mood::Refusing => Err(Error::Unavailable("refused, says the test".into())),
            Mood::Hanging => pending().await,
        }
    }
}

#[async_trait]
impl Store for Probe {
    async fn put_item(&self, change: &ItemChange, now: Millis) -> Result<Put> {
        self.gate("put_item").await?;
        self.inner.put_item(change, now).await
    }

    async fn remove_item(&self, id: &ItemId) -> Result<bool> {
        self.gate("remove_item").await?;
        self.inner.remove_item(id).await
    }

    async fn apply_news(&self, news: &[ItemNews], now: Millis) -> Result<Vec<NewsOutcome>> {
        self.gate("apply_news").await?;
        self.inner.apply_news(news, now).await
    }

    async fn catalogue(&self, log: &str) -> Result<Catalogue> {
        self.gate("catalogue").await?;
        self.inner.catalogue(log).await
    }

    async fn begin_catalogue(&self, log: &str) -> Result<()> {
        self.gate("begin_catalogue").await?;
        self.inner.begin_catalogue(log).await
    }

    async fn end_catalogue(&self, log: &str) -> Result<bool> {
        self.gate("end_catalogue").await?;
        self.inner.end_catalogue(log).await
    }

    async fn item(&self, id: &ItemId) -> Result<Option<Item>> {
        self.gate("item").await?;
        self.inner.item(id).await
    }

    async fn items(&self) -> Result<Vec<Item>> {
        self.gate("items").await?;
        self.inner.items().await
    }

    async fn set_policy(&self, id: &ItemId, policy: &Policy, rev: u64) -> Result<PolicyChange> {
        self.gate("set_policy").await?;
        self.inner.set_policy(id, policy, rev).await
    }

    async fn set_paused(&self, id: &ItemId, paused: bool) -> Result<Option<Item>> {
        self.gate("set_paused").await?;
        self.inner.set_paused(id, paused).await
    }

    async fn reset(&self, id: &ItemId, now: Millis) -> Result<Option<Item>> {
        self.gate("reset").await?;
        self.inner.reset(id, now).await
    }

    async fn purge(&self, id: &ItemId) -> Result<()> {
        self.gate("purge").await?;
        self.inner.purge(id).await
    }

    async fn join(
        &self,
        id: &ItemId,
        users: &[UserId],
        settings: &Settings,
        now: Millis,
    ) -> Result<Vec<Joined>> {
        self.gate("join").await?;
        self.inner.join(id, users, settings, now).await
    }

    async fn snapshot(&self, id: &ItemId, cursor: DepartedCursor) -> Result<Option<LineSnapshot>> {
        self.gate("snapshot").await?;
        self.inner.snapshot(id, cursor).await
    }

    async fn mark_seen(&self, id: &ItemId, pages: &[SeenPage], now: Millis) -> Result<()> {
        self.gate("mark_seen").await?;
        let marked = pages.iter().map(|page| (id.clone(), page.clone()));
        self.marked.lock().unwrap().extend(marked);
        self.inner.mark_seen(id, pages, now).await
    }

    async fn resolve(
        &self,
        id: &ItemId,
        tickets: &[(UserId, Number)],
        now: Millis,
    ) -> Result<Vec<Standing>> {
        self.gate("resolve").await?;
        self.inner.resolve(id, tickets, now).await
    }

    async fn reenter(&self, id: &ItemId, entry: &Reentry, now: Millis) -> Result<Standing> {
        self.gate("reenter").await?;
        self.inner.reenter(id, entry, now).await
    }

    async fn leave(&self, id: &ItemId, user: &UserId, number: Number, now: Millis) -> Result<bool> {
        self.gate("leave").await?;
        self.inner.leave(id, user, number, now).await
    }

    async fn complete(
        &self,
        id: &ItemId,
        user: &UserId,
        number: Number,
        reason: EndReason,
        now: Millis,
    ) -> Result<bool> {
        self.gate("complete").await?;
        self.inner.complete(id, user, number, reason, now).await
    }

    async fn counts(&self, ids: &[ItemId]) -> Result<Vec<Counts>> {
        self.gate("counts").await?;
        self.inner.counts(ids).await
    }

    async fn begin_term(&self, now: Millis) -> Result<Epoch> {
        self.inner.begin_term(now).await
    }

    async fn active_lines(&self) -> Result<Vec<ItemId>> {
        self.inner.active_lines().await
    }

    async fn admit(
        &self,
        epoch: Epoch,
        id: &ItemId,
        quota: u32,
        outbox_max: u64,
        now: Millis,
    ) -> Result<Admission> {
        self.inner.admit(epoch, id, quota, outbox_max, now).await
    }

    async fn expire(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<Expiry> {
        self.inner.expire(epoch, id, now).await
    }

    async fn sweep(&self, epoch: Epoch, id: &ItemId, from: Number, now: Millis) -> Result<Sweep> {
        self.inner.sweep(epoch, id, from, now).await
    }

    fn partitions(&self) -> u16 {
        self.inner.partitions()
    }

    async fn outbox_read(
        &self,
        partition: u16,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<OutboxBatch>> {
        self.inner.outbox_read(partition, after, limit).await
    }

    async fn outbox_ack(&self, partition: u16, ids: &[String]) -> Result<()> {
        self.inner.outbox_ack(partition, ids).await
    }

    async fn outbox_len(&self, partition: u16) -> Result<u64> {
        self.inner.outbox_len(partition).await
    }

    async fn settings(&self) -> Result<Settings> {
        self.gate("settings").await?;
        self.inner.settings().await
    }

    async fn set_settings(&self, count: Option<u32>, tick_ms: Option<u32>) -> Result<Settings> {
        self.inner.set_settings(count, tick_ms).await
    }

    async fn journal_write(&self, entry: &str) -> Result<()> {
        self.inner.journal_write(entry).await
    }

    async fn journal_read(&self, limit: u32) -> Result<Vec<String>> {
        self.inner.journal_read(limit).await
    }

    async fn post_notice(&self, who: &str, text: &str, now: Millis) -> Result<()> {
        self.inner.post_notice(who, text, now).await
    }

    async fn notices(&self, now: Millis) -> Result<Vec<Notice>> {
        self.inner.notices(now).await
    }

    async fn ping(&self) -> Result<()> {
        self.gate("ping").await
    }

    fn leases(&self) -> &Leases {
        self.inner.leases()
    }
}
