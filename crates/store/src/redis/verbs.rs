//! Every verb of the store: which script or command is behind it, and what it is given.

use async_trait::async_trait;
use daegi_domain::liveness::slice_of;
use daegi_domain::{
    EndReason, Item, ItemChange, ItemId, ItemNews, Millis, Number, Policy, SeenPage, Settings,
    UserId,
};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::crowd::Crowd;
use super::keys::PartitionKeys;
use super::scripts::scripts;
use super::{Lookback, RedisStore, failure, fields, keys, memory, reply};
use crate::lease::Leases;
use crate::model::{
    Admission, Catalogue, Closing, Counts, DepartedCursor, Epoch, Expiry, Joined, LineSnapshot,
    Memory, NewsOutcome, Notice, OutboxBatch, Place, PolicyChange, Put, Reentry, Standing, Sweep,
};
use crate::{CHUNK, DEPARTED_PAGE, JOURNAL_KEPT, LEAVE_WINDOW_MS, NOTICE_KEEP_MS, Result, Store};

/// How long the published count of waiting tickets is kept: twice the longest tick.
const WAITING_RETENTION_MS: Millis = 120_000;

/// How many lines are asked at once where a call covers many.
const ABREAST: usize = 64;

#[async_trait]
impl Store for RedisStore {
    async fn put_item(&self, change: &ItemChange, now: Millis) -> Result<Put> {
        self.put_one(change, now).await
    }

    async fn remove_item(&self, id: &ItemId) -> Result<bool> {
        // An operator removes what is there, so the time a line would begin at does not matter.
        Ok(self.remove(id, None, None, 0).await? == NewsOutcome::Removed)
    }

    async fn apply_news(&self, news: &[ItemNews], now: Millis) -> Result<Vec<NewsOutcome>> {
        self.apply_all(news, now).await
    }

    async fn catalogue(&self, log: &str) -> Result<Catalogue> {
        self.catalogue_of(log).await
    }

    async fn begin_catalogue(&self, log: &str) -> Result<()> {
        self.catalogue_begun(log).await
    }

    async fn end_catalogue(&self, log: &str) -> Result<bool> {
        self.catalogue_ended(log).await
    }

    async fn item(&self, id: &ItemId) -> Result<Option<Item>> {
        let hash = self.command(::redis::cmd("HGETALL").arg(&self.keys(id).item)).await?;
        fields::item(id, hash)
    }

    async fn items(&self) -> Result<Vec<Item>> {
        let ids = self.members(|partition| partition.items.clone()).await?;
        let shown = ids.into_iter().filter(|id| !id.is_reserved());
        let items = stream::iter(shown.map(|id| async move { self.item(&id).await }));
        items.buffered(ABREAST).try_filter_map(|item| async { Ok(item) }).try_collect().await
    }

    async fn item_ids(&self) -> Result<Vec<ItemId>> {
        self.members(|partition| partition.items.clone()).await
    }

    async fn set_policy(
        &self,
        id: &ItemId,
        policy: &Policy,
        revision: u64,
        now: Millis,
    ) -> Result<PolicyChange> {
        let mut script = self.on_line(id, |scripts| &scripts.set_policy);
        script.arg(revision).arg(now);
        fields::policy(policy).iter().for_each(|(field, value)| {
            script.arg(*field).arg(value);
        });
        reply::policy_change(id, self.run(script).await?)
    }

    async fn set_paused(&self, id: &ItemId, paused: bool, now: Millis) -> Result<Option<Item>> {
        let mut script = self.on_line(id, |scripts| &scripts.set_paused);
        script.arg(u8::from(paused)).arg(now);
        fields::item(id, self.run(script).await?)
    }

    async fn reset(&self, id: &ItemId, now: Millis) -> Result<Option<Item>> {
        let mut script = self.on_line(id, |scripts| &scripts.reset);
        script.arg(now);
        fields::item(id, self.run(script).await?)
    }

    async fn purge(&self, id: &ItemId) -> Result<()> {
        let mut script = self.on_line(id, |scripts| &scripts.purge);
        script.arg(id.as_str());
        self.run(script).await
    }

    async fn join(
        &self,
        id: &ItemId,
        users: &[UserId],
        settings: &Settings,
        now: Millis,
    ) -> Result<Vec<Joined>> {
        if users.is_empty() {
            return Ok(Vec::new());
        }
        let mut script = self.on_line(id, |scripts| &scripts.join);
        script.key(self.keys(id).slice(slice_of(now)));
        script.arg(now).arg(settings.token_count_to_move).arg(self.hold);
        script.arg(reply::refusal_tag(self.refusal_of_new()));
        script.arg(self.capacity.limits.max_waiting);
        script.arg(self.leave_limit.cost_ms()).arg(LEAVE_WINDOW_MS);
        let crowd = Crowd::of(users);
        script.arg(&crowd.people);
        let (joined, ()) = tokio::join!(self.run(script), self.measure_if_due());
        Ok(crowd.hand_out(reply::joined(joined?)?))
    }

