//! Marks of seen tickets. A mark is one atomic bit, so that thousands of polls per second set theirs
//! without a lock. The refresher flushes all marks of a line together, every 3 s.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use daegi_domain::liveness::{LivenessPage, PAGE_NUMBERS, bit_index};
use daegi_domain::{Number, Reclaimed};

const WORDS: usize = PAGE_NUMBERS as usize / 64;

/// Pages of the numbers that are in the line now. Successive cached lines share their pages, so that
/// a mark set through an old one is not lost.
#[derive(Default)]
pub(crate) struct MarkPages {
    first: u64,
    pages: Vec<Arc<MarkPage>>,
    /// Pages of reclaimed numbers below the line's base, in order.
    reclaimed_pages: Vec<Arc<MarkPage>>,
}

/// The marks of one page since the last flush.
pub(crate) struct MarkPage {
    index: u64,
    words: [AtomicU64; WORDS],
}

/// Marks that are not on the pages of the line.
#[derive(Default)]
pub(crate) struct PendingMarks {
    /// Numbers below the frontier that wait because they returned.
    unpaged: Mutex<HashSet<Number>>,
    /// Pages below the line's frontier, to be flushed one last time.
    retired: Mutex<Vec<Arc<MarkPage>>>,
    /// Held during a flush. After acquiring it, no mark is in flight.
    pub(super) flushing: tokio::sync::Mutex<()>,
}

/// Marks that are being written to the store, with their origin.
pub(super) struct DrainedMarks {
    pub(super) pages: Vec<LivenessPage>,
    from: Vec<Arc<MarkPage>>,
    unpaged: HashSet<Number>,
}

impl MarkPages {
    /// Returns the pages from `frontier` to `tail`, one more for the next joins, and those of the
    /// `reclaimed` numbers. Reuses the pages of `old`.
    pub(super) fn advanced_to(
        old: &Arc<Self>,
        reclaimed: &Reclaimed,
        frontier: Number,
        tail: Number,
    ) -> Arc<Self> {
        let first = frontier.0 / PAGE_NUMBERS;
        let end = (tail.0 / PAGE_NUMBERS + 2).max(first + 1);
        let reclaimed_pages = || reclaimed.pages().filter(|page| *page < first);
        let is_same = (first, end) == (old.first, old.first + old.pages.len() as u64);
        if is_same && reclaimed_pages().eq(old.reclaimed_pages.iter().map(|page| page.index)) {
            return Arc::clone(old);
        }
        let page =
            |index| old.page(index).cloned().unwrap_or_else(|| Arc::new(MarkPage::new(index)));
        Arc::new(Self {
            first,
            pages: (first..end).map(page).collect(),
            reclaimed_pages: reclaimed_pages().map(page).collect(),
        })
    }

    /// Marks a number. Returns false if it is not on these pages.
    pub(super) fn mark(&self, number: Number) -> bool {
        let page = self.page(number.0 / PAGE_NUMBERS);
        page.map(|page| page.mark(number)).is_some()
    }

