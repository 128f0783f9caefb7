//! The permutation of a cohort: a balanced Feistel network with cycle walking.

use std::ops::Range;

use super::siphash::SipKey;
use crate::{Number, Rank};

pub(super) const ROUNDS: u8 = 12;

/// The numbers that were in the lobby when the line opened, and their random order.
///
/// Maps the interval of the cohort onto itself and every other number to the equal rank. So ranks and numbers
/// share one space, and tickets after the cohort are served in order of arrival.
///
/// A rank costs 150 ns to 650 ns, depending on the size, and needs no memory; for many ranks there is
/// [`RankTable`](super::RankTable). The value has 72 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cohort {
    first: Number,
    size: u64,
    seed: [u8; 32],
    key: SipKey,
    /// Bits of one half of the Feistel network, 1 to 32.
    half_bits: u32,
}

impl Cohort {
    /// Returns the cohort of the numbers `first … first + size − 1`. It may be empty.
    #[must_use]
    pub fn new(first: Number, size: u64, seed: [u8; 32]) -> Self {
        let key = SipKey::from_seed(&seed);
        Self { first, size, seed, key, half_bits: half_bits(size) }
    }

    /// The lowest number of the cohort.
    #[must_use]
    pub fn first(&self) -> Number {
        self.first
    }

    /// How many numbers the cohort has, departed ones included.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The seed of the draw.
    #[must_use]
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// Returns whether a number is in the cohort.
    #[must_use]
    pub fn contains(&self, number: Number) -> bool {
        self.index(number.0).is_some()
    }

    /// Returns the numbers of the cohort, which are also its ranks.
    #[must_use]
    pub fn numbers(&self) -> Range<u64> {
        self.first.0..self.first.0.saturating_add(self.size)
    }

    /// Returns the rank of a number: permuted inside the cohort, equal to the number outside.
    #[must_use]
    pub fn rank(&self, number: Number) -> Rank {
        let drawn = self.cohort_rank(number);
        drawn.map_or(number.rank(), |rank| Rank(self.first.0 + rank - 1))
    }

    /// Returns the number that has a rank: the inverse of [`Cohort::rank`].
    #[must_use]
    pub fn number(&self, rank: Rank) -> Number {
        match self.index(rank.0) {
            Some(index) => Number(self.first.0 + self.permute_back(index)),
            None => Number(rank.0),
        }
    }

    /// Returns the place of a number in the drawn order, from 1. Returns `None` if the number is outside the
    /// cohort.
    #[must_use]
    pub fn cohort_rank(&self, number: Number) -> Option<u64> {
        let index = self.index(number.0)?;
        Some(self.permute(index, |round, half| self.round(round, half)) + 1)
    }

    pub(super) fn index(&self, value: u64) -> Option<u64> {
        value.checked_sub(self.first.0).filter(|index| *index < self.size)
    }

    /// Applies the network with this round function until the result is below the size. It is a permutation of
    /// at most four times as many values (sizes of 1 excepted), so that fewer than four applications are
    /// expected.
    #[inline]
    pub(super) fn permute(&self, index: u64, function: impl Fn(u8, u64) -> u64) -> u64 {
        let mut value = index;
        loop {
            let (mut left, mut right) = self.split(value);
            for round in 0..ROUNDS {
                (left, right) = (right, left ^ function(round, right));
            }
            value = (left << self.half_bits) | right;
            if value < self.size {
                return value;
            }
        }
    }

    fn permute_back(&self, index: u64) -> u64 {
        let mut value = index;
        loop {
            let (mut left, mut right) = self.split(value);
            for round in (0..ROUNDS).rev() {
                (left, right) = (right ^ self.round(round, left), left);
            }
            value = (left << self.half_bits) | right;
            if value < self.size {
                return value;
            }
        }
    }

    fn split(&self, value: u64) -> (u64, u64) {
        (value >> self.half_bits, value & self.half_mask())
    }