    async fn snapshot(&self, id: &ItemId, cursor: DepartedCursor) -> Result<Option<LineSnapshot>> {
        let mut script = self.on_line(id, |scripts| &scripts.snapshot);
        script.arg(cursor.base).arg(cursor.read).arg(DEPARTED_PAGE);
        reply::snapshot(id, self.run(script).await?)
    }

    async fn mark_seen(&self, id: &ItemId, pages: &[SeenPage], now: Millis) -> Result<()> {
        // Merging a page takes a script some 30 µs, so it gets a few at a time.
        for pages in pages.chunks(64) {
            let mut script = self.on_line(id, |scripts| &scripts.mark_seen);
            script.key(self.keys(id).slice(slice_of(now)));
            pages.iter().for_each(|page| {
                script.arg(page.page).arg(page.to_bytes());
            });
            self.run::<()>(script).await?;
        }
        Ok(())
    }

    async fn resolve(
        &self,
        id: &ItemId,
        tickets: &[(UserId, Number)],
        now: Millis,
    ) -> Result<Vec<Standing>> {
        let mut script = self.on_line(id, |scripts| &scripts.resolve);
        script.key(self.keys(id).slice(slice_of(now))).arg(now).arg(self.hold);
        self.pass_generation(&mut script, id);
        tickets.iter().for_each(|(user, number)| {
            script.arg(user.as_str()).arg(number.0);
        });
        reply::standings(self.run(script).await?)
    }

    async fn reenter(&self, id: &ItemId, entry: &Reentry, now: Millis) -> Result<Standing> {
        let Reentry { user, number, at, expires_at } = entry;
        let mut script = self.on_line(id, |scripts| &scripts.reenter);
        script.arg(now).arg(self.hold).arg(user.as_str()).arg(number.0).arg(at).arg(expires_at);
        self.pass_generation(&mut script, id);
        if self.run(script).await? {
            return Ok(Standing::At(Place::Entered { at: *at, expires_at: *expires_at }));
        }
        let standings = self.resolve(id, &[(user.clone(), *number)], now).await?;
        Ok(standings.first().copied().unwrap_or(Standing::Forgotten))
    }

    async fn leave(
        &self,
        id: &ItemId,
        user: &UserId,
        number: Number,
        now: Millis,
    ) -> Result<Closing> {
        self.close(id, user, number, EndReason::Left, "any", now).await
    }

    async fn complete(
        &self,
        id: &ItemId,
        user: &UserId,
        number: Number,
        reason: EndReason,
        now: Millis,
    ) -> Result<Closing> {
        self.close(id, user, number, reason, "entered", now).await
    }

    async fn note_ended(
        &self,
        id: &ItemId,
        tickets: &[(UserId, Number, EndReason)],
        now: Millis,
    ) -> Result<bool> {
        let mut is_known = true;
        for tickets in tickets.chunks(CHUNK as usize) {
            let mut script = self.on_line(id, |scripts| &scripts.note_ended);
            script.arg(now);
            tickets.iter().for_each(|(user, number, reason)| {
                script.arg(user.as_str()).arg(number.0).arg(reason.code());
            });
            is_known = self.run(script).await?;
        }
        Ok(is_known)
    }

    async fn declare_loss(&self, now: Millis) -> Result<()> {
        self.record_loss(now).await
    }

    async fn counts(&self, ids: &[ItemId]) -> Result<Vec<Counts>> {
        let counts = stream::iter(ids.iter().cloned().map(|id| async move {
            let counted = self.run(self.on_line(&id, |scripts| &scripts.counts)).await?;
            Ok(reply::counts(&id, counted))
        }));
        counts.buffered(ABREAST).try_filter_map(|counts| async { Ok(counts) }).try_collect().await
    }

    async fn begin_term(&self, now: Millis) -> Result<Epoch> {
        self.new_epoch(now).await
    }

    async fn active_lines_of(&self, partition: u16) -> Result<Vec<ItemId>> {
        self.members_of(&PartitionKeys::new(partition).active).await
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
        let call = |first_slice: u64| {
            let mut script = self.on_line(id, |scripts| &scripts.admit);
            script.arg(epoch.0).arg(quota).arg(outbox_max).arg(now).arg(CHUNK).arg(first_slice);
            script.arg(spacing);
            script
        };
        let admission = self.with_slices(id, Lookback::Admit, now, call, reply::admission).await;
        admission.map_err(|error| failure::at(epoch, error))
    }

