//! People who stand below their line's base: it lost them once, and they came back.

use std::collections::BTreeSet;

use roaring::RoaringTreemap;

use crate::Number;
use crate::liveness::PAGE_NUMBERS;

/// The numbers below a line's base that wait. Unlike the line from its base on, where everybody
/// waits who has not departed, only these do.
#[derive(Debug, Clone, Default)]
pub struct Reclaimed {
    numbers: RoaringTreemap,
    pages: BTreeSet<u64>,
}

impl Reclaimed {
    /// Adds all numbers of `from..=to`.
    pub fn add(&mut self, from: Number, to: Number) {
        self.numbers.insert_range(from.0..=to.0);
        self.pages.extend(from.0 / PAGE_NUMBERS..=to.0 / PAGE_NUMBERS);
    }

    /// Takes a number out, if it is there.
    pub fn remove(&mut self, number: Number) {
        self.numbers.remove(number.0);
    }

    /// Whether a number waits.
    pub fn contains(&self, number: Number) -> bool {
        self.numbers.contains(number.0)
    }

    /// How many wait before this number.
    pub fn count_below(&self, number: Number) -> u64 {
        number.0.checked_sub(1).map_or(0, |last| self.numbers.rank(last))
    }

    /// Forgets whoever was served: nobody waits below `front`.
    pub fn forget_below(&mut self, front: Number) {
        self.numbers.remove_range(..front.0);
        self.pages = self.pages.split_off(&(front.0 / PAGE_NUMBERS));
    }

    /// How many wait.
    pub fn len(&self) -> u64 {
        self.numbers.len()
    }

    /// Whether nobody does.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The pages of liveness these numbers are on, perhaps with a few more in between.
    pub fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_came_back_are_counted_in_the_order_of_their_numbers() {
        let mut reclaimed = Reclaimed::default();
        reclaimed.add(Number(1 << 40), Number((1 << 40) + 9));
        reclaimed.add(Number(7), Number(7));
        reclaimed.remove(Number((1 << 40) + 3));
        assert_eq!(reclaimed.len(), 10);
        assert_eq!(reclaimed.count_below(Number(7)), 0);
        assert_eq!(reclaimed.count_below(Number((1 << 40) + 5)), 5);
        assert!(reclaimed.contains(Number(7)) && !reclaimed.contains(Number((1 << 40) + 3)));
        reclaimed.forget_below(Number((1 << 40) + 2));
        assert_eq!(reclaimed.len(), 7);
        assert_eq!(reclaimed.pages().collect::<Vec<_>>(), [(1 << 40) / PAGE_NUMBERS]);
    }
}
