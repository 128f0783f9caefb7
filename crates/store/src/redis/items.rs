//! Items change in batches: one script call for what product services said about the items of a
//! partition. Partitions go side by side, each in order.

use std::collections::BTreeMap;

use ::redis::Value;
use daegi_domain::{ItemChange, ItemId, ItemNews, LogPosition, Millis, Number, Policy, Said};
use futures_util::future::try_join_all;

use super::keys::PartitionKeys;
use super::scripts::{ScriptInvocation, scripts};
use super::{RedisStore, fields, generation, reply};
use crate::model::{Catalogue, NewsOutcome, Put};
use crate::{CHUNK, Result, partition_of};

/// How many batches of items are on their way at once: enough to keep Redis busy. The others of a
/// large catalogue wait here, not in Redis, where people would wait behind all of them.
pub(super) const BATCHES: usize = 4;

/// Changes of items of one partition, in order.
type Changes<'a> = Vec<(&'a ItemChange, Option<LogPosition>)>;

impl RedisStore {
    pub(super) async fn put_one(&self, change: &ItemChange, now: Millis) -> Result<Put> {
        let partition = partition_of(&change.id, self.partitions);
        let script = self.put_items(partition, &[(change, None)], true, now);
        let reply: Vec<Vec<Value>> = self.run(script).await?;
        reply::put(&change.id, reply.into_iter().next().unwrap_or_default())
    }

    pub(super) async fn apply_all(
        &self,
        news: &[ItemNews],
        now: Millis,
    ) -> Result<Vec<NewsOutcome>> {
        let mut partitions: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (index, news) in news.iter().enumerate() {
            partitions.entry(partition_of(news.item(), self.partitions)).or_default().push(index);
        }
        let applied = partitions.iter().map(|(partition, indices)| async move {
            let mine: Vec<_> = indices.iter().map(|index| &news[*index]).collect();
            self.apply_in_order(*partition, &mine, now).await
        });
        let applied = try_join_all(applied).await?.into_iter().flatten();
        let mut outcomes: Vec<_> = partitions.into_values().flatten().zip(applied).collect();
        outcomes.sort_unstable_by_key(|(index, _)| *index);
        Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
    }

    /// Changes that follow each other go together, removals one by one: they are rare and touch
    /// every key of a line.
    async fn apply_in_order(
        &self,
        partition: u16,
        news: &[&ItemNews],
        now: Millis,
    ) -> Result<Vec<NewsOutcome>> {
        let mut outcomes = Vec::with_capacity(news.len());
        let mut changes = Changes::new();
        for news in news {
            match &news.said {
                Said::Changed(change) => changes.push((change, Some(news.read))),
                Said::Gone { id, version } => {
                    outcomes.extend(self.put_all(partition, &changes, now).await?);
                    changes.clear();
                    outcomes.push(self.remove(id, *version, Some(news.read), now).await?);
                }
            }
        }
        outcomes.extend(self.put_all(partition, &changes, now).await?);
        Ok(outcomes)
    }

    async fn put_all(
        &self,
        partition: u16,
        changes: &Changes<'_>,
        now: Millis,
    ) -> Result<Vec<NewsOutcome>> {
        let mut outcomes = Vec::with_capacity(changes.len());
        for chunk in changes.chunks(CHUNK as usize) {
            let script = self.put_items(partition, chunk, false, now);
            let _turn = self.item_batches.acquire().await;
            let tags: Vec<String> = self.run(script).await?;
            for tag in tags {
                outcomes.push(reply::news_outcome(&tag)?);
            }
        }
        Ok(outcomes)
    }

    fn put_items(
        &self,
        partition: u16,
        changes: &[(&ItemChange, Option<LogPosition>)],
        answer_items: bool,
        now: Millis,
    ) -> ScriptInvocation<'static> {
        let mut script = scripts().put_items.prepare_invoke();
        let keys = PartitionKeys::new(partition);
        script.key(keys.items).key(keys.generation);
        script.arg(u8::from(answer_items)).arg(now);
        script.arg(self.generation_of(partition)).arg(generation::new_id());
        policy(&mut script, Some(&Policy::default()));
        for (change, read) in changes {
            script.key(self.keys(&change.id).item);
            script.arg(change.id.as_str()).arg(change.name.as_str()).arg(change.stock);
            script.arg(u8::from(change.enabled)).arg(fields::optional(change.version));
            position(&mut script, *read);
            policy(&mut script, change.policy.as_ref());
        }
        script
    }

    pub(super) async fn remove(
        &self,
        id: &ItemId,
        version: Option<u64>,
        read: Option<LogPosition>,
        now: Millis,
    ) -> Result<NewsOutcome> {
        let mut script = self.on_line(id, |scripts| &scripts.remove_item);
        script.arg(id.as_str()).arg(fields::optional(version)).arg(Number::base_at(now).0);
        position(&mut script, read);
        reply::news_outcome(&self.run::<String>(script).await?)
    }

    /// What the partition knows that has come least far.
    pub(super) async fn catalogue_of(&self, log: &str) -> Result<Catalogue> {
        let known = self.all_partitions().map(|partition| {
            let mut script = scripts().catalogue.prepare_invoke();
            script.key(partition.catalogues).arg(log);
            self.run::<Option<String>>(script)
        });
        let known = try_join_all(known).await?.into_iter();
        let known = known.map(|state| reply::catalogue(state.as_deref()));
        Ok(known.collect::<Result<Vec<_>>>()?.into_iter().min().unwrap_or(Catalogue::Unread))
    }

    pub(super) async fn catalogue_begun(&self, log: &str) -> Result<()> {
        let noted = self.all_partitions().map(|partition| {
            let mut script = scripts().begin_catalogue.prepare_invoke();
            script.key(partition.catalogues).arg(log);
            self.run::<()>(script)
        });
        try_join_all(noted).await.map(drop)
    }

    pub(super) async fn catalogue_ended(&self, log: &str) -> Result<bool> {
        let noted = self.all_partitions().map(|partition| {
            let mut script = scripts().end_catalogue.prepare_invoke();
            script.key(partition.catalogues).arg(log);
            self.run::<bool>(script)
        });
        Ok(try_join_all(noted).await?.into_iter().all(|noted| noted))
    }
}

fn position(script: &mut ScriptInvocation<'_>, read: Option<LogPosition>) {
    script.arg(fields::optional(read.map(|read| read.offset)));
    script.arg(fields::optional(read.map(|read| read.at)));
}

/// How many words follow, and those: field, value, …
fn policy(script: &mut ScriptInvocation<'_>, policy: Option<&Policy>) {
    let words = policy.map(fields::policy).unwrap_or_default();
    script.arg(2 * words.len());
    words.iter().for_each(|(field, value)| {
        script.arg(*field).arg(value);
    });
}
