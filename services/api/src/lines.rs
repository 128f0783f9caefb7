//! The lines this pod has in view. The heart of the api: polls are answered from here and cost
//! the store nothing.
//!
//! | file | what lives there |
//! |---|---|
//! | `lines/line_view.rs` | one line as requests use it: fresh, find, join |
//! | `lines/view.rs` | what was known of a line at one moment, and the exact position in it |
//! | `lines/core.rs` | what the requests and the task of one line share |
//! | `lines/refresh.rs` | the task that keeps a line fresh while waiting tickets ask |
//! | `lines/reader.rs` | reading a line from the store, bit by bit where it is long |
//! | `lines/seen.rs` | who was seen: marks without a lock, flushed every three seconds |
//! | `lines/batch.rs` | many requests, one call: what joins and asks are made of |
//! | `lines/joins.rs`, `lines/asks.rs` | what a batch of each does |
//! | `lines/peeks.rs` | looks of the public at lines that no ticket of this pod needs |
//! | `lines/absent.rs` | items that do not exist |
//! | `lines/answers.rs` | what became of tickets, as the store answered lately |
//! | `lines/recent.rs` | the bounded cache behind these three |
//! | `lines/settings.rs` | the settings of all lines, read once for all of them |
//!
//! A known line is found without a lock. A line that no waiting ticket asked for during a minute is
//! dropped from here, or earlier where a pod has as many as it may; its task ends when the last
//! request drops it. Only joins and tickets bring a line into view.

mod absent;
mod answers;
mod asks;
mod batch;
mod core;
mod joins;
mod line_view;
mod peeks;
mod reader;
mod recent;
mod refresh;
mod seen;
mod settings;
mod view;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use daegi_domain::{ItemId, Number, Ticket};
use daegi_runtime::{Clock, Shutdown};
use daegi_store::{SharedStore, Standing};
use metrics::gauge;
use tokio::sync::watch;

use self::absent::Absent;
use self::answers::Answers;
use self::core::{Context, Core};
use self::peeks::Peeks;
use self::reader::{Depth, Reader};
use self::settings::SharedSettings;
use crate::error::{Error, Result};
use crate::meters::{LINES, Meters};

pub(crate) use self::line_view::LineView;
pub(crate) use self::view::View;

/// All lines in view. Clones share them.
#[derive(Clone)]
pub(crate) struct Lines(Arc<Registry>);

type Ready = HashMap<ItemId, Arc<LineView>>;
/// What everybody who asked first for one item waits for.
type Loading = watch::Receiver<Option<Result<Arc<LineView>>>>;

pub(crate) struct Registry {
    context: Arc<Context>,
    shutdown: Shutdown,
    /// How many lines may be in view.
    max_lines: usize,
    peeks: Peeks,
    /// Read on every request, replaced as a whole by whoever holds `loading`.
    ready: ArcSwap<Ready>,
    loading: Mutex<HashMap<ItemId, Loading>>,
}

impl Lines {
    pub(crate) fn new(
        store: SharedStore,
        clock: Clock,
        meters: Arc<Meters>,
        max_lines: usize,
        shutdown: &Shutdown,
    ) -> Self {
        let settings = SharedSettings::new(Arc::clone(&store));
        let (absent, answers) = (Absent::new(Arc::clone(&store)), Answers::new());
        let context = Arc::new(Context { store, clock, settings, meters, absent, answers });
        let registry = Arc::new(Registry {
            peeks: Peeks::new(Arc::clone(&context), shutdown.tracker().clone()),
            context,
            shutdown: shutdown.clone(),
            max_lines,
            ready: ArcSwap::default(),
            loading: Mutex::default(),
        });
        shutdown.spawn("api lines", Arc::clone(&registry).close_at_shutdown());
        Self(registry)
    }

    /// The line of an item. Many first requests for one item cause one call of the store.
    pub(crate) async fn view(&self, id: &ItemId) -> Result<Arc<LineView>> {
        if let Some(line) = self.known(id) {
            return Ok(line);
        }
        if self.0.context.absent.contains(id) {
            return Err(Error::ItemNotFound);
        }
        let mut loading = match self.0.load_once(id) {
            Ok(line) => return Ok(line),
            Err(loading) => loading,
        };
        let loaded = loading.wait_for(Option::is_some).await;
        // Closed without an answer: the task that loads was ended with the runtime.
        loaded.ok().and_then(|loaded| loaded.clone()).unwrap_or(Err(Error::Slow))
    }

