use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use daegi_domain::ItemId;
use daegi_store::SharedStore;
use tokio::time::Instant;

use super::recent::RecentCache;
use crate::error::Result;
use crate::patience::in_time;

/// How long an item counts as absent after the store had none: a new item is found after 1 s.
const RETENTION: Duration = Duration::from_secs(1);
/// Absent items per generation of the cache, some 100 bytes each.
const CAPACITY: usize = 16 * 1024;
/// Beyond so many first reads of items within [`RETENTION`], one read of all ids is cheaper.
const MAX_FIRST_READS: u32 = 8;

/// Items that do not exist although requests name them. Random names cost the store a read of all
/// ids per second, not a read per request.
pub(super) struct Absent {
    store: SharedStore,
    absent: RecentCache<ItemId, ()>,
    first_reads: Mutex<FirstReads>,
    ids: tokio::sync::Mutex<Option<(Instant, Arc<HashSet<ItemId>>)>>,
}

/// First reads of items since `began`.
struct FirstReads {
    began: Instant,
    count: u32,
    /// Until when reads are compared with the ids of all items.
    many_until: Instant,
}

impl Absent {
    pub(super) fn new(store: SharedStore) -> Self {
        let began = Instant::now();
        let first_reads = Mutex::new(FirstReads { began, count: 0, many_until: began });
        let absent = RecentCache::new(RETENTION, CAPACITY);
        Self { store, absent, first_reads, ids: tokio::sync::Mutex::default() }
    }

    /// Whether the store had no such item a moment ago.
    pub(super) fn contains(&self, id: &ItemId) -> bool {
        self.absent.get(id).is_some()
    }

    pub(super) fn insert(&self, id: &ItemId) {
        self.absent.insert(id.clone(), ());
    }

    /// Whether the ids of all items rule this one out. Without a flood of first reads they are not
    /// read, and the answer is no.
    pub(super) async fn rules_out(&self, id: &ItemId) -> Result<bool> {
        if id.is_reserved() || !self.count_first_read() {
            return Ok(false);
        }
        Ok(!self.ids().await?.contains(id))
    }

    /// Counts a first read; returns whether there are many.
    fn count_first_read(&self) -> bool {
        let mut reads = self.first_reads.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now >= reads.began + RETENTION {
            (reads.began, reads.count) = (now, 0);
        }
        reads.count = reads.count.saturating_add(1);
        if reads.count > MAX_FIRST_READS {
            reads.many_until = now + RETENTION;
        }
        now < reads.many_until
    }

    /// The ids of all items, read at most once per second. The lock is held during the read, so
    /// that concurrent requests share it.
    async fn ids(&self) -> Result<Arc<HashSet<ItemId>>> {
        let mut known = self.ids.lock().await;
        if let Some((at, ids)) = &*known
            && at.elapsed() < RETENTION
        {
            return Ok(Arc::clone(ids));
        }
        let at = Instant::now();
        let ids = in_time("item_ids", self.store.item_ids()).await?;
        let ids: Arc<HashSet<ItemId>> = Arc::new(ids.into_iter().collect());
        *known = Some((at, Arc::clone(&ids)));
        Ok(ids)
    }
}
