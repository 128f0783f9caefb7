//! A figure, what is asked of it, and how it is shown.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use crate::report::machine;

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    /// At least this.
    Least(f64),
    /// At most this.
    Most(f64),
    /// Nothing is asked; people like to know.
    None,
}

/// One row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// What was measured.
    pub(crate) name: String,
    /// The value that is judged.
    pub(crate) value: f64,
    /// What it is measured in; nothing for a ratio.
    pub(crate) unit: &'static str,
    /// What it must be.
    pub(crate) goal: Goal,
    /// What stands behind it, for people.
    pub(crate) detail: String,
    /// The same of each round that counts, where there are several.
    rounds: Vec<f64>,
}

impl Figure {
    pub(crate) fn new(name: &str, value: f64, unit: &'static str, goal: Goal) -> Self {
        Self { name: name.to_owned(), value, unit, goal, detail: String::new(), rounds: Vec::new() }
    }

    pub(crate) fn ratio(name: &str, value: f64, goal: f64) -> Self {
        Self::new(name, value, "", Goal::Least(goal))
    }

    pub(crate) fn with(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// More that stands behind it.
    pub(crate) fn and(mut self, detail: &str) -> Self {
        self.detail = format!("{}; {detail}", self.detail);
        self
    }

    /// What single rounds had: how much the figure is worth.
    pub(crate) fn over(mut self, rounds: Vec<f64>) -> Self {
        self.rounds = rounds;
        self
    }

    /// The lowest and the highest of single rounds.
    fn spread(&self) -> Option<(f64, f64)> {
        let low = self.rounds.iter().copied().reduce(f64::min)?;
        Some((low, self.rounds.iter().copied().reduce(f64::max)?))
    }

    /// How many times better than it must be.
    fn better(&self) -> f64 {
        match self.goal {
            Goal::Least(least) => self.value / least,
            // Nothing is asked for and nothing was found: as good as it must be, nothing is better.
            Goal::Most(most) if self.value <= 0.0 && most <= 0.0 => 1.0,
            Goal::Most(most) => most / self.value.max(f64::MIN_POSITIVE),
            Goal::None => 1.0,
        }
    }

    /// Whether it is what it must be.
    fn holds(&self) -> bool {
        match self.goal {
            Goal::Least(least) => self.value >= least,
            Goal::Most(most) => self.value <= most,
            Goal::None => true,
        }
    }

    fn asked(&self) -> String {
        match self.goal {
            Goal::Least(least) => format!("≥ {least}"),
            Goal::Most(most) => format!("≤ {most}"),
            Goal::None => "–".to_owned(),
        }
    }

    fn shown(&self) -> String {
        format!("{} {}", short(self.value), self.unit).trim_end().to_owned()
    }
}

/// As many digits as mean something.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        big if big >= 100.0 => 0,
        some if some >= 10.0 => 1,
        one if one >= 0.01 => 2,
        0.0 => 0,
        _ => 5,
    };
    format!("{value:.digits$}")
}

/// Prints the table, in the form that documents take over.
#[expect(clippy::print_stdout, reason = "the result of the program")]
pub(crate) fn print(figures: &[Figure]) {
    println!("| | measured | asked for | | single rounds | behind it |");
    println!("|---|---|---|---|---|---|");
    for figure in figures {
        let verdict = match figure.goal {
            Goal::None => "",
            _ if figure.holds() => "✓",
            _ => "✗",
        };
        let Figure { name, detail, .. } = figure;
        let (shown, asked) = (figure.shown(), figure.asked());
        let spread = figure.spread().map(|(low, high)| format!("{}–{}", short(low), short(high)));
        let spread = spread.unwrap_or_default();
        println!("| {name} | **{shown}** | {asked} | {verdict} | {spread} | {detail} |");
    }
}

/// Writes everything that was measured.
pub(crate) fn write(path: &Path, figures: &[Figure], versions: &Value) -> anyhow::Result<()> {
    let figures: Vec<_> = figures.iter().map(one).collect();
    let all = json!({ "machine": machine(), "versions": versions, "figures": figures });
    fs::write(path, format!("{all:#}\n")).with_context(|| path.display().to_string())
}

