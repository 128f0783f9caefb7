//! What is known of the origin: counts of requests and errors, and response times as a histogram.
//!
//! Every pod keeps running totals of what guards reported to it, so that a reader that looks rarely or often sees
//! each request once: the leader takes the difference of two reads. Buckets grow by a quarter, so that a percentile is at
//! most 25 % too high, also after histograms are merged.

use std::collections::VecDeque;

use crate::Millis;

/// How many buckets a histogram has. The last one has no upper bound.
pub const BUCKETS: usize = 51;

/// How long the leader merges what it read, so that one noisy second changes little.
const WINDOW_MS: Millis = 2_000;

/// How many requests a window has at least, if there were so many within [`MAX_WINDOW_MS`]: the percentile of a few
/// requests is that of the slowest one.
const WINDOW_REQUESTS: u64 = 50;
const MAX_WINDOW_MS: Millis = 10_000;

/// Counts of responses by response time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyHistogram([u64; BUCKETS]);

/// Requests that the origin answered, since some begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OriginTotals {
    /// Responses.
    pub requests: u64,
    /// Responses with an error, and requests without a response.
    pub errors: u64,
    /// The response times.
    pub latency: LatencyHistogram,
}

/// The totals that one pod stored, and when. The begin is the start of the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginReport {
    /// The pod.
    pub pod: String,
    /// How many instances reported to the pod within a minute.
    pub instances: u32,
    /// When the pod stored it.
    pub at: Millis,
    /// The totals.
    pub totals: OriginTotals,
}

/// The origin during one window, as the controller sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OriginSignal {
    /// Responses in the window; 0 if the source does not count them.
    pub requests: u64,
    /// The 95th percentile of response times; `None` if there was no response.
    pub p95_ms: Option<u32>,
    /// Errors per thousand responses.
    pub error_permille: u32,
}

/// What the origin did lately, as far as the leader has read it.
#[derive(Debug, Clone, Default)]
pub struct OriginWindow {
    /// When each part was read, how long it lasted, and what it adds; the oldest first.
    parts: VecDeque<(Millis, Millis, OriginTotals)>,
    read_at: Option<Millis>,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

/// Returns the upper bound of a bucket, in milliseconds: 1, 1.25, 1.56, … up to 56 s.
fn upper_bound(bucket: usize) -> f64 {
    1.25_f64.powi(i32::try_from(bucket).unwrap_or(i32::MAX))
}

impl LatencyHistogram {
    /// Counts responses that took at most so many milliseconds.
    pub fn add(&mut self, at_most_ms: f64, count: u64) {
        let bucket = (0..BUCKETS - 1).find(|bucket| at_most_ms <= upper_bound(*bucket));
        let bucket = &mut self.0[bucket.unwrap_or(BUCKETS - 1)];
        *bucket = bucket.saturating_add(count);
    }

    /// Returns the upper bound and the count of each bucket that is not empty.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let filled = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bucket, count)| (upper_bound(bucket), *count))
    }

    /// Returns how many responses were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the response time that 95 % did not exceed, in whole milliseconds. `None` for an empty histogram.
    #[must_use]
    pub fn p95_ms(&self) -> Option<u32> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = total as f64 * 0.95;
        let mut below = 0.0;
        for (bucket, count) in self.0.iter().enumerate() {
            let count = *count as f64;
            if count > 0.0 && below + count >= rank {
                let lower = if bucket == 0 { 0.0 } else { upper_bound(bucket - 1) };
                let share = ((rank - below) / count).clamp(0.0, 1.0);
                let value = lower + (upper_bound(bucket) - lower) * share;
                return Some(value.ceil() as u32);
            }
            below += count;
        }
        None
    }

    fn combine(&self, other: &Self, with: fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|bucket| with(self.0[bucket], other.0[bucket])))
    }
}

impl OriginTotals {
    /// Returns the sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.combine(other, u64::saturating_add)
    }

    /// Returns what was added since `earlier`. `None` if these totals do not continue it: the pod started again.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let continues = self.requests >= earlier.requests && self.errors >= earlier.errors;
        continues.then(|| self.combine(earlier, u64::saturating_sub))
    }

    fn combine(&self, other: &Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            requests: with(self.requests, other.requests),
            errors: with(self.errors, other.errors),
            latency: self.latency.combine(&other.latency, with),
        }
    }

    /// Returns the signal of a window with these totals.
    #[must_use]
    pub fn signal(&self) -> OriginSignal {
        OriginSignal {
            requests: self.requests,
            p95_ms: self.latency.p95_ms(),
            error_permille: permille(self.errors, self.requests),
        }
    }
}

