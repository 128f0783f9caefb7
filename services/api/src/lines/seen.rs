//! Who was seen. A mark is one atomic bit: thousands of polls per second note themselves without
//! a lock, and the store hears of all of them together, every few seconds.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use daegi_domain::liveness::{PAGE_NUMBERS, SeenPage, place};
use daegi_domain::{Number, Reclaimed};

const WORDS: usize = PAGE_NUMBERS as usize / 64;

/// The pages of the numbers that are in the line now. Pages are carried over from view to view,
/// so that a mark made on an old view is not lost.
#[derive(Default)]
pub(crate) struct Pages {
    first: u64,
    pages: Vec<Arc<Page>>,
    /// Those of people who were lost once and wait below the line's base, in order.
    below: Vec<Arc<Page>>,
}

/// The marks of one page since the last flush.
pub(crate) struct Page {
    index: u64,
    words: [AtomicU64; WORDS],
}

/// Marks that have no place on the pages of the line.
#[derive(Default)]
pub(crate) struct Marks {
    /// People below the frontier who still wait, because they came back.
    outside: Mutex<HashSet<Number>>,
    /// Pages the line has left behind, to be flushed once more.
    left: Mutex<Vec<Arc<Page>>>,
    /// Held during a flush: whoever waits for it knows that no mark is on its way.
    pub(super) flushing: tokio::sync::Mutex<()>,
}

/// Marks on their way to the store, and where they came from.
pub(super) struct Taken {
    pub(super) pages: Vec<SeenPage>,
    from: Vec<Arc<Page>>,
    outside: HashSet<Number>,
}

impl Pages {
    /// Pages for the line from `frontier` to `tail`, one more for those who join next, and those
    /// of the people who were `reclaimed`.
    pub(super) fn moved_to(
        old: &Arc<Self>,
        reclaimed: &Reclaimed,
        frontier: Number,
        tail: Number,
    ) -> Arc<Self> {
        let first = frontier.0 / PAGE_NUMBERS;
        let end = (tail.0 / PAGE_NUMBERS + 2).max(first + 1);
        let below = || reclaimed.pages().filter(|page| *page < first);
        let is_same = (first, end) == (old.first, old.first + old.pages.len() as u64);
        if is_same && below().eq(old.below.iter().map(|page| page.index)) {
            return Arc::clone(old);
        }
        let page = |index| old.page(index).cloned().unwrap_or_else(|| Arc::new(Page::new(index)));
        Arc::new(Self {
            first,
            pages: (first..end).map(page).collect(),
            below: below().map(page).collect(),
        })
    }

    /// Marks a number; false if it is not on these pages.
    pub(super) fn mark(&self, number: Number) -> bool {
        let page = self.page(number.0 / PAGE_NUMBERS);
        page.map(|page| page.mark(number)).is_some()
    }

