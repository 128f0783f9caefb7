//! What all lines look like at one moment. Made for pages that ask every second and for a thousand
//! lines: a picture is taken once for everybody, while they look at the one before.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use daegi_domain::line_rules::line_state;
use daegi_domain::{Item, ItemId, ItemName, LineState, Millis, Settings};
use daegi_store::Counts;
use serde::Serialize;
use tokio::time::Instant;

use super::processes::Processes;
use super::{Admin, Answer, within};
use crate::leader::outbox_pending;

/// A picture younger than this is as good as a new one.
const FRESH: Duration = Duration::from_millis(700);

/// A picture older than this is shown to nobody.
const OLD: Duration = Duration::from_millis(2_500);

/// How long a picture may take: it is thousands of calls where there are a thousand lines.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the lines look like at one moment.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) at: Millis,
    pub(super) settings: Settings,
    pub(super) outbox_pending: u64,
    pub(super) store_memory: Option<StoreMemory>,
    pub(super) processes: Processes,
    pub(super) totals: Totals,
    pub(super) lines: Vec<LineView>,
}

/// How full the store's fullest server is.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoreMemory {
    used_bytes: u64,
    /// 0 without a limit.
    limit_bytes: u64,
    /// Whether new tickets are refused.
    full: bool,
}

/// A line in a table.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LineView {
    pub(super) item_id: ItemId,
    pub(super) item_name: ItemName,
    pub(super) line_state: LineState,
    pub(super) waiting_count: u64,
    pub(super) entered_count: u64,
    pub(super) remain_count: u32,
    /// Over the last half minute; null while this replica does not know yet.
    pub(super) admitted_per_second: Option<f64>,
    /// Until somebody who joins now is let in; null while nobody can say.
    pub(super) eta_seconds: Option<u64>,
}

/// All lines together.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Totals {
    lines: usize,
    open: usize,
    paused: usize,
    sold_out: usize,
    disabled: usize,
    recovering: usize,
    held: usize,
    waiting: u64,
    entered: u64,
    admitted_per_second: f64,
}

/// The latest picture, and the right to take the next.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    wall: Mutex<Wall>,
    painting: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Wall {
    latest: Option<(Instant, Arc<Picture>)>,
    /// How many changes operators have made here.
    changes: u64,
}

impl Pictures {
    /// An operator has changed something and is to see it: what was taken before is worthless.
    pub(super) fn outdated(&self) {
        let mut wall = self.wall();
        wall.latest = None;
        wall.changes += 1;
    }

    fn latest(&self) -> Option<(Duration, Arc<Picture>)> {
        let wall = self.wall();
        wall.latest.as_ref().map(|(at, picture)| (at.elapsed(), Arc::clone(picture)))
    }

    fn changes(&self) -> u64 {
        self.wall().changes
    }

    /// Shows a picture, unless something was changed since it was begun.
    fn hang(&self, picture: &Arc<Picture>, changes: u64) {
        let mut wall = self.wall();
        if wall.changes == changes {
            wall.latest = Some((Instant::now(), Arc::clone(picture)));
        }
    }

    fn wall(&self) -> MutexGuard<'_, Wall> {
        // Nothing that can panic happens while it is locked.
        self.wall.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admin {
    /// A picture that is fresh enough. Whoever asks for one that is not quite gets it all the
    /// same, and the next one is taken meanwhile: nobody who watches waits for a thousand lines.
    pub(super) async fn picture(self: &Arc<Self>) -> Answer<Arc<Picture>> {
        match self.pictures.latest() {
            Some((age, picture)) if age < FRESH => Ok(picture),
            Some((age, picture)) if age < OLD => {
                let admin = Arc::clone(self);
                self.tasks.spawn(async move { admin.paint_ahead().await });
                Ok(picture)
            }
            _ => self.repaint().await,
        }
    }

    /// Takes a picture for those who look next, unless somebody is at it. If that fails, they are
    /// told when the latest one is too old.
    async fn paint_ahead(&self) {
        if let Ok(_one_at_a_time) = self.pictures.painting.try_lock() {
            let _ = self.paint().await;
        }
    }

    /// Takes a picture, after whoever is at it.
    async fn repaint(&self) -> Answer<Arc<Picture>> {
        let _one_at_a_time = self.pictures.painting.lock().await;
        self.paint().await
    }

    /// Takes a picture, unless there is one that is fresh.
    async fn paint(&self) -> Answer<Arc<Picture>> {
        if let Some((_, picture)) = self.pictures.latest().filter(|(age, _)| *age < FRESH) {
            return Ok(picture);
        }
        let changes = self.pictures.changes();
        let picture = Arc::new(within(PATIENCE, self.take_picture()).await?);
        self.pictures.hang(&picture, changes);
        Ok(picture)
    }

    async fn take_picture(&self) -> daegi_store::Result<Picture> {
        let lines = async {
            let items = self.store.items().await?;
            let ids: Vec<_> = items.iter().map(|item| item.id.clone()).collect();
            Ok((items, self.store.counts(&ids).await?))
        };
        let at = self.clock.now_ms();
        let ((items, counts), settings, outbox_pending, notices, memory) = tokio::try_join!(
            lines,
            self.store.settings(),
            outbox_pending(&self.store),
            self.store.notices(at),
            self.store.memory(),
        )?;
        let store_memory = memory.map(|memory| StoreMemory {
            used_bytes: memory.used,
            limit_bytes: memory.limit,
            full: memory.is_high(),
        });
        // Both come sorted by id; an item that was removed in between has no counts.
        let mut counts = counts.into_iter().peekable();
        let lines: Vec<_> = items
            .into_iter()
            .filter_map(|item| {
                let count = counts.next_if(|count| count.item == item.id)?;
                Some(self.line_view(item, &count, &settings, at))
            })
            .collect();
        let totals = Totals::of(&lines);
        let processes = Processes::of(notices);
        Ok(Picture { at, settings, outbox_pending, store_memory, processes, totals, lines })
    }

    fn line_view(&self, item: Item, counts: &Counts, settings: &Settings, at: Millis) -> LineView {
        let line_state = line_state(&item, counts.front_is_above_base(), settings, at);
        let waiting_count = counts.waiting + counts.returning;
        let speed = self.lookout.admitted_per_second(&item.id, counts.totals.admitted, at);
        LineView {
            eta_seconds: eta(line_state, waiting_count, speed),
            admitted_per_second: speed,
            item_id: item.id,
            item_name: item.name,
            line_state,
            waiting_count,
            entered_count: counts.entered,
            remain_count: item.stock,
        }
    }
}

/// How long somebody waits who joins now.
pub(super) fn eta(state: LineState, waiting: u64, speed: Option<f64>) -> Option<u64> {
    let speed = speed.filter(|speed| *speed > 0.0 && state == LineState::Open)?;
    Some((waiting as f64 / speed).ceil() as u64)
}

impl Totals {
    fn of(lines: &[LineView]) -> Self {
        let mut totals = Self { lines: lines.len(), ..Self::default() };
        for line in lines {
            *match line.line_state {
                LineState::Open => &mut totals.open,
                LineState::Paused => &mut totals.paused,
                LineState::SoldOut => &mut totals.sold_out,
                LineState::Disabled => &mut totals.disabled,
                LineState::Recovering => &mut totals.recovering,
                LineState::Held => &mut totals.held,
            } += 1;
            totals.waiting += line.waiting_count;
            totals.entered += line.entered_count;
            totals.admitted_per_second += line.admitted_per_second.unwrap_or(0.0);
        }
        totals
    }
}
