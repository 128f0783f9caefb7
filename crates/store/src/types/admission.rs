use daegi_domain::Number;

/// The number of a leader's term. No term has the number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

/// The result of one call of `admit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Admission {
    /// Tickets admitted.
    pub admitted: u32,
    /// Tickets that missed their turn because their users were absent.
    pub missed: u32,
    /// What is left of the tick's quota.
    pub remaining: u32,
    /// Whether another call in this tick can admit more.
    pub more: bool,
    /// Whether the outbox is full: no ticket is admitted until it drains.
    pub outbox_full: bool,
}

impl Admission {
    /// Adds the result of a further script call of the same `admit`.
    pub(crate) fn add(&mut self, next: Self) {
        *self = Self {
            admitted: self.admitted + next.admitted,
            missed: self.missed + next.missed,
            ..next
        };
    }
}

/// The result of one call of `expire`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expiry {
    /// Entries that expired.
    pub expired: u32,
    /// Tickets that missed their turn and did not return in time.
    pub abandoned: u32,
    /// Whether another call can do more.
    pub more: bool,
    /// Whether the item is still active; if not, it has left the set of active lines. True for lanes
    /// other than the standard one.
    pub active: bool,
    /// Whether no number at or below the line's base waits.
    pub front_is_above_base: bool,
    /// How many lanes the item has besides the standard one: 0 for most items.
    pub lanes: usize,
}

/// The result of one call of `sweep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    /// Tickets removed from the line because their users were absent too long.
    pub abandoned: u32,
    /// The number at which the next call begins; 0 at the end of the line.
    pub cursor: Number,
}