    async fn expire(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<Expiry> {
        let mut script = self.on_line(id, |scripts| &scripts.expire);
        script.arg(epoch.0).arg(now).arg(CHUNK).arg(id.as_str()).arg(self.hold);
        let expiry = self.run(script).await.map(reply::expiry);
        expiry.map_err(|error| failure::at(epoch, error))
    }

    async fn sweep(&self, epoch: Epoch, id: &ItemId, cursor: Number, now: Millis) -> Result<Sweep> {
        let call = |first_slice: u64| {
            let mut script = self.on_line(id, |scripts| &scripts.sweep);
            script.arg(epoch.0).arg(now).arg(cursor.0).arg(CHUNK).arg(first_slice);
            script
        };
        let swept = self.with_slices(id, Lookback::Sweep, now, call, reply::swept).await;
        swept.map_err(|error| failure::at(epoch, error))
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
        let outbox = PartitionKeys::new(partition).outbox;
        let from = after.map_or_else(|| "-".into(), |id| format!("({id}"));
        let mut range = ::redis::cmd("XRANGE");
        range.arg(outbox).arg(from).arg("+").arg("COUNT").arg(limit);
        reply::outbox(self.command(&range).await?)
    }

    async fn outbox_ack(&self, partition: u16, ids: &[String]) -> Result<()> {
        let keys = PartitionKeys::new(partition);
        let mut script = scripts().outbox_ack.prepare_invoke();
        script.key(keys.outbox).key(keys.outbox_events).key(keys.outbox_admissions).arg(ids);
        self.run(script).await
    }

    async fn outbox_len(&self, partition: u16) -> Result<u64> {
        let events = PartitionKeys::new(partition).outbox_events;
        let count: Option<u64> = self.command(::redis::cmd("GET").arg(events)).await?;
        Ok(count.unwrap_or(0))
    }

    async fn settings(&self) -> Result<Settings> {
        Ok(self.revised_settings().await?.0)
    }

    async fn set_settings(
        &self,
        token_count_to_move: Option<u32>,
        tick_ms: Option<u32>,
    ) -> Result<Settings> {
        let given = [("tokenCountToMove", token_count_to_move), ("tickMs", tick_ms)];
        let given: Vec<(&str, u32)> =
            given.into_iter().filter_map(|(field, value)| Some((field, value?))).collect();
        if !given.is_empty() {
            let mut set = scripts().set_settings.prepare_invoke();
            set.key(keys::settings()).arg(&given);
            self.run::<()>(set).await?;
        }
        self.copy_settings_to_partitions().await
    }

    async fn copy_settings(&self) -> Result<()> {
        self.copy_settings_to_partitions().await.map(drop)
    }

    async fn publish_waiting(&self, tickets: u64) -> Result<()> {
        let mut script = scripts().publish_waiting.prepare_invoke();
        script.key(keys::waiting()).arg(tickets).arg(WAITING_RETENTION_MS);
        self.run(script).await
    }

    async fn journal_write(&self, entry: &str) -> Result<()> {
        let mut script = scripts().journal_write.prepare_invoke();
        script.key(keys::journal()).arg(entry).arg(JOURNAL_KEPT);
        self.run(script).await
    }

    async fn journal_read(&self, limit: u32) -> Result<Vec<String>> {
        let last = i64::from(limit.min(JOURNAL_KEPT)) - 1;
        if last < 0 {
            return Ok(Vec::new());
        }
        self.command(::redis::cmd("LRANGE").arg(keys::journal()).arg(0).arg(last)).await
    }

    async fn post_notice(&self, who: &str, text: &str, now: Millis) -> Result<()> {
        let mut script = scripts().post_notice.prepare_invoke();
        script.key(keys::notices()).arg(who).arg(text).arg(now);
        script.arg(now.saturating_sub(NOTICE_KEEP_MS));
        self.run(script).await
    }

    async fn notices(&self, now: Millis) -> Result<Vec<Notice>> {
        let kept = self.command(::redis::cmd("HGETALL").arg(keys::notices())).await?;
        reply::notices(kept, now.saturating_sub(NOTICE_KEEP_MS))
    }

    async fn memory(&self) -> Result<Option<Memory>> {
        let high = self.capacity.limits.memory_high_percent;
        Ok(memory::fullest(&self.link.infos("memory").await?, high))
    }

    async fn server_time(&self) -> Result<Option<Millis>> {
        let (seconds, micros): (u64, u64) = self.link.lease_command(&::redis::cmd("TIME")).await?;
        Ok(Some(seconds * 1000 + micros / 1000))
    }

    async fn ping(&self) -> Result<()> {
        // Asked where the lease is, and worth knowing.
        self.look_at_epoch().await
    }

    fn leases(&self) -> &Leases {
        &self.leases
    }
}
