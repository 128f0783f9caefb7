//! The state of a line and the exact position in it.

use roaring::RoaringBitmap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Millis, Number};

/// How long a line that lost data lets nobody in, unless told otherwise: longer than the longest
/// time between two polls, so that everybody who keeps asking is back before anybody is let in.
pub const RECOVERY_HOLD_MS: Millis = 45_000;

/// What applies to every line; changed live, seen by every replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How many people of each line are let in per tick; 0 pauses all lines.
    pub token_count_to_move: u32,
    /// How long a tick lasts.
    pub tick_ms: u32,
}

/// Whether a line moves, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LineState {
    /// People are let in.
    Open,
    /// An operator paused it, or the quota is 0.
    Paused,
    /// Nothing left to sell; the line is kept for a restock.
    SoldOut,
    /// Switched off; the line is kept.
    Disabled,
    /// The store lost data. Whoever keeps asking is put back at their place, and nobody is let in
    /// until everybody had the time to.
    Recovering,
    /// Events of earlier admissions are not published yet and fill the outbox; no ticket is admitted
    /// until it drains. Kafka is unavailable or slow.
    Held,
}

impl Settings {
    /// The longest and shortest tick an operator may set.
    pub const TICK_MS: std::ops::RangeInclusive<u32> = 50..=60_000;
    /// The largest quota an operator may set.
    pub const MAX_TOKEN_COUNT: u32 = 1_000_000;
}

/// The numbers that left the middle of a line, as far as they still matter for a position.
#[derive(Debug, Clone, Default)]
pub struct Departed {
    /// Offsets from this number are kept, so that they fit 32 bits.
    base: u64,
    offsets: RoaringBitmap,
}

impl Departed {
    /// None departed yet of the line whose counter started at `base`.
    pub fn new(base: Number) -> Self {
        Self { base: base.0, offsets: RoaringBitmap::new() }
    }

    /// Adds a number.
    pub fn insert(&mut self, number: Number) {
        self.offsets.insert(self.offset(number));
    }

    /// Whether a number has departed.
    pub fn contains(&self, number: Number) -> bool {
        self.offsets.contains(self.offset(number))
    }

    /// How many departed numbers lie in `[from, to)`.
    pub fn count_between(&self, from: Number, to: Number) -> u64 {
        self.offsets.range_cardinality(self.offset(from)..self.offset(to))
    }

    /// Forgets what the frontier has passed.
    pub fn forget_below(&mut self, frontier: Number) {
        self.offsets.remove_range(..self.offset(frontier));
    }

    /// How many are remembered.
    pub fn len(&self) -> u64 {
        self.offsets.len()
    }

    /// Whether none is remembered.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    fn offset(&self, number: Number) -> u32 {
        u32::try_from(number.0.saturating_sub(self.base)).unwrap_or(u32::MAX)
    }
}

/// The place of a waiting number: everybody in `returning` is served first, then the line from
/// the frontier on, without those who departed. First in line is 1.
pub fn position(returning: u64, frontier: Number, departed: &Departed, number: Number) -> u64 {
    let ahead = number.0.saturating_sub(frontier.0);
    returning + ahead - departed.count_between(frontier, number).min(ahead) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_counts_only_people_who_are_still_there() {
        let mut departed = Departed::new(Number(1000));
        for number in [1002, 1005, 1010] {
            departed.insert(Number(number));
        }
        assert_eq!(position(0, Number(1001), &departed, Number(1001)), 1);
        assert_eq!(position(0, Number(1001), &departed, Number(1003)), 2);
        assert_eq!(position(2, Number(1001), &departed, Number(1011)), 2 + 10 - 3 + 1);
        departed.forget_below(Number(1006));
        assert_eq!(departed.len(), 1);
        assert_eq!(position(0, Number(1006), &departed, Number(1011)), 5);
    }
}
