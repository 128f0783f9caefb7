use daegi_domain::{Item, Lane};

/// The outcome of a change of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOutcome {
    /// The item was created.
    Created(Item),
    /// The item existed and was changed.
    Updated(Item),
    /// The change is not newer than the stored item; nothing changed.
    Stale,
}

/// The outcome of an item update of a product service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemUpdateOutcome {
    /// The item was created.
    Created,
    /// The item existed and was changed.
    Updated,
    /// The item was removed, and its line ended.
    Removed,
    /// The item to remove did not exist.
    NotFound,
    /// The update is not newer than the stored item; nothing changed.
    Stale,
    /// The settings of items are not restored yet; nothing changed.
    Held,
}

/// How far a store has replayed a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReplayState {
    /// No replay was started, or its result was lost.
    NotStarted,
    /// A consumer is reading the log from its start.
    InProgress,
    /// The log was read to its end once.
    Complete,
}

/// The outcome of a change of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyUpdateOutcome {
    /// The policy was replaced.
    Changed(Box<Item>),
    /// The item was changed meanwhile: read it again.
    Conflict,
    /// Tickets are in the line, so that the opening cannot be replaced.
    LineNotEmpty,
    /// This lane has tickets, so that it cannot be renamed, moved or removed.
    LaneNotEmpty(Lane),
    /// There is no such item.
    NotFound,
}
