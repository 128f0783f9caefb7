use std::str::FromStr;

use super::TraceId;

/// How many of all traces are kept. Decided by the trace's id alone, so that every process decides
/// alike, and as SDKs of OpenTelemetry do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio(u64);

/// Why a text is no ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a number from 0 to 1")]
pub struct RatioError;

impl Ratio {
    /// Whether a trace is kept.
    #[must_use]
    pub fn keeps(self, trace: TraceId) -> bool {
        // The last 63 bits as a number, against their share of all such numbers.
        (trace.0 as u64) >> 1 < self.0
    }
}

impl FromStr for Ratio {
    type Err = RatioError;

    fn from_str(text: &str) -> Result<Self, RatioError> {
        let share: f64 = text.parse().map_err(|_| RatioError)?;
        if !(0.0..=1.0).contains(&share) {
            return Err(RatioError);
        }
        Ok(Self((share * (1_u64 << 63) as f64) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ItemId, Number};

    fn kept(ratio: &str) -> usize {
        let (ratio, item): (Ratio, _) = (ratio.parse().unwrap(), ItemId::parse("a").unwrap());
        let traces = (0..10_000).map(|number| TraceId::of(&item, Number(number)));
        traces.filter(|trace| ratio.keeps(*trace)).count()
    }

    #[test]
    fn about_as_many_are_kept_as_were_asked_for() {
        assert_eq!((kept("0"), kept("1")), (0, 10_000));
        assert!((50..200).contains(&kept("0.01")), "{}", kept("0.01"));
        assert!((4_700..5_300).contains(&kept("0.5")), "{}", kept("0.5"));
    }

    #[test]
    fn the_last_trace_of_all_is_kept_too() {
        assert!("1".parse::<Ratio>().unwrap().keeps(TraceId(u128::MAX)));
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in ["", "-0.1", "1.1", "NaN", "inf", "half"] {
            assert_eq!(bad.parse::<Ratio>(), Err(RatioError), "{bad}");
        }
    }
}
