//! How many more bits a challenge of a source has than one of the other sources.

use std::time::Duration;

use daegi_runtime::http::Source;
use daegi_runtime::rate_limit::RateMeter;

/// Sources that a pod measures at the same time: 2 MiB.
const SOURCES: usize = 128 * 1024;

/// The time in which the count of a source halves: long enough to see a program that spreads its joins over minutes,
/// short enough that a busy network has the base difficulty again some minutes after an opening.
const HALF_LIFE: Duration = Duration::from_secs(60);

/// Measures the challenges of each source.
#[derive(Debug)]
pub(super) struct SourcePressure {
    meter: RateMeter,
    share: f64,
    max_bits: u8,
}

impl SourcePressure {
    /// Measures sources that get `share` challenges without an additional bit, and `max_bits` additional bits at most.
    pub(super) fn new(share: u32, max_bits: u8) -> Self {
        Self { meter: RateMeter::new(SOURCES, HALF_LIFE), share: share.into(), max_bits }
    }

    /// Counts a challenge of a source. Returns its additional bits: how many times the count doubled beyond the share.
    pub(super) fn count(&self, source: Source) -> u8 {
        self.bits(self.meter.count(source))
    }

    /// Returns the additional bits of a source that is over its limit of joins.
    pub(super) fn max_bits(&self) -> u8 {
        self.max_bits
    }

    fn bits(&self, count: f64) -> u8 {
        let doublings = (count / self.share).log2().ceil();
        // A negative number becomes 0.
        (doublings as u8).min(self.max_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_doubling_beyond_the_share_adds_a_bit_up_to_the_maximum() {
        let pressure = SourcePressure::new(100, 3);
        let bits = [0.0, 1.0, 100.0, 101.0, 200.0, 201.0, 400.0, 401.0, 1e9, f64::INFINITY]
            .map(|count| pressure.bits(count));
        assert_eq!(bits, [0, 0, 0, 1, 1, 2, 2, 3, 3, 3]);
        assert_eq!(SourcePressure::new(100, 0).bits(1e9), 0);
    }
}