fn one(figure: &Figure) -> Value {
    let (least, most) = match figure.goal {
        Goal::Least(least) => (Some(least), None),
        Goal::Most(most) => (None, Some(most)),
        Goal::None => (None, None),
    };
    json!({
        "name": figure.name, "value": figure.value, "unit": figure.unit, "atLeast": least,
        "atMost": most, "holds": figure.holds(), "detail": figure.detail,
        "rounds": figure.rounds, "lowestAndHighestRound": figure.spread(),
    })
}

const ROW: usize = 34;
const LEFT: usize = 330;
const WIDTH: usize = 420;

/// Draws each figure as a bar against what is asked for: the line is the goal, green is better.
pub(crate) fn draw(path: &Path, figures: &[Figure], versions: &Value) -> anyhow::Result<()> {
    let judged: Vec<_> = figures.iter().filter(|figure| figure.goal != Goal::None).collect();
    let (width, height) = (LEFT + WIDTH + 190, ROW * judged.len() + 90);
    let mut svg = String::new();
    writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="13">
<rect width="100%" height="100%" fill="#fff"/>
<text x="16" y="26" font-size="16" font-weight="600" fill="#1a1a2e">Measured against what is asked for (a longer bar is better, the line is the goal)</text>"##
    )?;
    let goal_at = LEFT + WIDTH / 2;
    for (row, figure) in judged.iter().enumerate() {
        let y = 48 + row * ROW;
        // Logarithmic around the goal: a quarter is at the left end, four times at the right.
        let length = (0.5 + figure.better().log2() / 4.0).clamp(0.01, 1.0) * WIDTH as f64;
        let colour = if figure.holds() { "#2a9d8f" } else { "#e76f51" };
        writeln!(
            svg,
            r##"<text x="{}" y="{}" text-anchor="end" fill="#333">{}</text>
<rect x="{LEFT}" y="{y}" width="{length:.0}" height="20" rx="3" fill="{colour}"/>
<text x="{}" y="{}" fill="#333">{} ({})</text>"##,
            LEFT - 10,
            y + 15,
            figure.name,
            LEFT + WIDTH + 10,
            y + 15,
            figure.shown(),
            figure.asked(),
        )?;
    }
    writeln!(
        svg,
        r##"<line x1="{goal_at}" x2="{goal_at}" y1="40" y2="{}" stroke="#1a1a2e" stroke-dasharray="4 3"/>
<text x="16" y="{}" font-size="12" fill="#666">{}</text>
</svg>"##,
        height - 40,
        height - 14,
        surroundings(&machine(), versions),
    )?;
    fs::write(path, svg).with_context(|| path.display().to_string())
}

/// The machine and the versions, in words.
fn surroundings(machine: &Value, versions: &Value) -> String {
    let mut words = format!("{} cores", machine["cores"]);
    if let Some(name) = machine["processor"].as_str() {
        words = format!("{words} of {}", name.replace('&', "&amp;").replace('<', "&lt;"));
    }
    let versions = versions.as_object().into_iter().flatten();
    let versions = versions.filter_map(|(what, version)| Some((what, version.as_str()?)));
    versions.fold(words, |words, (what, version)| format!("{words} · {what} {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_is_as_good_as_it_must_be_reaches_the_line() {
        let figure = |value, goal| Figure::new("", value, "", goal).better();
        assert_eq!(figure(0.0, Goal::Most(0.0)), 1.0);
        assert_eq!(figure(5.0, Goal::Most(0.0)), 0.0);
        assert!(figure(0.0, Goal::Most(0.1)) > 1e6);
        assert_eq!(figure(0.5, Goal::Most(1.0)), 2.0);
        assert_eq!(figure(0.5, Goal::Least(1.0)), 0.5);
    }

    #[test]
    fn the_picture_says_where_it_was_taken() {
        let machine = json!({ "cores": 2, "processor": "A & B" });
        let versions = json!({ "redis": "7.0", "wrk": null });
        assert_eq!(surroundings(&machine, &versions), "2 cores of A &amp; B · redis 7.0");
    }
}
