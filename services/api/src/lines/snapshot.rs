//! The cached copy of a line, the exact position of a number in it, and how it is loaded.

use std::sync::Arc;

use daegi_domain::draw::RankTable;
use daegi_domain::line_rules::line_state;
use daegi_domain::{
    Departed, LineState, Millis, Number, Rank, Reclaimed, Settings, WaitModel, line_rules,
};
use daegi_store::{ChangeCursor, LineSnapshot};
use tokio::time::Instant;

use super::LineKey;
use super::handle::LineContext;
use super::liveness::MarkPages;
use crate::error::{Error, Result};
use crate::timeouts::with_store_timeout;
use crate::wire::PageTexts;

/// A line at one time. Immutable; a refresh replaces it.
pub(crate) struct CachedLine {
    /// The store's snapshot. Its lists of changes are drained into `departed` and `reclaimed`.
    pub(crate) line: LineSnapshot,
    pub(crate) settings: Settings,
    pub(crate) state: LineState,
    /// How long each position waits, if the line moves.
    pub(crate) wait: Option<WaitModel>,
    /// The drawn cohort, whose tickets are served by rank. The rank of any other ticket is its number.
    pub(crate) cohort: Option<Arc<RankTable>>,
    /// Whether the order of the lobby is not drawn yet, so that no ticket has a position.
    is_undecided: bool,
    /// Tickets that are served before the frontier.
    pub(super) ahead: u64,
    /// Departed ranks that still affect positions.
    pub(super) departed: Arc<Departed>,
    /// Ranks that were reclaimed after a data loss and wait below the base.
    pub(super) reclaimed: Arc<Reclaimed>,
    /// When the store was called. All earlier changes are included.
    pub(super) loaded_at: Instant,
    pub(super) pages: Arc<MarkPages>,
    /// The operator's texts on the waiting page.
    pub(crate) page: Arc<PageTexts>,
}

/// What a cached line shows of a number.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// The ticket waits at this position; `None` before the draw.
    Waiting { position: Option<u64> },
    /// The ticket does not wait; only the store knows its state.
    NotWaiting,
    /// The number is above the tail: the store had not issued it when the line was loaded.
    NotIssued,
}

impl CachedLine {
    /// Looks up a number. The position is exact as of `loaded_at`.
    pub(super) fn lookup(&self, number: Number) -> Lookup {
        let (line, rank) = (&self.line, rank_in(self.cohort.as_deref(), number));
        if number > line.tail {
            Lookup::NotIssued
        } else if number < line.valid_from || rank < line.frontier {
            self.lookup_reclaimed(rank)
        } else if self.departed.contains(rank) {
            Lookup::NotWaiting
        } else {
            self.waiting(line_rules::position(self.ahead, line.frontier, &self.departed, rank))
        }
    }

    fn waiting(&self, position: u64) -> Lookup {
        Lookup::Waiting { position: (!self.is_undecided).then_some(position) }
    }

    /// Looks up a rank below the frontier. Only reclaimed tickets wait there.
    fn lookup_reclaimed(&self, rank: Rank) -> Lookup {
        if self.reclaimed.contains(rank) {
            self.waiting(self.line.returning + self.reclaimed.count_below(rank) + 1)
        } else {
            Lookup::NotWaiting
        }
    }

    /// Returns whether this copy lacks the number of a ticket that the store reports as waiting:
    /// the number was reclaimed after this copy was loaded.
    pub(super) fn may_miss_reclaimed(&self, number: Number) -> bool {
        let line = &self.line;
        let rank = rank_in(self.cohort.as_deref(), number);
        (number <= line.base && !self.reclaimed.contains(rank)) || number > line.tail
    }

    /// Returns the earliest time until a position is admitted: after the ticks that admit all earlier
    /// positions at full quota. Returns `None` while the line does not move.
    pub(crate) fn earliest_turn_ms(&self, position: u64) -> Option<u64> {
        let item = &self.line.item;
        let quota = match item.policy.pace.adaptive() {
            // The rate may rise to its maximum, and its quota is 0 in some ticks of a slow line.
            Some(pace) if !line_rules::is_quota_zero(item, &self.settings) => {
                (u64::from(pace.max_per_minute) * u64::from(self.settings.tick_ms)).div_ceil(60_000)
            }
            _ => u64::from(line_rules::quota(item, &self.settings)),
        };
        let moves = self.state == LineState::Open && quota > 0;
        moves.then(|| position.div_ceil(quota.max(1)) * u64::from(self.settings.tick_ms))
    }

