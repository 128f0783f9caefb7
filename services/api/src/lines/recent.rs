//! A bounded cache whose entries expire.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Keeps an entry for `retention`, or for less where more than `capacity` others came after it.
///
/// Entries live in two generations of at most `capacity` each. A full or old generation becomes
/// the older one and drops the one before it, so that no call ever scans the entries.
pub(super) struct RecentCache<K, V> {
    retention: Duration,
    capacity: usize,
    generations: Mutex<Generations<K, V>>,
}

struct Generations<K, V> {
    newer: HashMap<K, (Instant, V)>,
    older: HashMap<K, (Instant, V)>,
    began: Instant,
}

impl<K: Eq + Hash, V: Clone> RecentCache<K, V> {
    pub(super) fn new(retention: Duration, capacity: usize) -> Self {
        let (newer, older) = (HashMap::new(), HashMap::new());
        let generations = Mutex::new(Generations { newer, older, began: Instant::now() });
        Self { retention, capacity, generations }
    }

    /// Returns `None` if there is no entry or its retention is over.
    pub(super) fn get(&self, key: &K) -> Option<V> {
        let generations = self.lock();
        let (at, value) = generations.newer.get(key).or_else(|| generations.older.get(key))?;
        (at.elapsed() < self.retention).then(|| value.clone())
    }

    pub(super) fn insert(&self, key: K, value: V) {
        let (mut generations, now) = (self.lock(), Instant::now());
        self.rotate(&mut generations, now);
        generations.newer.insert(key, (now, value));
    }

    /// Returns the entry, or inserts what `make` returns.
    pub(super) fn get_or_insert(&self, key: &K, make: impl FnOnce() -> V) -> V
    where
        K: Clone,
    {
        let (mut generations, now) = (self.lock(), Instant::now());
        let known = generations.newer.get(key).or_else(|| generations.older.get(key));
        if let Some((at, value)) = known
            && *at + self.retention > now
        {
            return value.clone();
        }
        let value = make();
        self.rotate(&mut generations, now);
        generations.newer.insert(key.clone(), (now, value.clone()));
        value
    }

    pub(super) fn remove(&self, key: &K) {
        let mut generations = self.lock();
        generations.newer.remove(key);
        generations.older.remove(key);
    }

    fn rotate(&self, generations: &mut Generations<K, V>, now: Instant) {
        let is_old = generations.began + self.retention <= now;
        if is_old || generations.newer.len() >= self.capacity {
            generations.older = std::mem::take(&mut generations.newer);
            generations.began = now;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Generations<K, V>> {
        // No call panics between two changes that belong together.
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn an_entry_expires_on_time_however_generations_turn() {
        let cache = RecentCache::new(SECOND, 10);
        cache.insert(1, "one");
        tokio::time::sleep(SECOND * 9 / 10).await;
        cache.insert(2, "two");
        assert_eq!((cache.get(&1), cache.get(&2)), (Some("one"), Some("two")));
        tokio::time::sleep(SECOND / 5).await;
        cache.insert(3, "three");
        assert_eq!((cache.get(&1), cache.get(&2)), (None, Some("two")));
        assert_eq!(cache.get_or_insert(&2, || "other"), "two");
        assert_eq!(cache.get_or_insert(&1, || "again"), "again");
        cache.remove(&2);
        assert_eq!(cache.get(&2), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_keys_cannot_make_the_cache_grow() {
        let cache = RecentCache::new(SECOND, 10);
        for n in 0..1000 {
            cache.insert(n, n);
        }
        let generations = cache.lock();
        assert!(generations.newer.len() + generations.older.len() <= 20);
        drop(generations);
        assert_eq!(cache.get(&999), Some(999));
    }
}
