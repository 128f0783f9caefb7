//! A memory store that counts its calls and can be away, quickly or slowly.

use std::collections::HashMap;
use std::future::pending;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use daegi_domain::{ItemId, Number, SeenPage, Settings};
use daegi_store::{Error, MemoryStore, Replica, Result};
use daegi_testkit::{Gate, Gated};

/// How the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// It answers.
    Up,
    /// It refuses at once.
    Refusing,
    /// It never answers.
    Hanging,
}

/// Leaders' calls, which tests make themselves whatever the mood.
const OF_LEADERS: [&str; 14] = [
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
    "journal_write",
    "journal_read",
    "post_notice",
    "notices",
];

/// What tests see of a store, and do to it.
#[derive(Debug)]
pub(crate) struct Probe(pub(crate) Arc<Gated<Eye>>);

/// Sees every call.
#[derive(Debug)]
pub(crate) struct Eye {
    mood: Mutex<Mood>,
    calls: Mutex<HashMap<&'static str, usize>>,
    marked: Mutex<Vec<(ItemId, SeenPage)>>,
}

impl Deref for Probe {
    type Target = Gated<Eye>;
    fn deref(&self) -> &Gated<Eye> {
        &self.0
    }
}

impl Probe {
    pub(crate) fn new(settings: Settings) -> Self {
        let (mood, store) = (Mutex::new(Mood::Up), Arc::new(MemoryStore::new(4, settings)));
        let gate = Eye { mood, calls: Mutex::default(), marked: Mutex::default() };
        Self(Arc::new(Gated { store, gate }))
    }

    pub(crate) fn set_mood(&self, mood: Mood) {
        *self.gate.mood.lock().unwrap() = mood;
    }

    /// What a replica has that gets nothing from now on.
    pub(crate) fn replica(&self) -> Replica {
        self.0.store.replica()
    }

    /// Loses everything but what the replica has.
    pub(crate) fn lose(&self, replica: Option<Replica>) {
        self.0.store.lose(replica);
    }

    /// How often this was called.
    pub(crate) fn calls(&self, call: &str) -> usize {
        self.gate.calls.lock().unwrap().get(call).copied().unwrap_or(0)
    }

    /// How often the store was told that this number was seen.
    pub(crate) fn marks(&self, item: &ItemId, number: Number) -> usize {
        let page = number.0 / daegi_domain::liveness::PAGE_NUMBERS;
        let is_it =
            |(id, seen): &&(ItemId, SeenPage)| id == item && seen.page == page && seen.has(number);
        self.gate.marked.lock().unwrap().iter().filter(is_it).count()
    }
}

impl Gate for Eye {
    /// Counts a call, and lets it through only if the store is up.
    async fn before(&self, call: &'static str) -> Result<()> {
        if OF_LEADERS.contains(&call) {
            return Ok(());
        }
        *self.calls.lock().unwrap().entry(call).or_default() += 1;
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Up => Ok(()),
            Mood::Refusing => Err(Error::Unavailable("refused, says the test".into())),
            Mood::Hanging => pending().await,
        }
    }

    fn marks(&self, id: &ItemId, pages: &[SeenPage]) {
        let marked = pages.iter().map(|page| (id.clone(), page.clone()));
        self.marked.lock().unwrap().extend(marked);
    }
}