    /// What the public may know of a line, at most a second old. Does not bring it into view.
    pub(crate) async fn peek(&self, id: &ItemId) -> Result<Arc<View>> {
        match self.known(id) {
            Some(line) => line.fresh().await,
            None if self.0.context.absent.contains(id) => Err(Error::ItemNotFound),
            None => self.0.peeks.peek(id).await,
        }
    }

    /// What the store answered lately about a ticket whose item is not there.
    pub(crate) fn answer_without_item(&self, ticket: &Ticket) -> Option<Standing> {
        self.0.context.answers.get_without_item(ticket)
    }

    pub(crate) fn remember_without_item(&self, ticket: &Ticket, standing: Standing) {
        self.0.context.answers.insert_without_item(ticket, standing);
    }

    /// Forgets what the store answered about a ticket, because this pod ends it.
    pub(crate) fn forget_answer(&self, item: &ItemId, number: Number) {
        self.0.context.answers.remove(item, number);
    }

    /// The line of an item, if this pod has it in view.
    pub(crate) fn known(&self, id: &ItemId) -> Option<Arc<LineView>> {
        self.0.ready.load().get(id).cloned()
    }

    /// Drops a line from view.
    pub(crate) fn forget(&self, line: &LineView) {
        self.0.forget(&line.core);
    }
}

impl Registry {
    /// The line if it is there by now, otherwise what to wait for.
    fn load_once(self: &Arc<Self>, id: &ItemId) -> std::result::Result<Arc<LineView>, Loading> {
        let mut loading = self.loading();
        if let Some(line) = self.ready.load().get(id) {
            return Ok(Arc::clone(line));
        }
        let begin = || {
            let (told, wait) = watch::channel(None);
            // On a task of its own: those who wait may all give up, and the entry must go anyway.
            let load = Arc::clone(self).load(id.clone(), told);
            self.shutdown.tracker().spawn(load);
            wait
        };
        Err(loading.entry(id.clone()).or_insert_with(begin).clone())
    }

    async fn load(self: Arc<Self>, id: ItemId, told: watch::Sender<Option<Result<Arc<LineView>>>>) {
        let loaded = self.read(&id).await;
        let mut loading = self.loading();
        if let Ok(line) = &loaded {
            self.keep(&id, line);
        }
        loading.remove(&id);
        told.send_replace(Some(loaded));
    }

    async fn read(self: &Arc<Self>, id: &ItemId) -> Result<Arc<LineView>> {
        let mut reader = Reader::new();
        let view = reader.first_read(id, &self.context, Depth::Positions).await?;
        let core = Arc::new(Core::new(id.clone(), Arc::clone(&self.context), view));
        let (line, life) = LineView::new(core);
        let registry = Arc::downgrade(self);
        self.shutdown.spawn("api line", life.live(reader, registry));
        Ok(Arc::new(line))
    }

    /// Only with `loading` held. A process that stops keeps nothing, nor does one with too many
    /// lines in use: then a line lives exactly as long as the requests that hold it.
    fn keep(&self, id: &ItemId, line: &Arc<LineView>) {
        if self.shutdown.token().is_cancelled() {
            return;
        }
        let mut ready = Ready::clone(&self.ready.load());
        if ready.len() >= self.max_lines && !drop_idlest(&mut ready) {
            return;
        }
        ready.insert(id.clone(), Arc::clone(line));
        self.replace(ready);
    }

    /// Drops this line, but not another one that has taken its place.
    fn forget(&self, core: &Arc<Core>) {
        let _only_writer = self.loading();
        let mut ready = Ready::clone(&self.ready.load());
        let known = ready.get(&core.id).is_some_and(|line| Arc::ptr_eq(&line.core, core));
        if known {
            ready.remove(&core.id);
            self.replace(ready);
        }
    }

    fn replace(&self, ready: Ready) {
        gauge!(LINES).set(ready.len() as f64);
        self.ready.store(Arc::new(ready));
    }

    async fn close_at_shutdown(self: Arc<Self>) {
        self.shutdown.token().cancelled().await;
        let _only_writer = self.loading();
        self.replace(Ready::new());
    }

    fn loading(&self) -> MutexGuard<'_, HashMap<ItemId, Loading>> {
        // Nothing that can panic happens between two changes that belong together.
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops the line that was not asked for the longest; false if all are in use.
fn drop_idlest(ready: &mut Ready) -> bool {
    let unused = ready.values().filter(|line| !line.core.is_wanted());
    let idlest = unused.max_by_key(|line| line.core.idle()).map(|line| line.core.id.clone());
    idlest.is_some_and(|id| ready.remove(&id).is_some())
}
