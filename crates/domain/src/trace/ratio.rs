use std::str::FromStr;

use super::TraceId;

/// The share of traces that is exported. The trace id alone decides, so that every process decides alike; the
/// rule is that of the OpenTelemetry SDKs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRatio(u64);

/// The text is not a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a number from 0 to 1")]
pub struct SampleRatioError;

impl SampleRatio {
    /// Returns whether a trace is exported.
    #[must_use]
    pub fn should_sample(self, trace: TraceId) -> bool {
        // Compares the 63 low bits, shifted by one, with the ratio of 2^63.
        (trace.0 as u64) >> 1 < self.0
    }
}

impl FromStr for SampleRatio {
    type Err = SampleRatioError;

    fn from_str(text: &str) -> Result<Self, SampleRatioError> {
        let share: f64 = text.parse().map_err(|_| SampleRatioError)?;
        if !(0.0..=1.0).contains(&share) {
            return Err(SampleRatioError);
        }
        Ok(Self((share * (1_u64 << 63) as f64) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ItemId, Lane, Number};

    fn sampled(ratio: &str) -> usize {
        let (ratio, item): (SampleRatio, _) = (ratio.parse().unwrap(), ItemId::parse("a").unwrap());
        let traces = (0..10_000).map(|number| TraceId::of(&item, Lane::STANDARD, Number(number)));
        traces.filter(|trace| ratio.should_sample(*trace)).count()
    }

    #[test]
    fn the_sampled_share_is_close_to_the_ratio() {
        assert_eq!((sampled("0"), sampled("1")), (0, 10_000));
        assert!((50..200).contains(&sampled("0.01")), "{}", sampled("0.01"));
        assert!((4_700..5_300).contains(&sampled("0.5")), "{}", sampled("0.5"));
    }

    #[test]
    fn a_ratio_of_1_samples_the_highest_id() {
        assert!("1".parse::<SampleRatio>().unwrap().should_sample(TraceId(u128::MAX)));
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in ["", "-0.1", "1.1", "NaN", "inf", "half"] {
            assert_eq!(bad.parse::<SampleRatio>(), Err(SampleRatioError), "{bad}");
        }
    }
}
