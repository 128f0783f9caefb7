//! Draws the samples of a soak: one chart per size.

use std::fmt::Write as _;

use super::report::{SoakReport, format_size};

const WIDTH: f64 = 1_000.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 110.0;
const HEIGHT: f64 = 56.0;
const TOP: f64 = 70.0;

/// Draws an SVG.
pub(super) fn draw(report: &SoakReport) -> String {
    let (mut body, mut y) = (String::new(), TOP);
    let end = report.samples.last().map_or(1.0, |last| last.at.as_secs_f64().max(1.0));
    for row in report.rows() {
        let points: Vec<(f64, f64)> = report
            .samples
            .iter()
            .filter_map(|sample| Some((sample.at.as_secs_f64(), *sample.sizes.get(&row.name)?)))
            .collect();
        chart(&mut body, &row.name, &points, end, y);
        y += HEIGHT + 14.0;
    }
    let colour = if report.passed() { "#2a9d8f" } else { "#c8352b" };
    let words = report.verdict();
    let (rate, minutes, height) = (report.rate, end / 60.0, y + 16.0);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif" font-size="12" fill="#333">
<rect width="100%" height="100%" fill="#fff"/>
<text x="16" y="34" font-size="18" font-weight="600" fill="{colour}">{minutes:.1} minutes at {rate:.0} requests/s: {words}</text>
{body}</svg>
"##
    )
}

/// The axis begins at 0, so that a flat curve means no growth.
fn chart(svg: &mut String, name: &str, points: &[(f64, f64)], end: f64, y: f64) {
    let most = points.iter().map(|(_, size)| *size).fold(1.0, f64::max);
    let ticket = |(at, size): &(f64, f64)| {
        let x = LEFT + (WIDTH - LEFT - RIGHT) * at / end;
        format!("{x:.1},{:.1}", y + HEIGHT - HEIGHT * size / most)
    };
    let line: Vec<String> = points.iter().map(ticket).collect();
    let latest = points.last().map_or(0.0, |(_, size)| *size);
    let _ = writeln!(
        svg,
        r##"<text x="{0:.1}" y="{1:.1}" text-anchor="end">{name}</text>
<line x1="{LEFT}" x2="{2:.1}" y1="{3:.1}" y2="{3:.1}" stroke="#bbb"/>
<polyline points="{4}" fill="none" stroke="#3b6fb6" stroke-width="1.5"/>
<text x="{5:.1}" y="{1:.1}">{6}</text>"##,
        LEFT - 10.0,
        y + HEIGHT / 2.0,
        WIDTH - RIGHT,
        y + HEIGHT,
        line.join(" "),
        WIDTH - RIGHT + 8.0,
        format_size(name, latest),
    );
}
