//! The lines this pod has in view. The heart of the api: polls are answered from here and cost
//! the store nothing.
//!
//! | file | what lives there |
//! |---|---|
//! | `lines/line_view.rs` | one line as requests use it: fresh, find, join |
//! | `lines/view.rs` | what was known of a line at one moment, and the exact position in it |
//! | `lines/core.rs` | what the requests and the task of one line share |
//! | `lines/refresh.rs` | the task that keeps a line fresh while anybody asks |
//! | `lines/reader.rs` | reading a line from the store, bit by bit where it is long |
//! | `lines/seen.rs` | who was seen: marks without a lock, flushed every three seconds |
//! | `lines/batch.rs` | many requests, one call: what joins and asks are made of |
//! | `lines/joins.rs`, `lines/asks.rs` | what a batch of each does |
//! | `lines/settings.rs` | the settings of all lines, read once for all of them |
//!
//! A known line is found without a lock. A line nobody asked for during a minute is dropped from
//! here; its task ends when the last request lets go of it. Unknown items leave nothing behind.

mod asks;
mod batch;
mod core;
mod joins;
mod line_view;
mod reader;
mod refresh;
mod seen;
mod settings;
mod view;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use daegi_domain::ItemId;
use daegi_runtime::{Clock, Shutdown};
use daegi_store::SharedStore;
use metrics::gauge;
use tokio::sync::watch;

use self::core::{Context, Core};
use self::reader::Reader;
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
    /// Read on every request, replaced as a whole by whoever holds `loading`.
    ready: ArcSwap<Ready>,
    loading: Mutex<HashMap<ItemId, Loading>>,
}

impl Lines {
    pub(crate) fn new(
        store: SharedStore,
        clock: Clock,
        meters: Arc<Meters>,
        shutdown: &Shutdown,
    ) -> Self {
        let settings = SharedSettings::new(Arc::clone(&store));
        let registry = Arc::new(Registry {
            context: Arc::new(Context { store, clock, settings, meters }),
            shutdown: shutdown.clone(),
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
        let mut loading = match self.0.load_once(id) {
            Ok(line) => return Ok(line),
            Err(loading) => loading,
        };
        let loaded = loading.wait_for(Option::is_some).await;
        // Closed without an answer: the task that loads was ended with the runtime.
        loaded.ok().and_then(|loaded| loaded.clone()).unwrap_or(Err(Error::Slow))
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
        let view = reader.read(id, &self.context).await?.ok_or(Error::ItemNotFound)?;
        let core = Arc::new(Core::new(id.clone(), Arc::clone(&self.context), view));
        let (line, life) = LineView::new(core);
        let registry = Arc::downgrade(self);
        self.shutdown.spawn("api line", life.live(reader, registry));
        Ok(Arc::new(line))
    }

    /// Only with `loading` held. A process that stops keeps nothing: then a line lives exactly as
    /// long as the requests that hold it.
    fn keep(&self, id: &ItemId, line: &Arc<LineView>) {
        if !self.shutdown.token().is_cancelled() {
            let mut ready = Ready::clone(&self.ready.load());
            ready.insert(id.clone(), Arc::clone(line));
            self.replace(ready);
        }
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
