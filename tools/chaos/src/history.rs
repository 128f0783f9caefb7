//! The record of a run: one JSON object per line, in any order. All times are Unix milliseconds.

mod call;
mod event;
mod fault;
mod number;
mod opening;

use std::io::{BufRead, Write};

use anyhow::Context;
use serde::{Deserialize, Serialize};

pub use self::call::{Call, Op, Outcome, ReplyFields};
pub(crate) use self::event::committed_at;
pub use self::event::{EventKind, ObservedEvent};
pub use self::fault::{Fault, FaultKind, Term, TermEnd};
pub use self::number::TicketNumber;
pub use self::opening::{
    DrawRecord, IssuedCode, LaneSetup, ObservedDraw, ObservedOpening, PlannedOpening,
};

/// A time in Unix milliseconds.
pub type Millis = u64;

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Entry {
    /// The setup of the run; exactly one.
    Setup(Setup),
    /// A call of a user or an order service, with its outcome.
    Call(Call),
    /// An event received from Kafka.
    Event(ObservedEvent),
    /// The event of an opening, received from Kafka.
    Opened(ObservedOpening),
    /// The public record of a draw, as a pod returned it.
    Draw(ObservedDraw),
    /// An invitation code.
    Code(IssuedCode),
    /// An item version published by the product service.
    Published(PublishedItem),
    /// An injected fault.
    Fault(Fault),
    /// A term of a leader.
    Term(Term),
    /// The state of an item at the end.
    Final(FinalState),
}

/// The setup of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Reproduces the same faults and users.
    pub seed: u64,
    /// When the first user came.
    pub from: Millis,
    /// When the last fault ended.
    pub calm_from: Millis,
    /// When the run ended.
    pub to: Millis,
    /// Duration of the lease.
    pub lease: Millis,
    /// Maximum age of a reply of a pod that was paused or cannot reach Redis.
    #[serde(default = "Setup::default_max_staleness")]
    pub max_staleness: Millis,
    /// Maximum time of an event in the outbox, or of an order on its way, without faults.
    #[serde(default = "Setup::default_max_delivery")]
    pub max_delivery: Millis,
    /// Maximum difference between the clocks of two processes.
    #[serde(default)]
    pub clock_skew: Millis,
    /// Number of users; 0 in simulations.
    #[serde(default)]
    pub users: u64,
    /// The items of the run.
    pub items: Vec<ItemSetup>,
}

impl Setup {
    /// For histories without the field.
    #[must_use]
    pub fn default_max_staleness() -> Millis {
        5_000
    }

    /// For histories without the field: about ten times what a relay needs on a busy machine.
    #[must_use]
    pub fn default_max_delivery() -> Millis {
        3_000
    }
}

/// The fixed properties of an item.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ItemSetup {
    /// Id.
    pub item: String,
    /// Maximum number of entries.
    pub max_active: Option<u64>,
    /// Stock at the beginning.
    pub stock: u64,
    /// Lanes, in addition to the standard lane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<LaneSetup>,
    /// The planned opening, if the item has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<PlannedOpening>,
}

/// A version of an item that the product service published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedItem {
    /// The item.
    pub item: String,
    /// Increases per item.
    pub version: u64,
    /// Published stock.
    pub stock: u64,
    /// When it was published.
    pub at: Millis,
}

/// What an operator saw of an item when all was over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinalState {
    /// The item.
    pub item: String,
    /// The stored version.
    pub version: Option<u64>,
    /// The stored stock.
    pub stock: u64,
    /// Waiting tickets.
    pub waiting: u64,
    /// Entries.
    pub entered: u64,
}

/// A run, grouped by kind of entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// The setup.
    pub setup: Option<Setup>,
    /// By start time.
    pub calls: Vec<Call>,
    /// By topic, partition and offset.
    pub events: Vec<ObservedEvent>,
    /// In commit order.
    pub openings: Vec<ObservedOpening>,
    /// By start time.
    pub draws: Vec<ObservedDraw>,
    /// All invitation codes.
    pub codes: Vec<IssuedCode>,
    /// By version.
    pub published: Vec<PublishedItem>,
    /// By start time.
    pub faults: Vec<Fault>,
    /// By epoch.
    pub terms: Vec<Term>,
    /// One per item.
    pub finals: Vec<FinalState>,
}

impl History {
    /// Reads a history that [`write()`] has written.
    ///
    /// # Errors
    /// If a line is not a valid entry.
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
            Entry::Event(event) => self.events.push(event),
            Entry::Opened(opening) => self.openings.push(opening),
            Entry::Draw(draw) => self.draws.push(draw),
            Entry::Code(code) => self.codes.push(code),
            Entry::Published(item) => self.published.push(item),
            Entry::Fault(fault) => self.faults.push(fault),
            Entry::Term(term) => self.terms.push(term),
            Entry::Final(end) => self.finals.push(end),
        }
    }

    fn sort(&mut self) {
        self.calls.sort_by_key(|call| call.from);
        self.events.sort_by_key(|event| (event.event, event.partition, event.offset));
        self.openings.sort_by(|one, other| one.sequence.cmp(&other.sequence));
        self.draws.sort_by_key(|draw| draw.from);
        self.published.sort_by_key(|item| item.version);
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

/// Writes one entry.
///
/// # Errors
/// If the file cannot be written.
pub fn write(to: &mut impl Write, entry: &Entry) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *to, entry)?;
    to.write_all(b"\n")?;
    Ok(())
}
