//! Items that are created if absent when a process starts.
//!
//! A file is either CSV with the header `itemId,itemName,remainCount,waitingQueueEnabled` (the
//! last column may be missing) or a JSON array of objects with the same names and an optional
//! `policy`. What is there already is left alone, so a fleet may start with the same file for
//! ever.

mod parse;

use std::path::{Path, PathBuf};
use std::{fs, io};

use daegi_domain::{ItemChange, ItemId, ItemName, Millis, Policy};
use daegi_runtime::Config;
use daegi_store::{Put, Store};
use serde::Deserialize;

/// Items to create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seeds(Vec<Seed>);

/// A seed and where it stood, for the reader of an error.
type Placed = (String, Seed);

/// One item to create.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Seed {
    /// Its id.
    pub item_id: ItemId,
    /// Its name.
    pub item_name: ItemName,
    /// How many there are to sell.
    pub remain_count: u32,
    /// Whether its line is open.
    #[serde(default = "enabled")]
    pub waiting_queue_enabled: bool,
    /// The rules of its line.
    #[serde(default)]
    pub policy: Policy,
}

/// Why a file of seeds cannot be used, and where.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
pub enum SeedError {
    #[error("{} cannot be read", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}", path.display())]
    In { path: PathBuf, source: Box<SeedError> },
    #[error("{at}: {reason}")]
    Bad { at: String, reason: String },
    #[error("{at}: item {item} is there twice")]
    Twice { at: String, item: ItemId },
}

impl Seeds {
    /// What a configuration asks for; nothing without a file.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn of(config: &Config) -> Result<Self, SeedError> {
        config.seed_items.as_deref().map_or(Ok(Self::default()), Self::read)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn read(path: &Path) -> Result<Self, SeedError> {
        let text = fs::read_to_string(path)
            .map_err(|source| SeedError::Read { path: path.to_owned(), source })?;
        Self::parse(&text)
            .map_err(|source| SeedError::In { path: path.to_owned(), source: Box::new(source) })
    }

    /// Parses CSV, or JSON if the text begins with `[`.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line (CSV) or entry (JSON).
    pub fn parse(text: &str) -> Result<Self, SeedError> {
        let text = text.trim_start_matches('\u{feff}');
        let seeds =
            if text.trim_start().starts_with('[') { parse::json(text)? } else { parse::csv(text)? };
        parse::checked(seeds).map(Self)
    }

    /// Creates what is absent, and says how many items that were.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn plant(&self, store: &dyn Store, now: Millis) -> daegi_store::Result<usize> {
        let mut created = 0;
        for seed in &self.0 {
            created += usize::from(seed.plant(store, now).await?);
        }
        if !self.0.is_empty() {
            tracing::info!(seeds = self.0.len(), created, "seeded");
        }
        Ok(created)
    }
}

impl Seed {
    /// Version 0 is older than anything stored, so this is one atomic "create if absent".
    async fn plant(&self, store: &dyn Store, now: Millis) -> daegi_store::Result<bool> {
        let change = ItemChange {
            id: self.item_id.clone(),
            name: self.item_name.clone(),
            stock: self.remain_count,
            enabled: self.waiting_queue_enabled,
            version: Some(0),
            policy: Some(self.policy.clone()),
        };
        let put = store.put_item(&change, now).await?;
        Ok(matches!(put, Put::Created(_)))
    }
}

fn enabled() -> bool {
    true
}