fn permille(part: u64, whole: u64) -> u32 {
    let share = part.saturating_mul(1000).checked_div(whole).unwrap_or(0);
    u32::try_from(share.min(1000)).unwrap_or(1000)
}

impl OriginSignal {
    /// Returns the worse of two sources. One of them may be a probe without counts.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            p95_ms: self.p95_ms.max(other.p95_ms),
            error_permille: self.error_permille.max(other.error_permille),
        }
    }
}

impl OriginWindow {
    /// Adds what the origin did since the last call, and returns the signal of the window with its length in
    /// milliseconds. `None` in the first call, and while no source reports.
    pub fn add(
        &mut self,
        added: Option<OriginTotals>,
        now: Millis,
    ) -> Option<(OriginSignal, Millis)> {
        let read_at = self.read_at.replace(now)?;
        self.parts.push_back((now, now.saturating_sub(read_at), added?));
        self.parts.retain(|(at, _, _)| now.saturating_sub(*at) < MAX_WINDOW_MS);
        let (mut length, mut sum) = (0, OriginTotals::default());
        for (_, lasted, part) in self.parts.iter().rev() {
            if length >= WINDOW_MS && sum.requests >= WINDOW_REQUESTS {
                break;
            }
            (length, sum) = (length + lasted, sum.plus(part));
        }
        Some((sum.signal(), length))
    }
}

/// Writes a report for the store: version, time, instances, requests, errors, then `bucket:count` of each bucket
/// that is not empty. At most 1.3 kB.
impl OriginReport {
    /// Returns the text without the pod, which is the name of the field.
    #[must_use]
    pub fn to_text(&self) -> String {
        let OriginTotals { requests, errors, latency } = &self.totals;
        let mut words = vec![format!("1 {} {} {requests} {errors}", self.at, self.instances)];
        let filled = latency.0.iter().enumerate().filter(|(_, count)| **count > 0);
        words.extend(filled.map(|(bucket, count)| format!("{bucket}:{count}")));
        words.join(" ")
    }

    /// Reads the text of a pod. `None` if another release wrote it in a form that this one does not know.
    #[must_use]
    pub fn parse(pod: &str, text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        if words.next()? != "1" {
            return None;
        }
        let at = words.next()?.parse().ok()?;
        let instances = words.next()?.parse().ok()?;
        let (requests, errors) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let mut latency = LatencyHistogram::default();
        for word in words {
            let (bucket, count) = word.split_once(':')?;
            *latency.0.get_mut(bucket.parse::<usize>().ok()?)? = count.parse().ok()?;
        }
        let totals = OriginTotals { requests, errors, latency };
        Some(Self { pod: pod.to_owned(), instances, at, totals })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(times: impl IntoIterator<Item = u32>) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::default();
        times.into_iter().for_each(|time| histogram.add(f64::from(time), 1));
        histogram
    }

    #[test]
    fn the_percentile_is_at_most_a_quarter_off() {
        assert_eq!(LatencyHistogram::default().p95_ms(), None);
        for exact in [1_u32, 7, 80, 950, 9_500] {
            let times = (1..=1000_u32).map(|rank| (exact * rank).div_ceil(950));
            let p95 = histogram(times).p95_ms().unwrap();
            assert!(p95.abs_diff(exact) * 4 <= exact.max(4), "{p95} instead of {exact}");
        }
        assert!(histogram([100_000]).p95_ms().unwrap() > 50_000);
    }

    #[test]
    fn a_report_survives_the_store() {
        let latency = histogram([3, 3, 400, 99_999]);
        let totals = OriginTotals { requests: 5, errors: 2, latency };
        let report =
            OriginReport { pod: "api-1".into(), instances: 3, at: 1_700_000_000_000, totals };
        assert_eq!(OriginReport::parse("api-1", &report.to_text()), Some(report));
        for bad in ["", "2 1 1 1 1", "1 1 1 1", "1 1 1 1 1 51:1", "1 1 1 1 1 x", "1 1 1 1 1 1:-1"] {
            assert_eq!(OriginReport::parse("api-1", bad), None, "{bad}");
        }
    }

    #[test]
    fn a_difference_has_only_what_was_added() {
        let old = OriginTotals { requests: 2, errors: 1, latency: histogram([10, 2000]) };
        let added = OriginTotals { requests: 1, errors: 0, latency: histogram([10]) };
        assert_eq!(old.plus(&added).since(&old), Some(added));
        assert_eq!(OriginTotals::default().since(&old), None);
    }
}
