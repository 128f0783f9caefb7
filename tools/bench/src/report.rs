//! Markdown table, JSON and SVG of all measurements.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use askama::filters;
use serde_json::{Value, json};

use crate::measurement::{Measurement, Target, significant};

/// Prints one line of progress to stderr; a whole run takes minutes.
#[expect(clippy::print_stderr, reason = "the progress of a long run")]
pub(crate) fn progress(text: &str) {
    eprintln!("bench: {text}");
}

/// Prints the table to stdout.
#[expect(clippy::print_stdout, reason = "the result of the program")]
pub(crate) fn print(measurements: &[Measurement]) {
    println!("| | measured | target | | single rounds | detail |");
    println!("|---|---|---|---|---|---|");
    for measurement in measurements {
        let verdict = match measurement.target {
            Target::None => "",
            _ if measurement.meets_target() => "✓",
            _ => "✗",
        };
        let Measurement { name, detail, .. } = measurement;
        let (value, target) = (measurement.value_text(), measurement.target_text());
        let spread = measurement.spread();
        let spread =
            spread.map(|(low, high)| format!("{}–{}", significant(low), significant(high)));
        let spread = spread.unwrap_or_default();
        println!("| {name} | **{value}** | {target} | {verdict} | {spread} | {detail} |");
    }
}

/// Writes all measurements with the machine and the versions they were taken with.
pub(crate) fn write_json(
    path: &Path,
    measurements: &[Measurement],
    versions: &Value,
) -> anyhow::Result<()> {
    let measurements: Vec<_> = measurements.iter().map(Measurement::json).collect();
    let all = json!({ "machine": machine(), "versions": versions, "measurements": measurements });
    fs::write(path, format!("{all:#}\n")).with_context(|| path.display().to_string())
}

const ROW: usize = 34;
const LEFT: usize = 330;
const WIDTH: usize = 420;

/// Draws each measurement with a target as a bar. The dashed line is the target; a longer bar is better.
pub(crate) fn write_svg(
    path: &Path,
    measurements: &[Measurement],
    versions: &Value,
) -> anyhow::Result<()> {
    let judged: Vec<_> =
        measurements.iter().filter(|measurement| measurement.target != Target::None).collect();
    let (width, height) = (LEFT + WIDTH + 190, ROW * judged.len() + 90);
    let mut svg = String::new();
    writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="13">
<rect width="100%" height="100%" fill="#fff"/>
<text x="16" y="26" font-size="16" font-weight="600" fill="#1a1a2e">Measured against the targets (the dashed line is the target, a longer bar is better)</text>"##
    )?;
    for (row, measurement) in judged.iter().enumerate() {
        let y = 48 + row * ROW;
        // Logarithmic around the target: a quarter of it is the left end, four times the right end.
        let length = (0.5 + measurement.margin().log2() / 4.0).clamp(0.01, 1.0) * WIDTH as f64;
        let colour = if measurement.meets_target() { "#2a9d8f" } else { "#e76f51" };
        let (name_x, value_x, text_y) = (LEFT - 10, LEFT + WIDTH + 10, y + 15);
        let (value, target) = (measurement.value_text(), measurement.target_text());
        writeln!(
            svg,
            r##"<text x="{name_x}" y="{text_y}" text-anchor="end" fill="#333">{}</text>
<rect x="{LEFT}" y="{y}" width="{length:.0}" height="20" rx="3" fill="{colour}"/>
<text x="{value_x}" y="{text_y}" fill="#333">{value} ({target})</text>"##,
            measurement.name,
        )?;
    }
    let (target_x, line_end, caption_y) = (LEFT + WIDTH / 2, height - 40, height - 14);
    let caption = caption(&machine(), versions);
    writeln!(
        svg,
        r##"<line x1="{target_x}" x2="{target_x}" y1="40" y2="{line_end}" stroke="#1a1a2e" stroke-dasharray="4 3"/>
<text x="16" y="{caption_y}" font-size="12" fill="#666">{caption}</text>
</svg>"##
    )?;
    fs::write(path, svg).with_context(|| path.display().to_string())
}

/// The machine and the versions as one line.
fn caption(machine: &Value, versions: &Value) -> String {
    let mut text = format!("{} cores", machine["cores"]);
    if let Some(name) = machine["processor"].as_str() {
        let Ok(name) = filters::escape(name, filters::Html);
        text = format!("{text} of {name}");
    }
    let versions = versions.as_object().into_iter().flatten();
    let versions = versions.filter_map(|(name, version)| Some((name, version.as_str()?)));
    versions.fold(text, |text, (name, version)| format!("{text} · {name} {version}"))
}

/// Number of cores and, where `/proc/cpuinfo` has it, the processor model.
fn machine() -> Value {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    json!({ "cores": cores, "processor": model.map(|(_, name)| name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caption_names_machine_and_versions() {
        let machine = json!({ "cores": 2, "processor": "A & B" });
        let versions = json!({ "redis": "7.0", "wrk": null });
        assert_eq!(caption(&machine, &versions), "2 cores of A &#38; B · redis 7.0");
    }
}
