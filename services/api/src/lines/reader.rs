use std::sync::Arc;

use daegi_domain::{Departed, ItemId, LineState, Number};
use daegi_store::{DepartedCursor, LineSnapshot};
use tokio::time::Instant;

use super::View;
use super::core::Context;
use super::seen::Pages;
use crate::error::Result;
use crate::patience::in_time;

/// Reads a line from the store, and remembers how far: departed numbers come once.
///
/// A line with a long history takes several calls. What was read stays read when a later one
/// fails, so that a slow store delays the first view but cannot prevent it.
pub(crate) struct Reader {
    cursor: DepartedCursor,
    base: Number,
    departed: Arc<Departed>,
    pages: Arc<Pages>,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            cursor: DepartedCursor::default(),
            base: Number(0),
            departed: Arc::default(),
            pages: Arc::default(),
        }
    }

    /// The line as it is now; none if there is no such item.
    pub(super) async fn read(&mut self, id: &ItemId, context: &Context) -> Result<Option<View>> {
        let settings = context.settings.now().await?;
        loop {
            let as_of = Instant::now();
            let snapshot = in_time("snapshot", context.store.snapshot(id, self.cursor)).await?;
            let Some(mut line) = snapshot else {
                return Ok(None);
            };
            self.take_departed(&mut line);
            if !line.more {
                self.pages = Pages::moved_to(&self.pages, line.frontier, line.tail);
                return Ok(Some(View {
                    state: LineState::of(&line.item, &settings),
                    settings,
                    departed: Arc::clone(&self.departed),
                    as_of,
                    pages: Arc::clone(&self.pages),
                    line,
                }));
            }
        }
    }

    /// Another base is another line: what departed from the old one says nothing about it.
    fn take_departed(&mut self, line: &mut LineSnapshot) {
        if line.base != self.base {
            self.base = line.base;
            self.departed = Arc::new(Departed::new(line.base));
        }
        self.cursor = line.cursor;
        if self.departed.is_empty() && line.departed.is_empty() {
            return;
        }
        // Views in use keep the old set, so this copies; it is compressed and small.
        let departed = Arc::make_mut(&mut self.departed);
        line.departed.drain(..).for_each(|number| departed.insert(number));
        departed.forget_below(line.frontier);
    }
}
