use daegi_domain::draw::Cohort;
use daegi_domain::{Departed, Drawn, LineEvent, Millis, Rank, Reclaimed};

use crate::memory::line::Line;
use crate::memory::outbox::PendingEvents;
use crate::memory::queues::RankQueue;

/// Opens a line whose opening is due. A draw needs its result.
pub(in crate::memory) fn open_line(
    line: &mut Line,
    drawn: Option<Drawn>,
    now: Millis,
    events: &mut PendingEvents,
) -> bool {
    let needs_draw = line.shared.item.draw.is_some();
    let is_frozen = line.shared.item.draw.as_ref().is_some_and(|draw| draw.cohort.is_some());
    let is_decided = !needs_draw || (is_frozen && drawn.is_some());
    if line.shared.removed || !line.shared.item.is_opening_due(now) || !is_decided {
        return false;
    }
    if let Some(draw) = &mut line.shared.item.draw {
        draw.drawn = drawn;
    }
    if let Some((cohort, drawn)) = line.shared.item.drawn_cohort() {
        line.draw(Cohort::new(cohort.first, cohort.size, drawn.seed));
    }
    line.shared.item.opened_at = Some(now);
    line.bump_revision(now);
    line.bump_control(now);
    events.line = Some(LineEvent::Opened { at: now, draw: line.shared.item.draw.clone() });
    true
}

impl Line {
    /// Orders the cohort by rank.
    pub(super) fn draw(&mut self, cohort: Cohort) {
        self.waiting.draw(cohort);
        let waiting = &self.waiting;
        let (mut departed, mut reclaimed) = (Departed::new(self.base.rank()), Reclaimed::default());
        let numbers = self.departed.iter().map(Rank::number);
        numbers.for_each(|number| departed.insert(waiting.rank_of(number)));
        let below_base = waiting.ranks().filter(|rank| *rank <= self.base.rank());
        below_base.for_each(|rank| reclaimed.insert_range(rank, rank));
        (self.departed, self.reclaimed) = (departed, reclaimed);
    }

    /// Forgets the former opening of an empty line.
    pub(in crate::memory) fn clear_opening(&mut self) {
        (self.shared.item.opened_at, self.shared.item.closed_at, self.shared.item.draw) =
            (None, None, None);
        self.shared.lobby_first = None;
        (self.served_ranks, self.waiting, self.reclaimed) =
            (0, RankQueue::default(), Reclaimed::default());
        self.departed.prune_below(self.tail.next().rank());
    }
}
