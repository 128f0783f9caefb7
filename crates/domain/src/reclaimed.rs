//! Waiting numbers at or below the base of a line: the line lost them, and their holders reclaimed them.

use std::collections::BTreeSet;

use roaring::RoaringTreemap;

use crate::Rank;
use crate::liveness::PAGE_NUMBERS;

/// The numbers at or below a line's base that wait. Above the base every number waits that has not
/// departed; at or below it only these do.
#[derive(Debug, Clone, Default)]
pub struct Reclaimed {
    ranks: RoaringTreemap,
    pages: BTreeSet<u64>,
}

impl Reclaimed {
    /// Adds all numbers of `from..=to`.
    pub fn insert_range(&mut self, from: Rank, to: Rank) {
        self.ranks.insert_range(from.0..=to.0);
        self.pages.extend(from.0 / PAGE_NUMBERS..=to.0 / PAGE_NUMBERS);
    }

    /// Adds one rank.
    pub fn insert(&mut self, rank: Rank) {
        self.insert_range(rank, rank);
    }

    /// Removes a number, if it is contained.
    pub fn remove(&mut self, rank: Rank) {
        self.ranks.remove(rank.0);
    }

    /// Returns whether a number waits.
    pub fn contains(&self, rank: Rank) -> bool {
        self.ranks.contains(rank.0)
    }

    /// Counts the waiting numbers below this one.
    pub fn count_below(&self, rank: Rank) -> u64 {
        rank.0.checked_sub(1).map_or(0, |last| self.ranks.rank(last))
    }

    /// Removes the numbers below `front`, which were served.
    pub fn prune_below(&mut self, front: Rank) {
        self.ranks.remove_range(..front.0);
        self.pages = self.pages.split_off(&(front.0 / PAGE_NUMBERS));
    }

    /// Returns how many numbers wait.
    pub fn len(&self) -> u64 {
        self.ranks.len()
    }

    /// Returns whether no number waits.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Returns the liveness pages of these ranks, and possibly some pages between them. Liveness is kept by
    /// number, which is the rank in a first-come line.
    pub fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reclaimed_numbers_are_counted_in_order() {
        let mut reclaimed = Reclaimed::default();
        reclaimed.insert_range(Rank(1 << 40), Rank((1 << 40) + 9));
        reclaimed.insert_range(Rank(7), Rank(7));
        reclaimed.remove(Rank((1 << 40) + 3));
        assert_eq!(reclaimed.len(), 10);
        assert_eq!(reclaimed.count_below(Rank(7)), 0);
        assert_eq!(reclaimed.count_below(Rank((1 << 40) + 5)), 5);
        assert!(reclaimed.contains(Rank(7)) && !reclaimed.contains(Rank((1 << 40) + 3)));
        reclaimed.prune_below(Rank((1 << 40) + 2));
        assert_eq!(reclaimed.len(), 7);
        assert_eq!(reclaimed.pages().collect::<Vec<_>>(), [(1 << 40) / PAGE_NUMBERS]);
    }
}