    fn page(&self, index: u64) -> Option<&Arc<Page>> {
        match index.checked_sub(self.first) {
            Some(at) => self.pages.get(usize::try_from(at).ok()?),
            None => {
                let found = self.below.binary_search_by_key(&index, |page| page.index);
                found.ok().map(|at| &self.below[at])
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Page>> {
        self.below.iter().chain(&self.pages)
    }
}

impl Page {
    fn new(index: u64) -> Self {
        Self { index, words: [const { AtomicU64::new(0) }; WORDS] }
    }

    /// Looks before it writes: most polls of a second find their bit set, and reading leaves the
    /// cache line with everybody else.
    fn mark(&self, number: Number) {
        let (word, bit) = place(number);
        let word = &self.words[word];
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    fn take(&self) -> Option<SeenPage> {
        let is_marked = |word: &AtomicU64| word.load(Ordering::Relaxed) != 0;
        self.words.iter().any(is_marked).then(|| {
            let mut taken = SeenPage::new(self.index);
            for (to, from) in taken.words.iter_mut().zip(&self.words) {
                *to = from.swap(0, Ordering::Relaxed);
            }
            taken
        })
    }

    fn put_back(&self, taken: &SeenPage) {
        for (to, from) in self.words.iter().zip(taken.words.iter()) {
            to.fetch_or(*from, Ordering::Relaxed);
        }
    }
}

impl Marks {
    /// Marks a number that is on none of the line's pages.
    pub(super) fn outside(&self, number: Number) {
        lock(&self.outside).insert(number);
    }

    /// Notes the pages that `new` does not carry on.
    pub(super) fn leave(&self, old: &Pages, new: &Pages) {
        let is_left = |page: &&Arc<Page>| new.page(page.index).is_none();
        lock(&self.left).extend(old.all().filter(is_left).cloned());
    }

    /// Takes all marks.
    pub(super) fn take(&self, pages: &Pages) -> Taken {
        let left = std::mem::take(&mut *lock(&self.left));
        let outside = std::mem::take(&mut *lock(&self.outside));
        let all = left.into_iter().chain(pages.all().cloned());
        let (mut seen, from): (Vec<_>, Vec<_>) =
            all.filter_map(|page| Some((page.take()?, page))).unzip();
        seen.extend(SeenPage::of(outside.iter().copied()));
        Taken { pages: seen, from, outside }
    }

    /// Gives marks back that the store did not take.
    pub(super) fn put_back(&self, taken: Taken, pages: &Pages) {
        for (page, seen) in taken.from.iter().zip(&taken.pages) {
            page.put_back(seen);
        }
        let left = |page: &Arc<Page>| pages.page(page.index).is_none();
        lock(&self.left).extend(taken.from.into_iter().filter(left));
        lock(&self.outside).extend(taken.outside);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: u64 = PAGE_NUMBERS;

    fn pages(frontier: u64, tail: u64) -> Arc<Pages> {
        moved(&Arc::default(), frontier, tail)
    }

    fn moved(old: &Arc<Pages>, frontier: u64, tail: u64) -> Arc<Pages> {
        Pages::moved_to(old, &Reclaimed::default(), Number(frontier), Number(tail))
    }

    fn numbers(taken: &Taken) -> Vec<u64> {
        let all = |page: &SeenPage| {
            let (first, page) = (page.page * P, page.clone());
            (first..first + P).filter(move |n| page.has(Number(*n)))
        };
        taken.pages.iter().flat_map(all).collect()
    }

    #[test]
    fn a_mark_on_an_old_view_is_not_lost() {
        let (marks, old) = (Marks::default(), pages(3 * P, 5 * P));
        let new = moved(&old, 4 * P + 7, 6 * P);
        marks.leave(&old, &new);
        assert!(old.mark(Number(3 * P + 1)) && old.mark(Number(4 * P + 9)));
        assert!(new.mark(Number(6 * P)));
        let taken = marks.take(&new);
        assert_eq!(numbers(&taken), [3 * P + 1, 4 * P + 9, 6 * P]);
        assert!(marks.take(&new).pages.is_empty(), "each mark is taken once");
    }

    #[test]
    fn marks_the_store_did_not_take_are_taken_again() {
        let (marks, old) = (Marks::default(), pages(P, P));
        old.mark(Number(P + 3));
        marks.outside(Number(5));
        let taken = marks.take(&old);
        let new = moved(&old, 9 * P, 9 * P);
        marks.put_back(taken, &new);
        assert_eq!(numbers(&marks.take(&new)), [P + 3, 5]);
    }

    #[test]
    fn there_is_room_for_those_who_join_next_and_none_for_the_rest() {
        let pages = pages(3 * P + 5, 3 * P + 4);
        assert!(pages.mark(Number(3 * P)) && pages.mark(Number(4 * P)));
        assert!(!pages.mark(Number(3 * P - 1)) && !pages.mark(Number(5 * P)));
        assert!(Arc::ptr_eq(&pages, &moved(&pages, 3 * P + 9, 3 * P + 9)));
    }

    #[test]
    fn people_who_were_lost_once_are_seen_without_a_lock_like_everybody() {
        let (marks, mut reclaimed) = (Marks::default(), Reclaimed::default());
        reclaimed.add(Number(2 * P), Number(3 * P + 1));
        let (frontier, tail) = (Number(900 * P), Number(900 * P));
        let old = Pages::moved_to(&Arc::default(), &reclaimed, frontier, tail);
        assert!(old.mark(Number(2 * P + 5)) && old.mark(Number(3 * P)) && old.mark(frontier));
        assert!(!old.mark(Number(4 * P)));
        reclaimed.forget_below(Number(3 * P));
        let new = Pages::moved_to(&old, &reclaimed, frontier, tail);
        marks.leave(&old, &new);
        assert_eq!(numbers(&marks.take(&new)), [2 * P + 5, 3 * P, 900 * P]);
    }
}
