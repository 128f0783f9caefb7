//! Invitation codes: signed texts that let their holder into a lane.

use crate::Millis;

/// A verified invitation code, as the store counts its uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Invitation {
    /// Identifies the code within its item.
    pub id: u64,
    /// How many users may join with it.
    pub uses: u32,
    /// When it expires.
    pub expires_at: Millis,
}
