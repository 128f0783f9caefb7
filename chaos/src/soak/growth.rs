//! How fast something grows: the slope of a line through what was seen.

use std::time::Duration;

/// A line through sizes over time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Growth {
    /// Per second.
    slope: f64,
    /// From the first look to the last, in seconds.
    length: f64,
    /// In the middle of it.
    pub(super) mean: f64,
}

impl Growth {
    /// The line that fits best. One look shows no growth.
    pub(super) fn of(seen: &[(Duration, f64)]) -> Self {
        let (Some((first, _)), Some((last, _))) = (seen.first(), seen.last()) else {
            return Self::default();
        };
        let count = seen.len() as f64;
        let middle = seen.iter().map(|(at, _)| at.as_secs_f64()).sum::<f64>() / count;
        let mean = seen.iter().map(|(_, size)| size).sum::<f64>() / count;
        let (mut up, mut along) = (0.0, 0.0);
        for (at, size) in seen {
            let from_middle = at.as_secs_f64() - middle;
            up += from_middle * (size - mean);
            along += from_middle * from_middle;
        }
        let slope = if along > 0.0 { up / along } else { 0.0 };
        Self { slope, length: (*last - *first).as_secs_f64(), mean }
    }

    pub(super) fn per_hour(&self) -> f64 {
        self.slope * 3_600.0
    }

    /// By how much it has grown while it was looked at.
    pub(super) fn risen(&self) -> f64 {
        self.slope * self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(size: impl Fn(f64) -> f64) -> Vec<(Duration, f64)> {
        (0..=10).map(|n| (Duration::from_secs(n * 60), size(n as f64))).collect()
    }

    #[test]
    fn a_line_is_found_and_noise_around_it_is_not() {
        let growth = Growth::of(&seen(|n| 100.0 + n));
        assert!((growth.per_hour() - 60.0).abs() < 1e-9, "{growth:?}");
        assert!((growth.risen() - 10.0).abs() < 1e-9, "{growth:?}");
        assert!((growth.mean - 105.0).abs() < 1e-9, "{growth:?}");
        let noise = Growth::of(&seen(|n| if n % 2.0 == 0.0 { 100.0 } else { 101.0 }));
        assert!(noise.per_hour().abs() < 1.0, "{noise:?}");
        assert!(Growth::of(&[]).per_hour().abs() < 1e-9);
        assert!(Growth::of(&seen(|_| 7.0)[..1]).per_hour().abs() < 1e-9);
    }
}