    pub(super) fn half_bits(&self) -> u32 {
        self.half_bits
    }

    /// Returns the value of the round function: less than 2 to the power of `half_bits`.
    pub(super) fn round(&self, round: u8, half: u64) -> u64 {
        self.key.hash(round, half) & self.half_mask()
    }

    fn half_mask(&self) -> u64 {
        (1 << self.half_bits) - 1
    }
}

/// Returns `max(1, ceil(ceil(log2 size) / 2))`.
fn half_bits(size: u64) -> u32 {
    let bits = u64::BITS - size.saturating_sub(1).leading_zeros();
    bits.div_ceil(2).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIRST: Number = Number(7_000_000);

    fn cohort(size: u64) -> Cohort {
        Cohort::new(FIRST, size, [9; 32])
    }

    #[test]
    fn ranks_are_a_permutation_of_the_cohort() {
        for size in (0..70).chain([100, 255, 256, 257, 1000, 1024, 1025, 5000, 65_536, 65_537]) {
            let cohort = cohort(size);
            let mut taken = vec![false; usize::try_from(size).unwrap()];
            for number in cohort.numbers().map(Number) {
                let rank = cohort.rank(number);
                let place = usize::try_from(rank.0 - FIRST.0).unwrap();
                assert!(!taken[place], "{rank} is taken twice, size {size}");
                taken[place] = true;
                assert_eq!(cohort.number(rank), number, "size {size}");
                assert_eq!(cohort.cohort_rank(number), Some(rank.0 - FIRST.0 + 1));
            }
            assert!(taken.into_iter().all(|taken| taken), "size {size}");
        }
    }

    #[test]
    fn numbers_outside_the_cohort_keep_their_order() {
        for size in [0, 1, 16, 17] {
            let cohort = cohort(size);
            for number in [0, FIRST.0 - 1, FIRST.0 + size, Number::MAX.0, u64::MAX].map(Number) {
                assert!(!cohort.contains(number));
                assert_eq!(cohort.rank(number), Rank(number.0));
                assert_eq!(cohort.number(Rank(number.0)), number);
                assert_eq!(cohort.cohort_rank(number), None);
            }
        }
    }

    #[test]
    fn a_cohort_of_one_has_rank_zero() {
        assert_eq!(cohort(1).rank(FIRST), Rank(FIRST.0));
    }

    #[test]
    fn half_of_the_bits_cover_the_size_and_at_most_four_times_as_much() {
        assert_eq!([0, 1, 2, 3, 4].map(half_bits), [1; 5]);
        assert_eq!([5, 16, 17, 64, 65, 256, 257].map(half_bits), [2, 2, 3, 3, 4, 4, 5]);
        assert_eq!([1 << 48, u64::MAX].map(half_bits), [24, 32]);
        for size in 2..10_000_u64 {
            let domain = 1 << (2 * half_bits(size));
            assert!(size <= domain && domain < 4 * size, "{size}");
        }
    }

    #[test]
    fn seeds_give_different_orders() {
        let order = |seed: u8| {
            let cohort = Cohort::new(FIRST, 100, [seed; 32]);
            cohort.numbers().map(|number| cohort.rank(Number(number)).0).collect::<Vec<_>>()
        };
        assert_ne!(order(1), order(2));
        assert_ne!(order(1), cohort(100).numbers().collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn the_number_of_a_rank_is_the_number(
            seed: [u8; 32],
            first in 0..Number::MAX.0 / 2,
            size in 1..=1_u64 << 20,
            place: prop::sample::Index,
        ) {
            let cohort = Cohort::new(Number(first), size, seed);
            let index = place.index(usize::try_from(size).unwrap()) as u64;
            let number = Number(first + index);
            let rank = cohort.rank(number);
            prop_assert!(cohort.numbers().contains(&rank.0));
            prop_assert_eq!(cohort.number(rank), number);
            prop_assert_eq!(cohort.rank(cohort.number(Rank(number.0))), Rank(number.0));
        }
    }
}
