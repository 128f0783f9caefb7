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
}

impl Figure {
    pub(crate) fn new(name: &str, value: f64, unit: &'static str, goal: Goal) -> Self {
        Self { name: name.to_owned(), value, unit, goal, detail: String::new() }
    }

    pub(crate) fn ratio(name: &str, value: f64, goal: f64) -> Self {
        Self::new(name, value, "", Goal::Least(goal))
    }

    pub(crate) fn with(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
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
        let digits = match self.value.abs() {
            big if big >= 100.0 => 0,
            some if some >= 10.0 => 1,
            one if one >= 0.01 => 2,
            0.0 => 0,
            _ => 5,
        };
        format!("{:.digits$} {}", self.value, self.unit).trim_end().to_owned()
    }
}

/// Prints the table, in the form that documents take over.
#[expect(clippy::print_stdout, reason = "the result of the program")]
pub(crate) fn print(figures: &[Figure]) {
    println!("| | measured | asked for | | behind it |");
    println!("|---|---|---|---|---|");
    for figure in figures {
        let verdict = if figure.holds() { "✓" } else { "✗" };
        let Figure { name, detail, .. } = figure;
        println!("| {name} | **{}** | {} | {verdict} | {detail} |", figure.shown(), figure.asked());
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
    })
}

const ROW: usize = 34;
const LEFT: usize = 330;
const WIDTH: usize = 420;

/// Draws each figure as a bar against what is asked for: the line is the goal, green is better.
pub(crate) fn draw(path: &Path, figures: &[Figure]) -> anyhow::Result<()> {
    let judged: Vec<_> = figures.iter().filter(|figure| figure.goal != Goal::None).collect();
    let (width, height) = (LEFT + WIDTH + 190, ROW * judged.len() + 60);
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
        let better = match figure.goal {
            Goal::Least(least) => figure.value / least,
            Goal::Most(most) => most / figure.value.max(f64::MIN_POSITIVE),
            Goal::None => 1.0,
        };
        // Logarithmic around the goal: a quarter is at the left end, four times at the right.
        let length = (0.5 + better.log2() / 4.0).clamp(0.01, 1.0) * WIDTH as f64;
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
</svg>"##,
        height - 10
    )?;
    fs::write(path, svg).with_context(|| path.display().to_string())
}
