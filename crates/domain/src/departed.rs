//! Ranks that left the middle of a line.

use roaring::RoaringBitmap;

use crate::Rank;

/// The ranks that left the middle of a line and still affect positions.
#[derive(Debug, Clone, Default)]
pub struct Departed {
    /// Ranks are stored as offsets from this one, so that they fit 32 bits.
    base: u64,
    offsets: RoaringBitmap,
}

impl Departed {
    /// Returns an empty set for a line whose counter started at `base`.
    pub fn new(base: Rank) -> Self {
        Self { base: base.0, offsets: RoaringBitmap::new() }
    }

    /// Adds a rank.
    pub fn insert(&mut self, rank: Rank) {
        self.offsets.insert(self.offset(rank));
    }

    /// Returns whether a rank has departed.
    pub fn contains(&self, rank: Rank) -> bool {
        self.offsets.contains(self.offset(rank))
    }

    /// Counts the departed ranks in `[from, to)`.
    pub fn count_between(&self, from: Rank, to: Rank) -> u64 {
        self.offsets.range_cardinality(self.offset(from)..self.offset(to))
    }

    /// Removes the ranks that the frontier has passed.
    pub fn prune_below(&mut self, frontier: Rank) {
        self.offsets.remove_range(..self.offset(frontier));
    }

    /// Returns the stored ranks in order.
    pub fn iter(&self) -> impl Iterator<Item = Rank> + '_ {
        self.offsets.iter().map(|offset| Rank(self.base + u64::from(offset)))
    }

    /// Returns how many ranks are stored.
    pub fn len(&self) -> u64 {
        self.offsets.len()
    }

    /// Returns whether no rank is stored.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    fn offset(&self, rank: Rank) -> u32 {
        u32::try_from(rank.0.saturating_sub(self.base)).unwrap_or(u32::MAX)
    }
}