    /// Returns the number of waiting tickets, returning ones included.
    pub(crate) fn total_waiting(&self) -> u64 {
        self.line.waiting + self.line.returning
    }

    /// Returns admissions per second, rounded to two decimal places.
    pub(crate) fn per_second(&self, now: Millis) -> f64 {
        (self.line.rate.per_second(now) * 100.0).round() / 100.0
    }

    /// Returns whether a waiting client could observe a difference to `other`.
    pub(super) fn differs_from(&self, other: &Self) -> bool {
        let observable = |cached: &Self| {
            let line = &cached.line;
            let fronts = (line.valid_from, line.front, line.frontier);
            let opening = line.item.policy.opening.as_ref();
            let waiting = (line.returning, cached.departed.len(), cached.reclaimed.len());
            let cohort = cached.cohort.as_deref().map(RankTable::cohort).copied();
            (fronts, waiting, cohort, opening.cloned(), cached.state)
        };
        observable(self) != observable(other) || self.page != other.page
    }
}

/// Loads a line from the store incrementally: each change is transferred once.
///
/// A line with a long history takes several calls. If one of them fails, the earlier ones keep their
/// effect, so that a slow store delays the first load but cannot prevent it.
pub(crate) struct LineLoader {
    cursor: ChangeCursor,
    base: Number,
    cohort: Option<Arc<RankTable>>,
    departed: Arc<Departed>,
    reclaimed: Arc<Reclaimed>,
    pages: Arc<MarkPages>,
}

/// How much of a line is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Everything that positions need, in as many calls as necessary.
    Positions,
    /// What public endpoints show, in one call. Positions are not available.
    Summary,
}

impl LineLoader {
    pub(super) fn new() -> Self {
        Self {
            cursor: ChangeCursor::default(),
            base: Number(0),
            cohort: None,
            departed: Arc::default(),
            reclaimed: Arc::default(),
            pages: Arc::default(),
        }
    }

    /// Loads a line that this pod does not cache. Ids of items that do not exist cost few calls.
    ///
    /// # Errors
    /// [`Error::ItemNotFound`] if there is no such item.
    pub(super) async fn load_first(
        &mut self,
        key: &LineKey,
        context: &LineContext,
        depth: Depth,
    ) -> Result<CachedLine> {
        let loaded = match context.missing_items.rules_out(&key.item).await? {
            true => None,
            false => self.load_depth(key, context, depth).await?,
        };
        if loaded.is_none() {
            context.missing_items.insert(&key.item);
        }
        loaded.ok_or(Error::ItemNotFound)
    }

    /// Loads the line. Returns `None` if there is no such item.
    pub(super) async fn load(
        &mut self,
        key: &LineKey,
        context: &LineContext,
    ) -> Result<Option<CachedLine>> {
        self.load_depth(key, context, Depth::Positions).await
    }

    async fn load_depth(
        &mut self,
        key: &LineKey,
        context: &LineContext,
        depth: Depth,
    ) -> Result<Option<CachedLine>> {
        let settings = context.settings.current().await?;
        loop {
            let loaded_at = Instant::now();
            let snapshot = context.store.snapshot(&key.item, key.lane, self.cursor);
            let Some(mut line) = with_store_timeout("snapshot", snapshot).await? else {
                return Ok(None);
            };
            if self.starts_over(&line) {
                continue;
            }
            self.apply_changes(&mut line);
            if !line.more || depth == Depth::Summary {
                return Ok(Some(self.cached_line(line, settings, loaded_at, context)));
            }
        }
    }

