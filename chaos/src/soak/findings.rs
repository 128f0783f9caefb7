//! Whether anything has grown: what there was in the second quarter beside what there was in the last.
//! The first quarter is for warming up.

use std::fmt;

use super::sample::{Sample, Unit, must_be_flat, unit};

const MIB: f64 = 1024.0 * 1024.0;

/// So much more may be there in the end, for the moods of allocators and of crowds: a part, and
/// something for what is small.
const PART: f64 = 0.05;
const SPARE_BYTES: f64 = 4.0 * MIB;
const SPARE_KEYS: f64 = 20.0;

/// What a soak has shown.
#[derive(Debug)]
pub struct Findings {
    pub(super) samples: Vec<Sample>,
    pub(super) rate: f64,
    rows: Vec<Row>,
}

/// One thing that was watched.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    second: f64,
    last: f64,
    flat: bool,
}

impl Findings {
    pub(super) fn of(samples: Vec<Sample>, rate: f64) -> Self {
        let mut names: Vec<String> =
            samples.iter().flat_map(|sample| sample.sizes.keys().cloned()).collect();
        names.sort();
        names.dedup();
        let rows = names.into_iter().map(|name| Row::of(name, &samples)).collect();
        Self { samples, rate, rows }
    }

    /// Whether nothing has grown that must not.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row.flat)
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }
}

impl Row {
    fn of(name: String, samples: &[Sample]) -> Self {
        let sizes: Vec<f64> =
            samples.iter().filter_map(|sample| sample.sizes.get(&name)).copied().collect();
        let quarter = sizes.len().div_ceil(4);
        let part = |nth: usize| {
            let from = (nth * quarter).min(sizes.len());
            median(&sizes[from..(from + quarter).min(sizes.len())])
        };
        let (second, last) = (part(1), part(3));
        let spare = if unit(&name) == Unit::Keys { SPARE_KEYS } else { SPARE_BYTES };
        let flat = !must_be_flat(&name) || last <= second * (1.0 + PART) + spare;
        Self { name, second, last, flat }
    }
}

fn median(sizes: &[f64]) -> f64 {
    let mut sorted = sizes.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) {
            let seconds = (last.at - first.at).as_secs_f64().max(1.0);
            let (calls, unknown) = (last.calls.all - first.calls.all, last.calls.unknown);
            let per_second = calls as f64 / seconds;
            writeln!(f, "{seconds:.0} s, {calls} calls, {per_second:.0}/s, {unknown} unknown")?;
        }
        writeln!(f, "{:<26} {:>14} {:>14}", "", "second quarter", "last quarter")?;
        for Row { name, second, last, flat } in &self.rows {
            let verdict = match (must_be_flat(name), flat) {
                (false, _) => "not judged",
                (true, true) => "flat",
                (true, false) => "GROWS",
            };
            let (second, last) = (shown(name, *second), shown(name, *last));
            writeln!(f, "{name:<26} {second:>14} {last:>14}  {verdict}")?;
        }
        write!(f, "{}", if self.is_flat() { "flat" } else { "NOT FLAT" })
    }
}

pub(super) fn shown(name: &str, size: f64) -> String {
    match unit(name) {
        Unit::Keys => format!("{size:.0}"),
        Unit::Bytes => format!("{:.1} MiB", size / MIB),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::sample::REMEMBERED;
    use super::*;
    use crate::run::recorder::Calls;

    fn evening(name: &str, size: impl Fn(u32) -> f64) -> Findings {
        let sample = |n: u32| Sample {
            at: Duration::from_secs(u64::from(n) * 5),
            calls: Calls::default(),
            sizes: [(name.to_owned(), size(n))].into(),
        };
        Findings::of((0..40).map(sample).collect(), 1.0)
    }

    #[test]
    fn what_only_warms_up_is_flat_and_what_goes_on_growing_is_not() {
        assert!(evening("api-1", |n| MIB * f64::from(n.min(10) * 5)).is_flat());
        assert!(evening("api-1", |n| MIB * f64::from(50 + n % 4)).is_flat());
        assert!(!evening("api-1", |n| MIB * f64::from(20 + n)).is_flat());
        assert!(!Findings::of(Vec::new(), 1.0).is_flat(), "nothing was seen");
    }

    #[test]
    fn what_is_kept_for_an_hour_may_grow() {
        assert!(evening(REMEMBERED, |n| MIB * f64::from(n)).is_flat());
    }
}
