//! Linear fit of a size over time.

use std::time::Duration;

/// A fitted line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Growth {
    /// Per second.
    slope: f64,
    /// From the first sample to the last, in seconds.
    length: f64,
    /// Mean of all samples.
    pub(super) mean: f64,
}

impl Growth {
    /// Least squares fit. One sample has no growth.
    pub(super) fn fit(samples: &[(Duration, f64)]) -> Self {
        let (Some((first, _)), Some((last, _))) = (samples.first(), samples.last()) else {
            return Self::default();
        };
        let count = samples.len() as f64;
        let middle = samples.iter().map(|(at, _)| at.as_secs_f64()).sum::<f64>() / count;
        let mean = samples.iter().map(|(_, size)| size).sum::<f64>() / count;
        let (mut covariance, mut variance) = (0.0, 0.0);
        for (at, size) in samples {
            let from_middle = at.as_secs_f64() - middle;
            covariance += from_middle * (size - mean);
            variance += from_middle * from_middle;
        }
        let slope = if variance > 0.0 { covariance / variance } else { 0.0 };
        Self { slope, length: (*last - *first).as_secs_f64(), mean }
    }

    pub(super) fn per_hour(&self) -> f64 {
        self.slope * 3_600.0
    }

    /// Growth from the first sample to the last.
    pub(super) fn risen(&self) -> f64 {
        self.slope * self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(size: impl Fn(f64) -> f64) -> Vec<(Duration, f64)> {
        (0..=10).map(|n| (Duration::from_secs(n * 60), size(n as f64))).collect()
    }

    #[test]
    fn a_trend_is_found_and_noise_is_not() {
        let growth = Growth::fit(&samples(|n| 100.0 + n));
        assert!((growth.per_hour() - 60.0).abs() < 1e-9, "{growth:?}");
        assert!((growth.risen() - 10.0).abs() < 1e-9, "{growth:?}");
        assert!((growth.mean - 105.0).abs() < 1e-9, "{growth:?}");
        let noise = Growth::fit(&samples(|n| if n % 2.0 == 0.0 { 100.0 } else { 101.0 }));
        assert!(noise.per_hour().abs() < 1.0, "{noise:?}");
        assert!(Growth::fit(&[]).per_hour().abs() < 1e-9);
        assert!(Growth::fit(&samples(|_| 7.0)[..1]).per_hour().abs() < 1e-9);
    }
}
