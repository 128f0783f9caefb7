//! Liveness: which numbers were seen in which slice of time.
//!
//! Time is divided into slices and numbers into pages; "seen" is one bit per (slice, number). A number
//! counts as seen within the last `n` seconds if its bit is set in any slice that overlaps them. So a limit
//! may last up to one slice (15 s) longer than configured, never shorter.

use crate::{Millis, Number};

/// Length of one slice: 15 s.
pub const SLICE_MS: Millis = 15_000;
/// Numbers per page.
pub const PAGE_NUMBERS: u64 = 8192;
const WORDS: usize = PAGE_NUMBERS as usize / 64;

/// The numbers of one page that were seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivenessPage {
    /// The page's index: number / [`PAGE_NUMBERS`].
    pub page: u64,
    /// One bit per number, least significant first.
    pub words: Box<[u64; WORDS]>,
}

impl LivenessPage {
    /// Returns a page without marks.
    pub fn new(page: u64) -> Self {
        Self { page, words: Box::new([0; WORDS]) }
    }

    /// Returns the pages with marks for these numbers.
    pub fn of(numbers: impl IntoIterator<Item = Number>) -> Vec<Self> {
        let mut pages: Vec<Self> = Vec::new();
        for number in numbers {
            let page = number.0 / PAGE_NUMBERS;
            let index = pages.iter().position(|known| known.page == page).unwrap_or_else(|| {
                pages.push(Self::new(page));
                pages.len() - 1
            });
            pages[index].set(number);
        }
        pages
    }

    /// Marks a number of this page.
    pub fn set(&mut self, number: Number) {
        let (word, bit) = bit_index(number);
        self.words[word] |= bit;
    }

    /// Returns whether a number of this page is marked.
    pub fn has(&self, number: Number) -> bool {
        let (word, bit) = bit_index(number);
        self.words[word] & bit != 0
    }

    /// Adds the marks of another copy of the same page.
    pub fn merge(&mut self, other: &Self) {
        self.words.iter_mut().zip(other.words.iter()).for_each(|(word, other)| *word |= other);
    }

    /// Returns the bits as the store holds them: bytes, lowest number first.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// Returns the index of the word of a number on its page, and its bit in that word.
pub fn bit_index(number: Number) -> (usize, u64) {
    let offset = number.0 % PAGE_NUMBERS;
    ((offset / 64) as usize, 1 << (offset % 64))
}

/// Returns the slice of a time.
pub fn slice_of(now: Millis) -> u64 {
    now / SLICE_MS
}

/// Returns the oldest slice that overlaps the last `seconds`.
pub fn oldest_slice(now: Millis, seconds: u32) -> u64 {
    slice_of(now.saturating_sub(Millis::from(seconds) * 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_kept_per_page_and_merge() {
        let mut pages = LivenessPage::of([Number(5), Number(8191), Number(8192)]);
        assert_eq!(pages.len(), 2);
        assert!(pages[0].has(Number(5)) && pages[0].has(Number(8191)) && !pages[0].has(Number(6)));
        let other = LivenessPage::of([Number(6)]).remove(0);
        pages[0].merge(&other);
        assert!(pages[0].has(Number(6)) && pages[0].has(Number(5)));
        assert_eq!(pages[0].to_bytes()[0], 0b0110_0000);
    }

    #[test]
    fn a_limit_never_lasts_shorter_than_configured() {
        let now = 10 * SLICE_MS + 1;
        assert_eq!(oldest_slice(now, 15), 9);
        assert_eq!(oldest_slice(10 * SLICE_MS, 15), 9);
        assert_eq!(oldest_slice(1000, 60), 0);
    }
}
