//! Checks the samples of a soak: rate, responses, and growth in the second half. The first half warms up.

use std::fmt;

use crate::history::Call;

use super::growth::Growth;
use super::sample::{Sample, Unit, must_be_flat, unit};

const MIB: f64 = 1024.0 * 1024.0;

/// A size grows if it exceeds this rate and has risen by more than the noise of allocators and load.
const MIB_PER_HOUR: f64 = 25.0;
const NOISE_MIB: f64 = 2.0;

/// The number of keys varies with lines and users, whose number is constant.
const NOISE_KEYS: f64 = 20.0;
const NOISE_RATIO: f64 = 0.05;

/// Minimum share of the requested rate.
const MIN_RATE_RATIO: f64 = 0.95;

/// The result of a soak.
#[derive(Debug)]
pub struct SoakReport {
    pub(super) samples: Vec<Sample>,
    pub(super) rate: f64,
    rows: Vec<Row>,
    failures: Vec<String>,
}

/// One measured size.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    growth: Growth,
    flat: bool,
}

impl SoakReport {
    /// Evaluates the samples. `unanswered` is the first call without a successful reply.
    pub(super) fn new(samples: Vec<Sample>, rate: f64, unanswered: Option<Call>) -> Self {
        let mut names: Vec<String> =
            samples.iter().flat_map(|sample| sample.sizes.keys().cloned()).collect();
        names.sort();
        names.dedup();
        let half = &samples[samples.len() / 2..];
        let rows: Vec<_> = names.into_iter().map(|name| Row::new(name, half)).collect();
        let mut failures = failures(&samples, rate, &rows);
        failures.extend(unanswered.map(|Call { op, user, item, from, to, outcome, .. }| {
            format!("the first was {op:?} of {user} for {item}: {outcome:?} after {} ms", to - from)
        }));
        Self { samples, rate, rows, failures }
    }

    /// Whether the soak has no failure.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// The result in one line.
    pub(super) fn verdict(&self) -> String {
        if self.passed() { "flat".to_owned() } else { self.failures.join("; ") }
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }
}

impl Row {
    fn new(name: String, samples: &[Sample]) -> Self {
        let samples: Vec<_> = samples
            .iter()
            .filter_map(|sample| Some((sample.at, *sample.sizes.get(&name)?)))
            .collect();
        let growth = Growth::fit(&samples);
        let grows = match unit(&name) {
            Unit::Count => growth.risen() > NOISE_KEYS + NOISE_RATIO * growth.mean,
            Unit::Bytes => {
                growth.risen() > NOISE_MIB * MIB && growth.per_hour() > MIB_PER_HOUR * MIB
            }
        };
        Self { flat: !must_be_flat(&name) || !grows, name, growth }
    }
}

/// All failures of a soak.
fn failures(samples: &[Sample], rate: f64, rows: &[Row]) -> Vec<String> {
    let mut failures = Vec::new();
    let reached = per_second(&samples[samples.len() / 2..]);
    if samples.len() < 4 {
        failures.push("too short to judge".to_owned());
    } else if reached < rate * MIN_RATE_RATIO {
        failures.push(format!("{reached:.0} requests/s of {rate:.0}"));
    }
    let unanswered = samples.last().map_or(0, |last| last.calls.unanswered);
    if unanswered > 0 {
        failures.push(format!("{unanswered} calls without a successful reply"));
    }
    let mut missing: Vec<&str> =
        samples.iter().flat_map(|sample| &sample.missing).map(String::as_str).collect();
    missing.sort_unstable();
    missing.dedup();
    failures.extend(missing.into_iter().map(|name| format!("{name} was missing in some samples")));
    failures.extend(rows.iter().filter(|row| !row.flat).map(|row| format!("{} grows", row.name)));
    failures
}

fn per_second(samples: &[Sample]) -> f64 {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return 0.0 };
    let calls = last.calls.all - first.calls.all;
    calls as f64 / (last.at - first.at).as_secs_f64().max(1.0)
}

