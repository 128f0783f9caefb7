//! The bytes a listener holds for requests that have not arrived completely.
//!
//! Without a common limit, memory would be the number of connections times the largest request, and
//! clients control both. The first [`FREE_BYTES`] of a connection are not charged: they fit into
//! the read buffer that every connection has. An ordinary request stays below, so an exhausted
//! budget refuses only large requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a connection that are not charged to the budget, for the head and for the body each.
pub const FREE_BYTES: usize = 4 * 1024;

/// The budget of one listener.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    charged: AtomicUsize,
}

/// Bytes charged to a budget; dropping the reservation releases them.
#[derive(Debug)]
pub(super) struct Reservation {
    budget: Arc<Budget>,
    charged: usize,
}

/// The budget is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the listener holds too many bytes of incomplete requests")]
pub(super) struct OverBudget;

impl Budget {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, charged: AtomicUsize::new(0) })
    }

    fn charge(&self, bytes: usize) -> Result<(), OverBudget> {
        let add = |charged: usize| charged.checked_add(bytes).filter(|sum| *sum <= self.limit);
        let charged = self.charged.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        charged.map(drop).map_err(|_| OverBudget)
    }
}

impl Reservation {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self { budget, charged: 0 }
    }

    /// Returns an empty reservation of the same budget.
    pub(super) fn another(&self) -> Self {
        Self::new(self.budget.clone())
    }

    /// Covers this many bytes, of which [`FREE_BYTES`] are not charged. Never shrinks.
    pub(super) fn cover(&mut self, bytes: usize) -> Result<(), OverBudget> {
        let needed = bytes.saturating_sub(FREE_BYTES);
        if needed > self.charged {
            self.budget.charge(needed - self.charged)?;
            self.charged = needed;
        }
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.charged > 0 {
            self.budget.charged.fetch_sub(self.charged, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_are_free_and_the_rest_is_given_back() {
        let budget = Budget::new(100);
        let mut one = Reservation::new(budget.clone());
        one.cover(FREE_BYTES).unwrap();
        assert_eq!(budget.charged.load(Ordering::Relaxed), 0);
        one.cover(FREE_BYTES + 60).unwrap();
        one.cover(FREE_BYTES + 10).unwrap();
        let mut other = one.another();
        assert_eq!(other.cover(FREE_BYTES + 41), Err(OverBudget));
        other.cover(FREE_BYTES + 40).unwrap();
        drop(one);
        assert_eq!(budget.charged.load(Ordering::Relaxed), 40);
        drop(other);
        assert_eq!(budget.charged.load(Ordering::Relaxed), 0);
    }
}