    fn cached_line(
        &mut self,
        line: LineSnapshot,
        settings: Settings,
        loaded_at: Instant,
        context: &LineContext,
    ) -> CachedLine {
        let now = context.clock.now_ms();
        let first = line.lowest_waiting_number();
        self.pages = MarkPages::advanced_to(&self.pages, &self.reclaimed, first, line.tail);
        let state = line_state(&line.item, line.front_is_above_base(), &settings, now);
        CachedLine {
            state,
            wait: WaitModel::new(&line.facts(&settings), now).filter(|_| state == LineState::Open),
            settings,
            cohort: self.cohort.clone(),
            is_undecided: line.lane.is_standard() && line.item.is_draw_undecided(now),
            ahead: line.returning + self.reclaimed.len(),
            departed: Arc::clone(&self.departed),
            reclaimed: Arc::clone(&self.reclaimed),
            loaded_at,
            pages: Arc::clone(&self.pages),
            page: Arc::new(PageTexts::new(&line.item)),
            line,
        }
    }

    /// Follows the line to another cohort, whose ranks make all changes read before useless. Returns whether
    /// the changes must be read again.
    fn starts_over(&mut self, line: &LineSnapshot) -> bool {
        let cohort = line.cohort();
        if cohort.as_ref() == self.cohort.as_deref().map(RankTable::cohort) {
            return false;
        }
        self.cohort = cohort.map(|cohort| Arc::new(RankTable::new(cohort)));
        let has_read = std::mem::take(&mut self.cursor) != ChangeCursor::default();
        self.base = Number(0);
        has_read
    }

    /// Applies the changes of a snapshot. Starts over if the line has another base, or if the store
    /// has pruned changes that this loader has not received.
    fn apply_changes(&mut self, line: &mut LineSnapshot) {
        let received = (line.departed.len() + line.reclaimed.len()) as u64;
        if line.base != self.base || line.cursor.read - received != self.cursor.read {
            self.base = line.base;
            self.departed = Arc::new(Departed::new(line.base.rank()));
            self.reclaimed = Arc::default();
        }
        self.cursor = line.cursor;
        self.apply_reclaimed(line);
        let passed = self.departed.count_between(line.base.rank(), line.frontier);
        if passed == 0 && line.departed.is_empty() {
            return;
        }
        // Cached lines in use share the old set, so this copies it. A snapshot without changes
        // returns above and copies nothing.
        let departed = Arc::make_mut(&mut self.departed);
        let cohort = self.cohort.as_deref();
        for number in line.departed.drain(..).filter(|number| *number > line.base) {
            departed.insert(rank_in(cohort, number));
        }
        departed.prune_below(line.frontier);
    }

    /// Updates the reclaimed numbers. Returns early if the line has none, as nearly every line.
    fn apply_reclaimed(&mut self, line: &mut LineSnapshot) {
        let total = self.reclaimed.len() + line.reclaimed.len() as u64;
        let changes = line.reclaimed.len() + line.departed.len();
        if total == 0 || (changes == 0 && self.reclaimed.count_below(line.front) == 0) {
            return;
        }
        let reclaimed = Arc::make_mut(&mut self.reclaimed);
        let cohort = self.cohort.as_deref();
        line.reclaimed
            .drain(..)
            .for_each(|(from, to)| insert_reclaimed(reclaimed, cohort, from, to));
        line.departed.iter().for_each(|number| reclaimed.remove(rank_in(cohort, *number)));
        reclaimed.prune_below(line.front);
    }
}

/// Returns the rank of a number.
fn rank_in(cohort: Option<&RankTable>, number: Number) -> Rank {
    cohort.map_or(number.rank(), |cohort| cohort.rank(number))
}

/// Inserts the ranks of a range of numbers. Those of the whole cohort are its numbers in another order, so only
/// a part of a cohort is mapped number by number.
fn insert_reclaimed(
    reclaimed: &mut Reclaimed,
    cohort: Option<&RankTable>,
    from: Number,
    to: Number,
) {
    let numbers = cohort.map_or(0..0, |table| table.cohort().numbers());
    let (first, end) = (numbers.start.max(from.0), numbers.end.min(to.0 + 1));
    let is_partial = first < end && (first, end) != (numbers.start, numbers.end);
    let Some(cohort) = cohort.filter(|_| is_partial) else {
        return reclaimed.insert_range(from.rank(), to.rank());
    };
    if from.0 < first {
        reclaimed.insert_range(from.rank(), Rank(first - 1));
    }
    (first..end).for_each(|number| reclaimed.insert(cohort.rank(Number(number))));
    if end <= to.0 {
        reclaimed.insert_range(Rank(end), to.rank());
    }
}