impl fmt::Display for SoakReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(last) = self.samples.last() {
            let (seconds, per_second) = (last.at.as_secs_f64(), per_second(&self.samples));
            let super::sample::Calls { all, unanswered } = last.calls;
            writeln!(f, "{seconds:.0} s, {all} calls, {per_second:.0}/s, {unanswered} unanswered")?;
        }
        writeln!(f, "{:<26} {:>12} {:>14}", "in the second half", "mean", "per hour")?;
        for Row { name, growth, flat } in &self.rows {
            let verdict = match (must_be_flat(name), flat) {
                (false, _) => "not judged",
                (true, true) => "flat",
                (true, false) => "GROWS",
            };
            let (mean, per_hour) =
                (format_size(name, growth.mean), format_size(name, growth.per_hour()));
            writeln!(f, "{name:<26} {mean:>12} {per_hour:>14}  {verdict}")?;
        }
        write!(f, "{}", self.verdict())
    }
}

pub(super) fn format_size(name: &str, size: f64) -> String {
    match unit(name) {
        Unit::Count => format!("{size:.0}"),
        Unit::Bytes => format!("{:.1} MiB", size / MIB),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::sample::{Calls, RETAINED_DATA};
    use super::*;
    use crate::history::{Op, Outcome};

    const RATE: f64 = 100.0;

    fn samples(name: &str, size: impl Fn(f64) -> f64) -> Vec<Sample> {
        let sample = |n: u32| Sample {
            at: Duration::from_secs(u64::from(n) * 5),
            calls: Calls { all: u64::from(n) * 500, unanswered: 0 },
            sizes: [(name.to_owned(), MIB * size(f64::from(n)))].into(),
            missing: Vec::new(),
        };
        (0..=120).map(sample).collect()
    }

    fn passed(name: &str, size: impl Fn(f64) -> f64) -> bool {
        SoakReport::new(samples(name, size), RATE, None).passed()
    }

    #[test]
    fn growth_in_the_first_half_only_is_flat() {
        assert!(passed("api-1", |n| n.min(30.0) * 5.0));
        assert!(passed("api-1", |n| 50.0 + n % 4.0));
        assert!(!passed("api-1", |n| 20.0 + n));
        assert!(!SoakReport::new(Vec::new(), RATE, None).passed(), "no samples");
    }

    #[test]
    fn a_leak_of_50_mib_per_hour_is_found_within_ten_minutes() {
        let leak = |n: f64| 200.0 + 50.0 * n * 5.0 / 3_600.0;
        let report = SoakReport::new(samples("api-1", leak), RATE, None);
        assert!(!report.passed());
        assert!(report.to_string().contains("50.0 MiB  GROWS"), "{report}");
    }

    #[test]
    fn retained_data_may_grow() {
        assert!(passed(RETAINED_DATA, |n| n));
    }

    #[test]
    fn a_low_rate_a_failed_call_or_a_missing_process_is_a_failure() {
        let flat = || samples("api-1", |_| 50.0);
        assert!(SoakReport::new(flat(), RATE, None).passed());
        assert!(!SoakReport::new(flat(), RATE * 1.06, None).passed());
        let mut unanswered = flat();
        unanswered[120].calls.unanswered = 1;
        assert!(!SoakReport::new(unanswered, RATE, None).passed());
        let (op, outcome) = (Op::Poll, Outcome::Unknown("no connection".into()));
        let (user, item) = ("kim".into(), "concert".into());
        let first = Call { op, user, item, number: None, code: None, from: 10, to: 35, outcome };
        let verdict = SoakReport::new(flat(), RATE, Some(first)).verdict();
        assert!(
            verdict.contains("Poll of kim for concert") && verdict.contains("25 ms"),
            "{verdict}"
        );
        let mut absent = flat();
        absent[7].missing.push("api-2".to_owned());
        assert!(!SoakReport::new(absent, RATE, None).passed());
    }
}
