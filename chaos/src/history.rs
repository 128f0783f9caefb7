//! What is written down: one JSON object per line, in any order. All times are Unix milliseconds.

mod call;
mod fault;
mod told;

use std::io::{BufRead, Write};

use anyhow::Context;
use serde::{Deserialize, Serialize};

pub use self::call::{Call, Op, Outcome, Seen};
pub use self::fault::{Ending, Fault, FaultKind, Term};
pub use self::told::{Kind, Told};

/// A moment, in Unix milliseconds.
pub type Millis = u64;

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Entry {
    /// What was run; once.
    Setup(Setup),
    /// What a person or an order service asked, and heard.
    Call(Call),
    /// An event as the order service heard it.
    Told(Told),
    /// What the product service said of an item.
    Announced(Announced),
    /// What the nemesis did.
    Fault(Fault),
    /// Who led.
    Term(Term),
    /// What an operator saw of an item when all was over.
    Final(Final),
}

/// What was run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Brings the same faults and the same people again.
    pub seed: u64,
    /// When people began to come.
    pub from: Millis,
    /// When the last fault was over.
    pub calm: Millis,
    /// When the run ended.
    pub to: Millis,
    /// How long a leader leads without renewing.
    pub lease: Millis,
    /// So old may be what people are told, by a pod that was paused or cannot reach Redis.
    #[serde(default = "Setup::usual_old_news")]
    pub old_news: Millis,
    /// So long may an event be in the outbox, or an order on its way, when nothing is in its way.
    #[serde(default = "Setup::usual_way")]
    pub on_its_way: Millis,
    /// How many people were to come; none where it is left to chance.
    #[serde(default)]
    pub people: u64,
    /// What people waited for.
    pub items: Vec<ItemSetup>,
}

impl Setup {
    /// Of histories that do not say.
    #[must_use]
    pub fn usual_old_news() -> Millis {
        5_000
    }

    /// Of histories that do not say: some ten times what a relay needs on a busy machine.
    #[must_use]
    pub fn usual_way() -> Millis {
        3_000
    }
}

/// What holds for an item throughout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemSetup {
    /// Its id.
    pub item: String,
    /// How many may be inside.
    pub max_active: Option<u64>,
    /// Its stock at the beginning; nobody is let in beyond it.
    pub stock: u64,
}

/// A version of an item that the product service published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Announced {
    /// The item.
    pub item: String,
    /// Grows per item.
    pub version: u64,
    /// Its stock from then on.
    pub stock: u64,
    /// When it was published.
    pub at: Millis,
}

/// What an operator saw of an item when all was over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Final {
    /// The item.
    pub item: String,
    /// The latest version that took effect.
    pub version: Option<u64>,
    /// Its stock.
    pub stock: u64,
    /// How many wait.
    pub waiting: u64,
    /// How many are inside.
    pub entered: u64,
}

/// A run, sorted by what it tells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// What was run.
    pub setup: Option<Setup>,
    /// In the order in which they were made.
    pub calls: Vec<Call>,
    /// In the order of each topic's partitions.
    pub told: Vec<Told>,
    /// In the order of their versions.
    pub announced: Vec<Announced>,
    /// In the order of their beginnings.
    pub faults: Vec<Fault>,
    /// In the order of their epochs.
    pub terms: Vec<Term>,
    /// One per item.
    pub finals: Vec<Final>,
}

impl History {
    /// Reads what [`write()`] has written.
    ///
    /// # Errors
    /// If a line is none of ours.
    pub fn read(lines: impl BufRead) -> anyhow::Result<Self> {
        let mut history = Self::default();
        for (at, line) in lines.lines().enumerate() {
            let entry = serde_json::from_str(&line?).with_context(|| format!("line {}", at + 1))?;
            history.add(entry);
        }
        history.sort();
        Ok(history)
    }

    fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Setup(setup) => self.setup = Some(setup),
            Entry::Call(call) => self.calls.push(call),
            Entry::Told(told) => self.told.push(told),
            Entry::Announced(announced) => self.announced.push(announced),
            Entry::Fault(fault) => self.faults.push(fault),
            Entry::Term(term) => self.terms.push(term),
            Entry::Final(end) => self.finals.push(end),
        }
    }

    fn sort(&mut self) {
        self.calls.sort_by_key(|call| call.from);
        self.told.sort_by_key(|told| (told.event, told.partition, told.offset));
        self.announced.sort_by_key(|announced| announced.version);
        self.faults.sort_by_key(|fault| fault.from);
        self.terms.sort_by_key(|term| term.epoch);
    }
}

impl FromIterator<Entry> for History {
    fn from_iter<T: IntoIterator<Item = Entry>>(entries: T) -> Self {
        let mut history = Self::default();
        entries.into_iter().for_each(|entry| history.add(entry));
        history.sort();
        history
    }
}

/// Writes one line.
///
/// # Errors
/// If the file cannot be written.
pub fn write(to: &mut impl Write, entry: &Entry) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *to, entry)?;
    to.write_all(b"\n")?;
    Ok(())
}
