use std::sync::Arc;

use daegi_domain::line_rules::line_state;
use daegi_domain::{Departed, ItemId, LineState, Number, Reclaimed};
use daegi_store::{DepartedCursor, LineSnapshot};
use tokio::time::Instant;

use super::View;
use super::core::Context;
use super::seen::Pages;
use crate::error::{Error, Result};
use crate::patience::in_time;
use crate::wire::PageTexts;

/// Reads a line from the store, and remembers how far: what happened in its middle comes once.
///
/// A line with a long history takes several calls. What was read stays read when a later one
/// fails, so that a slow store delays the first view but cannot prevent it.
pub(crate) struct Reader {
    cursor: DepartedCursor,
    base: Number,
    departed: Arc<Departed>,
    reclaimed: Arc<Reclaimed>,
    pages: Arc<Pages>,
}

/// How much of a line is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Everything that positions need, in as many calls as that takes.
    Positions,
    /// What the public sees, in one call. The view knows no positions.
    Summary,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            cursor: DepartedCursor::default(),
            base: Number(0),
            departed: Arc::default(),
            reclaimed: Arc::default(),
            pages: Arc::default(),
        }
    }

    /// The line of an item that this pod does not have in view. Names of items that do not exist
    /// cost few calls.
    pub(super) async fn first_read(
        &mut self,
        id: &ItemId,
        context: &Context,
        depth: Depth,
    ) -> Result<View> {
        let found = match context.absent.rules_out(id).await? {
            true => None,
            false => self.read_to(id, context, depth).await?,
        };
        if found.is_none() {
            context.absent.insert(id);
        }
        found.ok_or(Error::ItemNotFound)
    }

    /// The line as it is now; none if there is no such item.
    pub(super) async fn read(&mut self, id: &ItemId, context: &Context) -> Result<Option<View>> {
        self.read_to(id, context, Depth::Positions).await
    }

    async fn read_to(
        &mut self,
        id: &ItemId,
        context: &Context,
        depth: Depth,
    ) -> Result<Option<View>> {
        let settings = context.settings.now().await?;
        loop {
            let as_of = Instant::now();
            let snapshot = in_time("snapshot", context.store.snapshot(id, self.cursor)).await?;
            let Some(mut line) = snapshot else {
                return Ok(None);
            };
            self.take_changes(&mut line);
            if !line.more || depth == Depth::Summary {
                let (frontier, tail, now) = (line.frontier, line.tail, context.clock.now_ms());
                self.pages = Pages::moved_to(&self.pages, &self.reclaimed, frontier, tail);
                let above = line.front_is_above_base();
                let state = line_state(&line.item, above, &settings, now);
                let moves = state == LineState::Open;
                return Ok(Some(View {
                    state,
                    pace: if moves { line.rate.pace(now) } else { None },
                    settings,
                    ahead: line.returning + self.reclaimed.len(),
                    departed: Arc::clone(&self.departed),
                    reclaimed: Arc::clone(&self.reclaimed),
                    as_of,
                    pages: Arc::clone(&self.pages),
                    page: Arc::new(PageTexts::new(&line.item)),
                    line,
                }));
            }
        }
    }

    /// Another base is another line, and whoever was away for so long that changes were forgotten
    /// begins anew, too.
    fn take_changes(&mut self, line: &mut LineSnapshot) {
        let told = (line.departed.len() + line.reclaimed.len()) as u64;
        if line.base != self.base || line.cursor.read - told != self.cursor.read {
            self.base = line.base;
            self.departed = Arc::new(Departed::new(line.base));
            self.reclaimed = Arc::default();
        }
        self.cursor = line.cursor;
        self.take_reclaimed(line);
        let passed = self.departed.count_between(line.base, line.frontier);
        if passed == 0 && line.departed.is_empty() {
            return;
        }
        // Views in use keep the old set, so this copies, which a look that brings nothing need not.
        let departed = Arc::make_mut(&mut self.departed);
        for number in line.departed.drain(..).filter(|number| *number > line.base) {
            departed.insert(number);
        }
        departed.forget_below(line.frontier);
    }

    /// Most lines have lost nobody and pay for a look at empty sets.
    fn take_reclaimed(&mut self, line: &mut LineSnapshot) {
        let lost = self.reclaimed.len() + line.reclaimed.len() as u64;
        let changes = line.reclaimed.len() + line.departed.len();
        if lost == 0 || (changes == 0 && self.reclaimed.count_below(line.front) == 0) {
            return;
        }
        let reclaimed = Arc::make_mut(&mut self.reclaimed);
        line.reclaimed.drain(..).for_each(|(from, to)| reclaimed.add(from, to));
        line.departed.iter().for_each(|number| reclaimed.remove(*number));
        reclaimed.forget_below(line.front);
    }
}
