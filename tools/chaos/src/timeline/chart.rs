//! A bar chart per second.

use std::fmt::Write as _;

use super::{LEFT, RIGHT, Time, WIDTH};

const HEIGHT: f64 = 84.0;

/// A chart of stacked bars, one stack per second.
pub(super) struct Chart<'a> {
    pub(super) name: &'a str,
    pub(super) hint: &'a str,
    /// Colours and counts by second.
    pub(super) bars: &'a [Vec<(&'static str, u64)>],
}

impl Chart<'_> {
    /// Draws the chart and returns the y coordinate of the next.
    pub(super) fn draw(&self, svg: &mut String, time: &Time, y: f64) -> f64 {
        let sum = |stack: &Vec<(&str, u64)>| stack.iter().map(|(_, count)| count).sum::<u64>();
        let most = self.bars.iter().map(sum).max().unwrap_or(0).max(1);
        let floor = y + HEIGHT;
        let _ = writeln!(
            svg,
            r##"<text x="{0:.1}" y="{1:.1}" text-anchor="end" font-weight="600">{2}</text>
<text x="{0:.1}" y="{3:.1}" text-anchor="end" fill="#777" font-size="11">most {most}</text>
<text x="{LEFT}" y="{4:.1}" fill="#777" font-size="11">{5}</text>
<line x1="{LEFT}" x2="{6:.1}" y1="{floor:.1}" y2="{floor:.1}" stroke="#bbb"/>"##,
            LEFT - 10.0,
            y + 30.0,
            self.name,
            y + 46.0,
            y - 4.0,
            self.hint,
            WIDTH - RIGHT,
        );
        let width = ((WIDTH - LEFT - RIGHT) / time.seconds() as f64 - 0.4).max(0.6);
        for (second, stack) in self.bars.iter().enumerate() {
            let x = time.x(time.from + second as u64 * 1_000);
            let mut top = floor;
            for (colour, count) in stack {
                let height = (HEIGHT - 6.0) * *count as f64 / most as f64;
                top -= height;
                let _ = writeln!(
                    svg,
                    r#"<rect x="{x:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}" fill="{colour}"/>"#
                );
            }
        }
        floor + 26.0
    }
}