    fn page(&self, index: u64) -> Option<&Arc<MarkPage>> {
        match index.checked_sub(self.first) {
            Some(at) => self.pages.get(usize::try_from(at).ok()?),
            None => {
                let found = self.reclaimed_pages.binary_search_by_key(&index, |page| page.index);
                found.ok().map(|at| &self.reclaimed_pages[at])
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<MarkPage>> {
        self.reclaimed_pages.iter().chain(&self.pages)
    }
}

impl MarkPage {
    fn new(index: u64) -> Self {
        Self { index, words: [const { AtomicU64::new(0) }; WORDS] }
    }

    /// Sets the bit of a number. Reads it first, because most polls find it set, and a read does
    /// not invalidate the cache line of other cores.
    fn mark(&self, number: Number) {
        let (word, bit) = bit_index(number);
        let word = &self.words[word];
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Removes and returns the marks, or `None` if there are none.
    fn take(&self) -> Option<LivenessPage> {
        let is_marked = |word: &AtomicU64| word.load(Ordering::Relaxed) != 0;
        self.words.iter().any(is_marked).then(|| {
            let mut taken = LivenessPage::new(self.index);
            for (to, from) in taken.words.iter_mut().zip(&self.words) {
                *to = from.swap(0, Ordering::Relaxed);
            }
            taken
        })
    }

    fn restore(&self, taken: &LivenessPage) {
        for (to, from) in self.words.iter().zip(taken.words.iter()) {
            to.fetch_or(*from, Ordering::Relaxed);
        }
    }
}

impl PendingMarks {
    /// Marks a number that is on none of the line's pages.
    pub(super) fn mark_unpaged(&self, number: Number) {
        lock(&self.unpaged).insert(number);
    }

    /// Keeps, for the next flush, the pages of `old` that `new` lacks.
    pub(super) fn retire_pages(&self, old: &MarkPages, new: &MarkPages) {
        let is_retired = |page: &&Arc<MarkPage>| new.page(page.index).is_none();
        lock(&self.retired).extend(old.all().filter(is_retired).cloned());
    }

    /// Removes and returns all marks.
    pub(super) fn drain(&self, pages: &MarkPages) -> DrainedMarks {
        let retired = std::mem::take(&mut *lock(&self.retired));
        let unpaged = std::mem::take(&mut *lock(&self.unpaged));
        let all = retired.into_iter().chain(pages.all().cloned());
        let (mut seen, from): (Vec<_>, Vec<_>) =
            all.filter_map(|page| Some((page.take()?, page))).unzip();
        seen.extend(LivenessPage::of(unpaged.iter().copied()));
        DrainedMarks { pages: seen, from, unpaged }
    }

    /// Restores marks that could not be written.
    pub(super) fn restore(&self, taken: DrainedMarks, pages: &MarkPages) {
        for (page, seen) in taken.from.iter().zip(&taken.pages) {
            page.restore(seen);
        }
        let retired = |page: &Arc<MarkPage>| pages.page(page.index).is_none();
        lock(&self.retired).extend(taken.from.into_iter().filter(retired));
        lock(&self.unpaged).extend(taken.unpaged);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use daegi_domain::Rank;

    use super::*;

    const P: u64 = PAGE_NUMBERS;

    fn pages(frontier: u64, tail: u64) -> Arc<MarkPages> {
        moved(&Arc::default(), frontier, tail)
    }

    fn moved(old: &Arc<MarkPages>, frontier: u64, tail: u64) -> Arc<MarkPages> {
        MarkPages::advanced_to(old, &Reclaimed::default(), Number(frontier), Number(tail))
    }

    fn numbers(taken: &DrainedMarks) -> Vec<u64> {
        let all = |page: &LivenessPage| {
            let (first, page) = (page.page * P, page.clone());
            (first..first + P).filter(move |n| page.has(Number(*n)))
        };
        taken.pages.iter().flat_map(all).collect()
    }

    #[test]
    fn a_mark_on_an_old_page_is_not_lost() {
        let (marks, old) = (PendingMarks::default(), pages(3 * P, 5 * P));
        let new = moved(&old, 4 * P + 7, 6 * P);
        marks.retire_pages(&old, &new);
        assert!(old.mark(Number(3 * P + 1)) && old.mark(Number(4 * P + 9)));
        assert!(new.mark(Number(6 * P)));
        let taken = marks.drain(&new);
        assert_eq!(numbers(&taken), [3 * P + 1, 4 * P + 9, 6 * P]);
        assert!(marks.drain(&new).pages.is_empty(), "each mark is drained once");
    }

    #[test]
    fn marks_that_could_not_be_written_are_drained_again() {
        let (marks, old) = (PendingMarks::default(), pages(P, P));
        old.mark(Number(P + 3));
        marks.mark_unpaged(Number(5));
        let taken = marks.drain(&old);
        let new = moved(&old, 9 * P, 9 * P);
        marks.restore(taken, &new);
        assert_eq!(numbers(&marks.drain(&new)), [P + 3, 5]);
    }

    #[test]
    fn pages_cover_the_next_joins_and_no_other_numbers() {
        let pages = pages(3 * P + 5, 3 * P + 4);
        assert!(pages.mark(Number(3 * P)) && pages.mark(Number(4 * P)));
        assert!(!pages.mark(Number(3 * P - 1)) && !pages.mark(Number(5 * P)));
        assert!(Arc::ptr_eq(&pages, &moved(&pages, 3 * P + 9, 3 * P + 9)));
    }

    #[test]
    fn reclaimed_numbers_are_marked_without_a_lock() {
        let (marks, mut reclaimed) = (PendingMarks::default(), Reclaimed::default());
        reclaimed.insert_range(Rank(2 * P), Rank(3 * P + 1));
        let (frontier, tail) = (Number(900 * P), Number(900 * P));
        let old = MarkPages::advanced_to(&Arc::default(), &reclaimed, frontier, tail);
        assert!(old.mark(Number(2 * P + 5)) && old.mark(Number(3 * P)) && old.mark(frontier));
        assert!(!old.mark(Number(4 * P)));
        reclaimed.prune_below(Rank(3 * P));
        let new = MarkPages::advanced_to(&old, &reclaimed, frontier, tail);
        marks.retire_pages(&old, &new);
        assert_eq!(numbers(&marks.drain(&new)), [2 * P + 5, 3 * P, 900 * P]);
    }
}
