//! One measured value with its target.

use serde_json::{Value, json};

/// The value a measurement must reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
    /// Reported without a verdict.
    None,
}

/// One row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Measurement {
    pub(crate) name: String,
    /// The median, where there are several rounds.
    pub(crate) value: f64,
    /// Empty for a ratio.
    pub(crate) unit: &'static str,
    pub(crate) target: Target,
    /// The absolute figures behind the value.
    pub(crate) detail: String,
    rounds: Vec<f64>,
}

impl Measurement {
    pub(crate) fn new(name: &str, value: f64, unit: &'static str, target: Target) -> Self {
        let (name, detail, rounds) = (name.to_owned(), String::new(), Vec::new());
        Self { name, value, unit, target, detail, rounds }
    }

    /// A ratio that must not fall below `least`.
    pub(crate) fn ratio(name: &str, value: f64, least: f64) -> Self {
        Self::new(name, value, "", Target::AtLeast(least))
    }

    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// The values of single rounds. Their spread shows how much the median is worth.
    pub(crate) fn with_rounds(mut self, rounds: Vec<f64>) -> Self {
        self.rounds = rounds;
        self
    }

    /// The lowest and the highest round.
    pub(crate) fn spread(&self) -> Option<(f64, f64)> {
        let low = self.rounds.iter().copied().reduce(f64::min)?;
        Some((low, self.rounds.iter().copied().reduce(f64::max)?))
    }

    /// How many times better than the target the value is; below 1 it misses the target.
    pub(crate) fn margin(&self) -> f64 {
        match self.target {
            Target::AtLeast(least) => self.value / least,
            Target::AtMost(most) => most / self.value.max(f64::MIN_POSITIVE),
            Target::None => 1.0,
        }
    }

    pub(crate) fn meets_target(&self) -> bool {
        match self.target {
            Target::AtLeast(least) => self.value >= least,
            Target::AtMost(most) => self.value <= most,
            Target::None => true,
        }
    }

    pub(crate) fn target_text(&self) -> String {
        match self.target {
            Target::AtLeast(least) => format!("≥ {least}"),
            Target::AtMost(most) => format!("≤ {most}"),
            Target::None => "–".to_owned(),
        }
    }

    pub(crate) fn value_text(&self) -> String {
        format!("{} {}", significant(self.value), self.unit).trim_end().to_owned()
    }

    pub(crate) fn json(&self) -> Value {
        let (least, most) = match self.target {
            Target::AtLeast(least) => (Some(least), None),
            Target::AtMost(most) => (None, Some(most)),
            Target::None => (None, None),
        };
        json!({
            "name": self.name, "value": self.value, "unit": self.unit, "atLeast": least,
            "atMost": most, "meetsTarget": self.meets_target(), "detail": self.detail,
            "rounds": self.rounds, "lowestAndHighestRound": self.spread(),
        })
    }
}

/// Two to three significant digits; the measurements are not more exact.
pub(crate) fn significant(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        medium if medium >= 10.0 => 1,
        small if small >= 0.01 => 2,
        0.0 => 0,
        _ => 5,
    };
    format!("{value:.digits$}")
}

/// The median; `NaN` of no values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_1_at_the_target() {
        let margin = |value, target| Measurement::new("", value, "", target).margin();
        assert_eq!(margin(0.5, Target::AtMost(1.0)), 2.0);
        assert_eq!(margin(1.0, Target::AtMost(1.0)), 1.0);
        assert_eq!(margin(0.5, Target::AtLeast(1.0)), 0.5);
        assert!(margin(0.0, Target::AtMost(0.1)) > 1e6);
    }

    #[test]
    fn one_outlier_does_not_move_the_median() {
        assert_eq!(median(vec![4.0, 100.0, 4.0]), 4.0);
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), 2.5);
    }
}
