//! The outcome of a simulated sale.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::EstimateScore;

/// What happened in a simulated sale. Times in seconds after the first arrival.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = example())]
pub struct Forecast {
    /// Visitors who arrived.
    pub arrivals: u32,
    /// Visitors who got a ticket of the line.
    pub joined: u32,
    /// Visitors who were refused, because nothing was left or the line was full.
    pub refused: u32,
    /// Visitors who were admitted.
    pub admitted: u32,
    /// Visitors who bought.
    pub bought: u32,
    /// Entries that expired.
    pub expired: u32,
    /// Tickets that ended because their users were absent.
    pub abandoned: u32,
    /// Visitors who stayed and were never admitted: refused, or still in the line at the end.
    pub without_turn: u32,
    /// What is left to sell at the end.
    pub unsold: u32,
    /// When the last one was sold; null if some are left.
    pub sold_out_seconds: Option<u64>,
    /// When the last visitor was admitted.
    pub last_admission_seconds: Option<u64>,
    /// When no visitor waited any more after the last arrival; null if some still wait at the end.
    pub cleared_seconds: Option<u64>,
    /// How long the simulated sale lasted.
    pub seconds: u64,
    /// Waits of those admitted; null if no visitor was.
    pub waits: Option<Waits>,
    /// The line in each minute.
    pub per_minute: PerMinute,
    /// What visitors saw as their wait, scored.
    pub estimates: EstimateScore,
}

/// Waits from the join to the admission, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waits {
    /// 10th percentile.
    pub p10: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

/// One list per figure, one value per minute.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PerMinute {
    /// Joins in this minute.
    pub joined: Vec<u32>,
    /// Admissions in this minute.
    pub admitted: Vec<u32>,
    /// Purchases in this minute.
    pub bought: Vec<u32>,
    /// Waiting tickets at its end.
    pub waiting: Vec<u32>,
    /// Entries at its end.
    pub entered: Vec<u32>,
}

impl Waits {
    /// Returns the percentiles; `None` without waits.
    pub(crate) fn new(mut seconds: Vec<u64>) -> Option<Self> {
        seconds.sort_unstable();
        let max = *seconds.last()?;
        let at = |percent: usize| seconds[(seconds.len() - 1) * percent / 100];
        Some(Self { p10: at(10), p50: at(50), p90: at(90), p99: at(99), max })
    }
}

/// A sale of two minutes, for the published schema.
fn example() -> Value {
    json!({
        "arrivals": 900, "joined": 900, "refused": 0, "admitted": 560, "bought": 500, "expired": 0,
        "abandoned": 40, "withoutTurn": 300, "unsold": 0, "soldOutSeconds": 118,
        "lastAdmissionSeconds": 97, "clearedSeconds": null, "seconds": 118,
        "waits": { "p10": 4, "p50": 31, "p90": 62, "p99": 70, "max": 71 },
        "perMinute": {
            "joined": [700, 200], "admitted": [360, 200], "bought": [180, 320],
            "waiting": [340, 300], "entered": [180, 0],
        },
        "estimates": {
            "looks": 210, "within": 198, "earlier": 9, "later": 3, "pairs": 160, "movedLater": 2,
        },
    })
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: String| writeln!(f, "{name:<28}{value:>14}");
        row("visitors", count(self.arrivals))?;
        row("  refused", count(self.refused))?;
        row("  admitted", count(self.admitted))?;
        row("  bought", count(self.bought))?;
        row("  entry expired", count(self.expired))?;
        row("  abandoned the line", count(self.abandoned))?;
        row("  stayed, never admitted", count(self.without_turn))?;
        row("unsold", count(self.unsold))?;
        row("sold out after", after(self.sold_out_seconds))?;
        row("last admission after", after(self.last_admission_seconds))?;
        row("line empty after", after(self.cleared_seconds))?;
        if let Some(waits) = &self.waits {
            for (name, seconds) in [
                ("wait, 10 of 100 below", waits.p10),
                ("wait, half below", waits.p50),
                ("wait, 90 of 100 below", waits.p90),
                ("wait, 99 of 100 below", waits.p99),
                ("longest wait", waits.max),
            ] {
                row(name, after(Some(seconds)))?;
            }
        }
        let score = &self.estimates;
        row("estimates kept (by p90)", format!("{:.1} %", score.by_p90_percent()))?;
        row("estimates not moved later", format!("{:.1} %", score.calm_percent()))
    }
}

/// Formats a number with separators.
fn count(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn after(seconds: Option<u64>) -> String {
    let Some(seconds) = seconds else { return "never".to_owned() };
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{hours}:{minutes:02}:{seconds:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators_and_times_are_clock_times() {
        assert_eq!(
            (count(7), count(1_234), count(1_234_567)),
            ("7".into(), "1,234".into(), "1,234,567".into())
        );
        assert_eq!((after(Some(3_725)), after(None)), ("1:02:05".into(), "never".into()));
        let waits = Waits::new((0..=100).collect()).unwrap();
        assert_eq!((waits.p10, waits.p50, waits.p99, waits.max), (10, 50, 99, 100));
        assert_eq!(Waits::new(Vec::new()), None);
    }
}
