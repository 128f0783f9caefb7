//! The memory store, as a network shows it: late, or not at all, or carried out and not answered.

use std::sync::Arc;

use async_trait::async_trait;
use daegi_domain::{
    EndReason, Item, ItemChange, ItemId, ItemNews, Millis, Number, Policy, SeenPage, Settings,
    UserId,
};
use daegi_store::{
    Admission, Catalogue, Counts, DepartedCursor, Epoch, Error, Expiry, Joined, Leases,
    LineSnapshot, NewsOutcome, Notice, OutboxBatch, PolicyChange, Put, Reentry, Result, Standing,
    Store, Sweep,
};

use super::world::World;

/// A way to the store of a world.
#[derive(Debug, Clone)]
pub(super) struct Flaky(pub(super) Arc<World>);

impl Flaky {
    /// One call: it waits for its turn, may not arrive, and may not be answered.
    async fn call<T>(&self, carried_out: impl Future<Output = Result<T>>) -> Result<T> {
        self.0.pause().await;
        if self.0.fails(0.05) {
            return Err(Error::Unavailable("not reached, says the simulation".into()));
        }
        let answer = carried_out.await;
        if self.0.fails(0.05) {
            return Err(Error::Unavailable("no answer, says the simulation".into()));
        }
        answer
    }
}

#[async_trait]
impl Store for Flaky {
    async fn put_item(&self, change: &ItemChange, now: Millis) -> Result<Put> {
        self.call(self.0.store.put_item(change, now)).await
    }

    async fn remove_item(&self, id: &ItemId) -> Result<bool> {
        self.call(self.0.store.remove_item(id)).await
    }

    async fn apply_news(&self, news: &[ItemNews], now: Millis) -> Result<Vec<NewsOutcome>> {
        self.call(self.0.store.apply_news(news, now)).await
    }

    async fn catalogue(&self, log: &str) -> Result<Catalogue> {
        self.call(self.0.store.catalogue(log)).await
    }

    async fn begin_catalogue(&self, log: &str) -> Result<()> {
        self.call(self.0.store.begin_catalogue(log)).await
    }

    async fn end_catalogue(&self, log: &str) -> Result<bool> {
        self.call(self.0.store.end_catalogue(log)).await
    }

    async fn item(&self, id: &ItemId) -> Result<Option<Item>> {
        self.call(self.0.store.item(id)).await
    }

    async fn items(&self) -> Result<Vec<Item>> {
        self.call(self.0.store.items()).await
    }

    async fn set_policy(&self, id: &ItemId, policy: &Policy, rev: u64) -> Result<PolicyChange> {
        self.call(self.0.store.set_policy(id, policy, rev)).await
    }

    async fn set_paused(&self, id: &ItemId, paused: bool) -> Result<Option<Item>> {
        self.call(self.0.store.set_paused(id, paused)).await
    }

    async fn reset(&self, id: &ItemId, now: Millis) -> Result<Option<Item>> {
        self.call(self.0.store.reset(id, now)).await
    }

    async fn purge(&self, id: &ItemId) -> Result<()> {
        self.call(self.0.store.purge(id)).await
    }

    async fn join(
        &self,
        id: &ItemId,
        users: &[UserId],
        settings: &Settings,
        now: Millis,
    ) -> Result<Vec<Joined>> {
        self.call(self.0.store.join(id, users, settings, now)).await
    }

    async fn snapshot(&self, id: &ItemId, cursor: DepartedCursor) -> Result<Option<LineSnapshot>> {
        self.call(self.0.store.snapshot(id, cursor)).await
    }

    async fn mark_seen(&self, id: &ItemId, pages: &[SeenPage], now: Millis) -> Result<()> {
        self.call(self.0.store.mark_seen(id, pages, now)).await
    }

    async fn resolve(
        &self,
        id: &ItemId,
        tickets: &[(UserId, Number)],
        now: Millis,
    ) -> Result<Vec<Standing>> {
        self.call(self.0.store.resolve(id, tickets, now)).await
    }

    async fn reenter(&self, id: &ItemId, entry: &Reentry, now: Millis) -> Result<Standing> {
        self.call(self.0.store.reenter(id, entry, now)).await
    }

    async fn leave(&self, id: &ItemId, user: &UserId, number: Number, now: Millis) -> Result<bool> {
        self.call(self.0.store.leave(id, user, number, now)).await
    }

    async fn complete(
        &self,
        id: &ItemId,
        user: &UserId,
        number: Number,
        reason: EndReason,
        now: Millis,
    ) -> Result<bool> {
        self.call(self.0.store.complete(id, user, number, reason, now)).await
    }

    async fn counts(&self, ids: &[ItemId]) -> Result<Vec<Counts>> {
        self.call(self.0.store.counts(ids)).await
    }

    async fn begin_term(&self, now: Millis) -> Result<Epoch> {
        self.call(self.0.store.begin_term(now)).await
    }

    async fn active_lines(&self) -> Result<Vec<ItemId>> {
        self.call(self.0.store.active_lines()).await
    }

    async fn admit(
        &self,
        epoch: Epoch,
        id: &ItemId,
        quota: u32,
        outbox_max: u64,
        now: Millis,
    ) -> Result<Admission> {
        self.call(self.0.store.admit(epoch, id, quota, outbox_max, now)).await
    }

    async fn expire(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<Expiry> {
        self.call(self.0.store.expire(epoch, id, now)).await
    }

    async fn sweep(&self, epoch: Epoch, id: &ItemId, from: Number, now: Millis) -> Result<Sweep> {
        self.call(self.0.store.sweep(epoch, id, from, now)).await
    }

    fn partitions(&self) -> u16 {
        self.0.store.partitions()
    }

    async fn outbox_read(
        &self,
        partition: u16,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<OutboxBatch>> {
        self.call(self.0.store.outbox_read(partition, after, limit)).await
    }

    async fn outbox_ack(&self, partition: u16, ids: &[String]) -> Result<()> {
        self.call(self.0.store.outbox_ack(partition, ids)).await
    }

    async fn outbox_len(&self, partition: u16) -> Result<u64> {
        self.call(self.0.store.outbox_len(partition)).await
    }

    async fn settings(&self) -> Result<Settings> {
        self.call(self.0.store.settings()).await
    }

    async fn set_settings(&self, count: Option<u32>, tick_ms: Option<u32>) -> Result<Settings> {
        self.call(self.0.store.set_settings(count, tick_ms)).await
    }

    async fn journal_write(&self, entry: &str) -> Result<()> {
        self.call(self.0.store.journal_write(entry)).await
    }

    async fn journal_read(&self, limit: u32) -> Result<Vec<String>> {
        self.call(self.0.store.journal_read(limit)).await
    }

    async fn post_notice(&self, who: &str, text: &str, now: Millis) -> Result<()> {
        self.call(self.0.store.post_notice(who, text, now)).await
    }

    async fn notices(&self, now: Millis) -> Result<Vec<Notice>> {
        self.call(self.0.store.notices(now)).await
    }

    async fn ping(&self) -> Result<()> {
        self.call(self.0.store.ping()).await
    }

    fn leases(&self) -> &Leases {
        self.0.store.leases()
    }
}
