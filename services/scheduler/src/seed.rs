//! Items that are created at the start of a process if they are absent.
//!
//! A file is either CSV with the header `itemId,itemName,remainCount,waitingQueueEnabled` (the last
//! column may be missing) or a JSON array of objects with the same names and an optional `policy`.
//! Existing items are not changed, so every replica may start with the same file.

mod parse;

use std::path::{Path, PathBuf};
use std::{fs, io};

use daegi_domain::{ItemChange, ItemId, ItemName, Millis, Policy};
use daegi_runtime::Config;
use daegi_store::{ItemStore, PutOutcome};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Items to create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seeds(Vec<Seed>);

/// What a line or an entry of a file contains, and its position, for error messages.
type Entry<T> = (String, T);

/// One item to create.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Seed {
    /// The item id.
    pub item_id: ItemId,
    /// The item name.
    pub item_name: ItemName,
    /// The stock.
    pub remain_count: u32,
    /// Whether its line is enabled.
    #[serde(default = "enabled")]
    pub waiting_queue_enabled: bool,
    /// The policy of its line.
    #[serde(default)]
    pub policy: Policy,
}

/// Why a file of seeds or of rules cannot be used, and where.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
pub enum SeedError {
    #[error("{} cannot be read", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}", path.display())]
    File { path: PathBuf, source: Box<SeedError> },
    #[error("{at}: {reason}")]
    Invalid { at: String, reason: String },
    #[error("{at}: item {item} is there twice")]
    Duplicate { at: String, item: ItemId },
}

impl Seeds {
    /// Reads the seed file of a configuration; no seeds without a file.
    ///
    /// # Errors
    /// The first error, with its position.
    pub fn from_config(config: &Config) -> Result<Self, SeedError> {
        config.seed_items.as_deref().map_or(Ok(Self::default()), Self::read)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The first error, with its position.
    pub fn read(path: &Path) -> Result<Self, SeedError> {
        let text = fs::read_to_string(path)
            .map_err(|source| SeedError::Read { path: path.to_owned(), source })?;
        Self::parse(&text)
            .map_err(|source| SeedError::File { path: path.to_owned(), source: Box::new(source) })
    }

    /// Parses CSV, or JSON if the text begins with `[`.
    ///
    /// # Errors
    /// The first error, with its line (CSV) or entry (JSON).
    pub fn parse(text: &str) -> Result<Self, SeedError> {
        parse::validate(entries(text)?).map(Self)
    }

    /// Creates absent items. Returns how many were created.
    ///
    /// # Errors
    /// If the store is unavailable.
    pub async fn create_missing(
        &self,
        store: &dyn ItemStore,
        now: Millis,
    ) -> daegi_store::Result<usize> {
        let mut created = 0;
        for seed in &self.0 {
            created += usize::from(seed.create_if_absent(store, now).await?);
        }
        if !self.0.is_empty() {
            tracing::info!(seeds = self.0.len(), created, "seed items created");
        }
        Ok(created)
    }
}

impl Seed {
    /// Creates the item atomically if it is absent: version 0 is older than any stored one.
    async fn create_if_absent(
        &self,
        store: &dyn ItemStore,
        now: Millis,
    ) -> daegi_store::Result<bool> {
        let change = ItemChange {
            id: self.item_id.clone(),
            name: self.item_name.clone(),
            stock: self.remain_count,
            enabled: self.waiting_queue_enabled,
            version: Some(0),
            policy: Some(self.policy.clone()),
        };
        let put = store.put_item(&change, now).await?;
        Ok(matches!(put, PutOutcome::Created(_)))
    }
}

/// Parses the entries of CSV, or of JSON if the text begins with `[`.
pub(crate) fn entries<T: DeserializeOwned>(text: &str) -> Result<Vec<Entry<T>>, SeedError> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('[') { parse::json(text) } else { parse::csv(text) }
}

fn enabled() -> bool {
    true
}
