use std::sync::Arc;

use daegi_domain::rate::Pace;
use daegi_domain::{Departed, LineState, Millis, Number, Reclaimed, Settings, line, line_rules};
use daegi_store::LineSnapshot;
use tokio::time::Instant;

use super::seen::Pages;
use crate::wire::PageTexts;

/// What was known of a line at one moment. Never changed, only replaced.
pub(crate) struct View {
    /// As the store told it, without what happened in its middle.
    pub(crate) line: LineSnapshot,
    pub(crate) settings: Settings,
    pub(crate) state: LineState,
    /// How fast the line moves, if it does and that is known.
    pub(crate) pace: Option<Pace>,
    /// How many are served before the frontier.
    pub(super) ahead: u64,
    /// All that departed and still matter.
    pub(super) departed: Arc<Departed>,
    /// All who were lost once and wait below the base.
    pub(super) reclaimed: Arc<Reclaimed>,
    /// When the store was asked: everything before that moment is in here.
    pub(super) as_of: Instant,
    pub(super) pages: Arc<Pages>,
    /// The operator's texts on the waiting page.
    pub(crate) page: Arc<PageTexts>,
}

/// What a view says about a number.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// In the line, here.
    Waiting { position: u64 },
    /// Not in the line any more; only the store knows what became of it.
    Over,
    /// Not given yet when the store was asked, which may be a moment ago.
    Beyond,
}

impl View {
    pub(super) fn look(&self, number: Number) -> Look {
        let line = &self.line;
        if number < line.valid_from || number < line.frontier {
            self.look_back(number)
        } else if number > line.tail {
            Look::Beyond
        } else if self.departed.contains(number) {
            Look::Over
        } else {
            let position = line::position(self.ahead, line.frontier, &self.departed, number);
            Look::Waiting { position }
        }
    }

    /// The same for a number that is not in the line, unless it was lost once and is back.
    fn look_back(&self, number: Number) -> Look {
        if self.reclaimed.contains(number) {
            let position = self.line.returning + self.reclaimed.count_below(number) + 1;
            Look::Waiting { position }
        } else {
            Look::Over
        }
    }

    /// Whether somebody who waits with this number was lost once, and this view does not know yet.
    pub(super) fn may_have_lost(&self, number: Number) -> bool {
        let line = &self.line;
        (number <= line.base && !self.reclaimed.contains(number)) || number > line.tail
    }

    /// How soon the turn of a position may come: after the ticks that admit everything before it
    /// at full quota. Returns `None` while the line does not move.
    pub(crate) fn earliest_turn_ms(&self, position: u64) -> Option<u64> {
        let quota = u64::from(line_rules::quota(&self.line.item, &self.settings));
        let moves = self.state == LineState::Open && quota > 0;
        moves.then(|| position.div_ceil(quota.max(1)) * u64::from(self.settings.tick_ms))
    }

    /// How many people wait, wherever they stand.
    pub(crate) fn people(&self) -> u64 {
        self.line.waiting + self.line.returning
    }

    /// The line's speed, as exact as makes sense to people.
    pub(crate) fn per_second(&self, now: Millis) -> f64 {
        (self.line.rate.per_second(now) * 100.0).round() / 100.0
    }

    /// Whether a person who waits could be told something else than by `other`.
    pub(super) fn differs_from(&self, other: &Self) -> bool {
        let shown = |view: &Self| {
            let line = &view.line;
            let fronts = (line.valid_from, line.front, line.frontier);
            (fronts, line.returning, view.departed.len(), view.reclaimed.len(), view.state)
        };
        shown(self) != shown(other) || self.page != other.page
    }
}
