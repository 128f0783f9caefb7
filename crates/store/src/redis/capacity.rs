//! Whether the store accepts new tickets: memory usage and waiting tickets.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use daegi_domain::StoreLimits;

use super::{RedisStore, keys};
use crate::types::{JoinRefusal, MemoryUsage};
use crate::{AdminStore, Result};

/// Interval between two measurements while joins arrive: 1 s. Joins may exceed a limit for this long.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// The limits of a store and the last measurement.
#[derive(Debug)]
pub(super) struct Capacity {
    pub(super) limits: StoreLimits,
    measured: Mutex<Measured>,
}

#[derive(Debug, Default)]
struct Measured {
    at: Option<Instant>,
    refusal: Option<JoinRefusal>,
}

impl Capacity {
    pub(super) fn new(limits: StoreLimits) -> Self {
        Self { limits, measured: Mutex::default() }
    }

    fn measured(&self) -> std::sync::MutexGuard<'_, Measured> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` to one caller per [`REFRESH_INTERVAL`], which then refreshes the measurement.
    /// The other callers use the old one meanwhile.
    fn is_due(&self) -> bool {
        let mut measured = self.measured();
        let due = measured.at.is_none_or(|at| at.elapsed() >= REFRESH_INTERVAL);
        if due {
            measured.at = Some(Instant::now());
        }
        due
    }

    fn refusal(&self, memory: Option<MemoryUsage>, waiting: u64) -> Option<JoinRefusal> {
        if memory.is_some_and(|memory| memory.is_high()) {
            Some(JoinRefusal::StoreFull)
        } else if waiting >= self.limits.max_waiting {
            Some(JoinRefusal::LineFull)
        } else {
            None
        }
    }
}

impl RedisStore {
    /// Returns why the store refuses new tickets by the last measurement, or `None` if it accepts
    /// them.
    pub(super) fn new_ticket_refusal(&self) -> Option<JoinRefusal> {
        self.capacity.measured().refusal
    }

    /// Measures at most once per [`REFRESH_INTERVAL`]. If a server does not reply, the last measurement
    /// stays. Joins run this concurrently with their script, because two calls in a row would double the
    /// time until a join fails while the server does not reply.
    pub(super) async fn measure_if_due(&self) {
        if self.capacity.is_due()
            && let Ok((memory, waiting)) = tokio::try_join!(self.memory(), self.published_waiting())
        {
            self.capacity.measured().refusal = self.capacity.refusal(memory, waiting);
        }
    }

    async fn published_waiting(&self) -> Result<u64> {
        let count: Option<u64> = self.command(::redis::cmd("GET").arg(keys::waiting())).await?;
        Ok(count.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_waiting_tickets_have_a_limit() {
        let limits = StoreLimits { max_waiting: 10, ..StoreLimits::default() };
        let capacity = Capacity::new(limits);
        let memory = |used, limit| Some(MemoryUsage { used, limit, high: limit * 9 / 10 });
        assert_eq!(capacity.refusal(None, 9), None);
        assert_eq!(capacity.refusal(None, 10), Some(JoinRefusal::LineFull));
        assert_eq!(capacity.refusal(memory(89, 100), 0), None);
        assert_eq!(capacity.refusal(memory(90, 100), 0), Some(JoinRefusal::StoreFull));
        assert_eq!(capacity.refusal(memory(90, 0), 0), None, "no maxmemory, no limit");
    }

    #[test]
    fn the_measurement_is_refreshed_once_per_interval() {
        let capacity = Capacity::new(StoreLimits::default());
        assert!(capacity.is_due());
        assert!(!capacity.is_due());
    }
}
