//! A memory store that counts its calls and can refuse or hang.

use std::collections::HashMap;
use std::future::pending;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use daegi_domain::{ItemId, LivenessPage, Number, Settings};
use daegi_store::{Error, MemoryStore, Result, StoreImage};
use daegi_testkit::{InterceptedStore, StoreInterceptor};

/// How the store behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreMode {
    /// Replies.
    Up,
    /// Fails immediately.
    Refusing,
    /// Never replies.
    Hanging,
}

/// Calls of the leader, which tests make themselves in every mode.
const LEADER_CALLS: [&str; 16] = [
    "begin_term",
    "active_lines",
    "admit",
    "expire",
    "sweep",
    "outbox_read",
    "outbox_ack",
    "outbox_len",
    "set_settings",
    "copy_settings",
    "append_audit",
    "read_audit",
    "put_heartbeat",
    "heartbeats",
    // Calls of operators.
    "change_access",
    "access_events",
];

/// A store that tests observe and control.
#[derive(Debug)]
pub(crate) struct SpyStore(pub(crate) Arc<InterceptedStore<StoreSpy>>);

/// Records every call.
#[derive(Debug)]
pub(crate) struct StoreSpy {
    mode: Mutex<StoreMode>,
    calls: Mutex<HashMap<&'static str, usize>>,
    marked: Mutex<Vec<(ItemId, LivenessPage)>>,
}

impl Deref for SpyStore {
    type Target = InterceptedStore<StoreSpy>;
    fn deref(&self) -> &InterceptedStore<StoreSpy> {
        &self.0
    }
}

impl SpyStore {
    pub(crate) fn new(settings: Settings) -> Self {
        let (mode, store) = (Mutex::new(StoreMode::Up), Arc::new(MemoryStore::new(4, settings)));
        let interceptor = StoreSpy { mode, calls: Mutex::default(), marked: Mutex::default() };
        Self(Arc::new(InterceptedStore { store, interceptor }))
    }

    pub(crate) fn set_mode(&self, mode: StoreMode) {
        *self.interceptor.mode.lock().unwrap() = mode;
    }

    /// Returns a copy of the current data.
    pub(crate) fn image(&self) -> StoreImage {
        self.0.store.image()
    }

    /// Replaces the data by the copy, or by nothing.
    pub(crate) fn restore(&self, replica: Option<StoreImage>) {
        self.0.store.restore(replica);
    }

    /// Returns the number of calls.
    pub(crate) fn calls(&self, call: &str) -> usize {
        self.interceptor.calls.lock().unwrap().get(call).copied().unwrap_or(0)
    }

    /// Returns the number of all calls except those of the leader, and those that a pod makes at fixed intervals: the
    /// check of the block list and the batches of signals.
    pub(crate) fn total_calls(&self) -> usize {
        let calls = self.interceptor.calls.lock().unwrap();
        let is_counted = |call: &&str| !["access_revision", "add_signals"].contains(call);
        calls.iter().filter(|(call, _)| is_counted(call)).map(|(_, count)| count).sum()
    }

    /// Returns how often this number was marked as seen.
    pub(crate) fn marks(&self, item: &ItemId, number: Number) -> usize {
        let page = number.0 / daegi_domain::liveness::PAGE_NUMBERS;
        let is_it = |(id, seen): &&(ItemId, LivenessPage)| {
            id == item && seen.page == page && seen.has(number)
        };
        self.interceptor.marked.lock().unwrap().iter().filter(is_it).count()
    }
}

impl StoreInterceptor for StoreSpy {
    /// Counts a call, and fails or hangs unless the store is up.
    async fn before(&self, call: &'static str) -> Result<()> {
        if LEADER_CALLS.contains(&call) {
            return Ok(());
        }
        *self.calls.lock().unwrap().entry(call).or_default() += 1;
        let mode = *self.mode.lock().unwrap();
        match mode {
            StoreMode::Up => Ok(()),
            StoreMode::Refusing => Err(Error::Unavailable("refused by the test".into())),
            StoreMode::Hanging => pending().await,
        }
    }

    fn marks(&self, id: &ItemId, pages: &[LivenessPage]) {
        let marked = pages.iter().map(|page| (id.clone(), page.clone()));
        self.marked.lock().unwrap().extend(marked);
    }
}
