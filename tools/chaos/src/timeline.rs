//! Draws a run as an SVG: faults, terms, admissions, waiting users and errors over time.

mod chart;
mod counts;
mod lanes;

use std::fmt::Write as _;

use crate::history::{Millis, Setup};
use crate::{History, Verdict};
use chart::Chart;
use counts::Counts;

const WIDTH: f64 = 1_280.0;
const LEFT: f64 = 116.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 92.0;

/// One colour per scheduler.
const LEADERS: [&str; 3] = ["#3b6fb6", "#2a9d8f", "#8a5fb0"];

/// Draws the SVG.
#[must_use]
pub fn draw(history: &History, verdict: &Verdict) -> String {
    let Some(setup) = &history.setup else { return String::new() };
    let time = Time { from: setup.from, to: setup.to.max(setup.from + 1) };
    let mut body = String::new();
    let lanes_end = lanes::draw(&mut body, history, &time, TOP);
    let counts = Counts::from_history(history, &time);
    let mut y = lanes_end + 34.0;
    for chart in charts(&counts) {
        y = chart.draw(&mut body, &time, y);
    }
    axis(&mut body, &time, setup, y);
    openings(&mut body, history, &time, y);
    marks(&mut body, verdict, &time, y);
    let height = y + 46.0;
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif" font-size="12" fill="#333">
<rect width="100%" height="100%" fill="#fff"/>"##
    );
    calm(&mut svg, &time, setup, y);
    title(&mut svg, history, verdict);
    svg.push_str(&body);
    svg.push_str("</svg>\n");
    svg
}

fn charts(counts: &Counts) -> [Chart<'_>; 4] {
    [
        Chart {
            name: "admissions / s",
            hint: "by leader; grey: direct admissions",
            bars: &counts.admitted,
        },
        Chart {
            name: "lanes / s",
            hint: "admissions of lines with lanes; blue: the standard lane",
            bars: &counts.lanes,
        },
        Chart { name: "waiting", hint: "users", bars: &counts.waiting },
        Chart { name: "errors / s", hint: "no response, or 503", bars: &counts.errors },
    ]
}

/// Maps times to x coordinates.
struct Time {
    from: Millis,
    to: Millis,
}

impl Time {
    fn x(&self, at: Millis) -> f64 {
        let part = at.clamp(self.from, self.to) - self.from;
        LEFT + (WIDTH - LEFT - RIGHT) * part as f64 / (self.to - self.from) as f64
    }

    /// Number of seconds, rounded up.
    fn seconds(&self) -> usize {
        usize::try_from((self.to - self.from).div_ceil(1_000)).unwrap_or(usize::MAX)
    }

    /// The second of a time; `None` outside of the run.
    fn second(&self, at: Millis) -> Option<usize> {
        let since = at.checked_sub(self.from)?;
        usize::try_from(since / 1_000).ok().filter(|second| *second < self.seconds())
    }
}

fn title(svg: &mut String, history: &History, verdict: &Verdict) {
    let colour = if verdict.is_clean() { "#2a9d8f" } else { "#c8352b" };
    let headline = verdict.headline();
    let tally = verdict.tally();
    let seconds = history.setup.as_ref().map_or(0, |setup| (setup.calm_from - setup.from) / 1_000);
    let _ = writeln!(
        svg,
        r#"<rect x="16" y="16" width="8" height="46" rx="2" fill="{colour}"/>
<text x="34" y="36" font-size="18" font-weight="600" fill="{colour}">{headline}</text>
<text x="34" y="56">{seconds} s of faults, then calm. {tally}</text>"#
    );
}

/// The time after the last fault.
fn calm(svg: &mut String, time: &Time, setup: &Setup, bottom: f64) {
    let (x, top) = (time.x(setup.calm_from), TOP - 14.0);
    let (width, height) = (WIDTH - RIGHT - x, bottom - top);
    let _ = writeln!(
        svg,
        r##"<rect x="{x:.1}" y="{top}" width="{width:.1}" height="{height:.1}" fill="#eef7f1"/>
<text x="{:.1}" y="{:.1}" fill="#5f8f72">calm</text>"##,
        x + 6.0,
        top + 12.0,
    );
}

fn axis(svg: &mut String, time: &Time, setup: &Setup, y: f64) {
    let step = match time.seconds() {
        0..60 => 5,
        60..150 => 10,
        _ => 30,
    };
    for second in (0..=time.seconds() as u64).step_by(step) {
        let x = time.x(setup.from + second * 1_000);
        let _ = writeln!(
            svg,
            r##"<line x1="{x:.1}" x2="{x:.1}" y1="{:.1}" y2="{y:.1}" stroke="#000" stroke-opacity="0.06"/>
<text x="{x:.1}" y="{:.1}" text-anchor="middle">{second} s</text>"##,
            TOP - 14.0,
            y + 18.0,
        );
    }
}

/// The times of openings, where they were planned.
fn openings(svg: &mut String, history: &History, time: &Time, bottom: f64) {
    let items = history.setup.iter().flat_map(|setup| &setup.items);
    for (item, opening) in items.filter_map(|item| Some((&item.item, item.opening.as_ref()?))) {
        let x = time.x(opening.opens_at);
        let _ = writeln!(
            svg,
            r##"<line x1="{x:.1}" x2="{x:.1}" y1="{:.1}" y2="{bottom:.1}" stroke="#6a3d9a" stroke-dasharray="4 3"/>
<text x="{:.1}" y="{:.1}" font-size="11" fill="#6a3d9a">{item} opens</text>"##,
            TOP - 14.0,
            x + 4.0,
            TOP - 4.0,
        );
    }
}

/// The times of violations.
fn marks(svg: &mut String, verdict: &Verdict, time: &Time, bottom: f64) {
    for violation in verdict.violations.iter().take(200) {
        let x = time.x(violation.at);
        let _ = writeln!(
            svg,
            r##"<line x1="{x:.1}" x2="{x:.1}" y1="{:.1}" y2="{bottom:.1}" stroke="#c8352b" stroke-opacity="0.5" stroke-width="1.5"/>"##,
            TOP - 14.0,
        );
    }
}
