//! One time per key in a hash table of fixed size.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// Slots of one set: a key is in one of them.
const WAYS: usize = 8;

/// A time per key, in nanoseconds since the start of the table. The hash has a random key, so that a client cannot
/// choose which keys share a set. A new key replaces the key of its set with the earliest time.
pub(super) struct TimeTable {
    slots: Box<[Slot]>,
    hasher: RandomState,
    start: Instant,
}

/// A key and its time. They are two integers: if two threads put two keys into one slot at the same time, one of them
/// gets the other's time, which is harmless.
#[derive(Debug, Default)]
struct Slot {
    /// The hash of the key; 0 for none.
    key: AtomicU64,
    time: AtomicU64,
}

impl TimeTable {
    /// A table for about this many active keys, 16 bytes each.
    pub(super) fn new(keys: usize) -> Self {
        let sets = keys.div_ceil(WAYS).next_power_of_two();
        let slots = std::iter::repeat_with(Slot::default).take(sets * WAYS).collect();
        Self { slots, hasher: RandomState::new(), start: Instant::now() }
    }

    /// Returns the nanoseconds since the start of the table.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the time of a key; 0 if the table does not have the key.
    pub(super) fn get(&self, key: impl Hash) -> u64 {
        let hash = self.hash(key);
        self.find(hash).map_or(0, |slot| slot.time.load(Ordering::Relaxed))
    }

    /// Replaces the time of a key, 0 for a new one, by the result of `next`. Returns the time before.
    ///
    /// # Errors
    /// If `next` returns `None`, with the time, which then does not change.
    pub(super) fn update(
        &self,
        key: impl Hash,
        next: impl FnMut(u64) -> Option<u64>,
    ) -> Result<u64, u64> {
        let hash = self.hash(key);
        let slot = self.find(hash).unwrap_or_else(|| self.replace_earliest(hash));
        slot.time.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
    }

    fn hash(&self, key: impl Hash) -> u64 {
        self.hasher.hash_one(key).max(1)
    }

    fn find(&self, hash: u64) -> Option<&Slot> {
        self.set(hash).iter().find(|slot| slot.key.load(Ordering::Relaxed) == hash)
    }

    fn replace_earliest(&self, hash: u64) -> &Slot {
        let set = self.set(hash);
        let earliest = set.iter().min_by_key(|slot| slot.time.load(Ordering::Relaxed));
        let slot = earliest.unwrap_or(&set[0]);
        slot.key.store(hash, Ordering::Relaxed);
        slot.time.store(0, Ordering::Relaxed);
        slot
    }

    fn set(&self, hash: u64) -> &[Slot] {
        let sets = self.slots.len() / WAYS;
        // The table has a power of two of sets and fits into memory.
        let first = (hash as usize & (sets - 1)) * WAYS;
        &self.slots[first..first + WAYS]
    }

    /// Returns how many keys the table can have.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the size of the table in bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        std::mem::size_of_val(&*self.slots)
    }
}
