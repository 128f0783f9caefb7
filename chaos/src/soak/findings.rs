//! Whether the evening was what was asked for, and whether anything has grown in its second half. The
//! first half is for warming up.

use std::fmt;

use crate::history::Call;

use super::growth::Growth;
use super::sample::{Sample, Unit, must_be_flat, unit};

const MIB: f64 = 1024.0 * 1024.0;

/// What grows faster than this in an hour, and has risen by more than the moods of allocators and of
/// crowds, grows.
const MIB_PER_HOUR: f64 = 25.0;
const MOOD_MIB: f64 = 2.0;

/// Keys come and go with lines and people, who are as many all the time.
const MOOD_KEYS: f64 = 20.0;
const MOOD_PART: f64 = 0.05;

/// So much of the rate must have been reached.
const ENOUGH: f64 = 0.95;

/// What a soak has shown.
#[derive(Debug)]
pub struct Findings {
    pub(super) samples: Vec<Sample>,
    pub(super) rate: f64,
    rows: Vec<Row>,
    wrong: Vec<String>,
}

/// One thing that was watched.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    growth: Growth,
    flat: bool,
}

impl Findings {
    /// With the first call that was not answered as it should, if there was one.
    pub(super) fn of(samples: Vec<Sample>, rate: f64, unanswered: Option<Call>) -> Self {
        let mut names: Vec<String> =
            samples.iter().flat_map(|sample| sample.sizes.keys().cloned()).collect();
        names.sort();
        names.dedup();
        let half = &samples[samples.len() / 2..];
        let rows: Vec<_> = names.into_iter().map(|name| Row::of(name, half)).collect();
        let mut wrong = wrong(&samples, rate, &rows);
        wrong.extend(unanswered.map(|Call { op, user, item, from, to, outcome, .. }| {
            format!("the first was {op:?} of {user} for {item}: {outcome:?} after {} ms", to - from)
        }));
        Self { samples, rate, rows, wrong }
    }

    /// Whether it was a full evening, and nothing has grown that must not.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.wrong.is_empty()
    }

    /// In one line.
    pub(super) fn verdict(&self) -> String {
        if self.is_well() { "flat".to_owned() } else { self.wrong.join("; ") }
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }
}

impl Row {
    fn of(name: String, samples: &[Sample]) -> Self {
        let seen: Vec<_> = samples
            .iter()
            .filter_map(|sample| Some((sample.at, *sample.sizes.get(&name)?)))
            .collect();
        let growth = Growth::of(&seen);
        let grows = match unit(&name) {
            Unit::Count => growth.risen() > MOOD_KEYS + MOOD_PART * growth.mean,
            Unit::Bytes => {
                growth.risen() > MOOD_MIB * MIB && growth.per_hour() > MIB_PER_HOUR * MIB
            }
        };
        Self { flat: !must_be_flat(&name) || !grows, name, growth }
    }
}

/// Everything that makes an evening a bad one.
fn wrong(samples: &[Sample], rate: f64, rows: &[Row]) -> Vec<String> {
    let mut wrong = Vec::new();
    let reached = per_second(&samples[samples.len() / 2..]);
    if samples.len() < 4 {
        wrong.push("too short to tell".to_owned());
    } else if reached < rate * ENOUGH {
        wrong.push(format!("{reached:.0} requests/s of {rate:.0}"));
    }
    let unanswered = samples.last().map_or(0, |last| last.calls.unanswered);
    if unanswered > 0 {
        wrong.push(format!("{unanswered} calls were not answered as they should"));
    }
    let mut missing: Vec<&str> =
        samples.iter().flat_map(|sample| &sample.missing).map(String::as_str).collect();
    missing.sort_unstable();
    missing.dedup();
    wrong.extend(missing.into_iter().map(|name| format!("{name} was not always there")));
    wrong.extend(rows.iter().filter(|row| !row.flat).map(|row| format!("{} grows", row.name)));
    wrong
}

fn per_second(samples: &[Sample]) -> f64 {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return 0.0 };
    let calls = last.calls.all - first.calls.all;
    calls as f64 / (last.at - first.at).as_secs_f64().max(1.0)
}

impl fmt::Display for Findings {
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
            let (mean, per_hour) = (shown(name, growth.mean), shown(name, growth.per_hour()));
            writeln!(f, "{name:<26} {mean:>12} {per_hour:>14}  {verdict}")?;
        }
        write!(f, "{}", self.verdict())
    }
}

pub(super) fn shown(name: &str, size: f64) -> String {
    match unit(name) {
        Unit::Count => format!("{size:.0}"),
        Unit::Bytes => format!("{:.1} MiB", size / MIB),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::sample::{Calls, REMEMBERED};
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

    fn is_well(name: &str, size: impl Fn(f64) -> f64) -> bool {
        Findings::of(samples(name, size), RATE, None).is_well()
    }

    #[test]
    fn what_only_warms_up_is_flat_and_what_goes_on_growing_is_not() {
        assert!(is_well("api-1", |n| n.min(30.0) * 5.0));
        assert!(is_well("api-1", |n| 50.0 + n % 4.0));
        assert!(!is_well("api-1", |n| 20.0 + n));
        assert!(!Findings::of(Vec::new(), RATE, None).is_well(), "nothing was seen");
    }

    #[test]
    fn fifty_mebibytes_an_hour_are_noticed_within_ten_minutes_and_told() {
        let leak = |n: f64| 200.0 + 50.0 * n * 5.0 / 3_600.0;
        let findings = Findings::of(samples("api-1", leak), RATE, None);
        assert!(!findings.is_well());
        assert!(findings.to_string().contains("50.0 MiB  GROWS"), "{findings}");
    }

    #[test]
    fn what_is_kept_for_an_hour_may_grow() {
        assert!(is_well(REMEMBERED, |n| n));
    }

    #[test]
    fn an_evening_with_too_few_requests_or_bad_answers_or_holes_is_none() {
        let flat = || samples("api-1", |_| 50.0);
        assert!(Findings::of(flat(), RATE, None).is_well());
        assert!(!Findings::of(flat(), RATE * 1.06, None).is_well());
        let mut unanswered = flat();
        unanswered[120].calls.unanswered = 1;
        assert!(!Findings::of(unanswered, RATE, None).is_well());
        let (op, outcome) = (Op::Poll, Outcome::Unknown("no connection".into()));
        let (user, item) = ("kim".into(), "concert".into());
        let first = Call { op, user, item, number: None, from: 10, to: 35, outcome };
        let told = Findings::of(flat(), RATE, Some(first)).verdict();
        assert!(told.contains("Poll of kim for concert") && told.contains("25 ms"), "{told}");
        let mut absent = flat();
        absent[7].missing.push("api-2".to_owned());
        assert!(!Findings::of(absent, RATE, None).is_well());
    }
}
