//! One lane per process with its terms and faults.

use std::fmt::Write as _;

use super::{LEADERS, LEFT, RIGHT, Time, WIDTH};
use crate::History;
use crate::history::{Fault, FaultKind, Millis, Term};

const LANE: f64 = 24.0;
const BAR: f64 = 16.0;

/// Draws all lanes and returns the y coordinate of their end.
pub(super) fn draw(svg: &mut String, history: &History, time: &Time, top: f64) -> f64 {
    let mut y = top;
    for name in names(history) {
        let _ = writeln!(
            svg,
            r##"<text x="{:.1}" y="{:.1}" text-anchor="end">{name}</text>
<line x1="{LEFT}" x2="{:.1}" y1="{:.1}" y2="{:.1}" stroke="#ddd"/>"##,
            LEFT - 10.0,
            y + 13.0,
            WIDTH - RIGHT,
            y + BAR / 2.0,
            y + BAR / 2.0,
        );
        let terms = history.terms.iter().zip(1..).filter(|(term, _)| term.member == name);
        terms.for_each(|(of, count)| term(svg, of, count, time, y));
        let faults = history.faults.iter().filter(|fault| fault.target == name);
        faults.for_each(|of| fault(svg, of, time, y));
        y += LANE;
    }
    legend(svg, y + 4.0);
    y + 10.0
}

/// Servers first, then all processes with terms or faults.
fn names(history: &History) -> Vec<String> {
    let targets = history.faults.iter().map(|fault| fault.target.clone());
    let mut members: Vec<String> =
        targets.chain(history.terms.iter().map(|term| term.member.clone())).collect();
    members.extend(["redis".to_owned(), "kafka".to_owned()]);
    members.sort_by_key(|name| (rank(name), name.clone()));
    members.dedup();
    members
}

fn rank(name: &str) -> usize {
    let order = ["redis", "kafka", "scheduler", "api", "consumer"];
    order.iter().position(|start| name.starts_with(start)).unwrap_or(order.len())
}

/// A colour per scheduler.
pub(super) fn colour_of(member: &str) -> &'static str {
    let number = member.rsplit('-').next().and_then(|number| number.parse::<usize>().ok());
    LEADERS[number.unwrap_or(1).saturating_sub(1) % LEADERS.len()]
}

/// A time span in a lane.
struct Bar<'a> {
    from: Millis,
    to: Millis,
    /// Distance from the top and bottom of the lane.
    inset: f64,
    colour: &'a str,
    /// Drawn inside if there is room.
    label: &'a str,
}

impl Bar<'_> {
    fn draw(&self, svg: &mut String, time: &Time, y: f64) {
        let Self { inset, colour, label, .. } = self;
        let (x, end) = (time.x(self.from), time.x(self.to));
        let width = (end - x).max(2.0);
        let _ = writeln!(
            svg,
            r#"<rect x="{x:.1}" y="{:.1}" width="{width:.1}" height="{:.1}" rx="2" fill="{colour}" fill-opacity="0.9"/>"#,
            y + inset,
            BAR - 2.0 * inset,
        );
        if width > 6.0 + 5.0 * label.len() as f64 {
            let _ = writeln!(
                svg,
                r##"<text x="{:.1}" y="{:.1}" font-size="9" fill="#fff">{label}</text>"##,
                x + 3.0,
                y + 11.5,
            );
        }
    }
}

fn term(svg: &mut String, term: &Term, count: u32, time: &Time, y: f64) {
    let (label, colour) = (count.to_string(), colour_of(&term.member));
    let bar = Bar { from: term.from, to: term.to, inset: 3.0, colour, label: &label };
    bar.draw(svg, time, y);
}

fn fault(svg: &mut String, fault: &Fault, time: &Time, y: f64) {
    let (label, colour) = (fault.what.name(), colour_of_fault(fault.what));
    Bar { from: fault.from, to: fault.to, inset: 0.0, colour, label }.draw(svg, time, y);
}

fn colour_of_fault(what: FaultKind) -> &'static str {
    match what {
        FaultKind::Kill => "#c8352b",
        FaultKind::Stop => "#8d6e63",
        FaultKind::Pause => "#e08a1e",
        FaultKind::Delay => "#c9b037",
        FaultKind::Reset => "#d1477a",
        FaultKind::HoldReplies => "#7a7a8c",
        FaultKind::HoldAll => "#40404f",
        FaultKind::TrapAdmission => "#6a3d9a",
        FaultKind::Flush | FaultKind::RestartEmpty | FaultKind::Rollback => "#000000",
        FaultKind::FailOver => "#00796b",
        FaultKind::Stall => "#d8d8d8",
    }
}

fn legend(svg: &mut String, y: f64) {
    use FaultKind::{
        Delay, FailOver, Flush, HoldAll, HoldReplies, Kill, Pause, Reset, Stop, TrapAdmission,
    };
    let words = [
        (Kill, "SIGKILL"),
        (Stop, "SIGTERM"),
        (Pause, "SIGSTOP"),
        (Delay, "link delayed"),
        (Reset, "link reset"),
        (HoldReplies, "replies held"),
        (HoldAll, "all traffic held"),
        (TrapAdmission, "admission trapped"),
        (Flush, "total data loss"),
        (FailOver, "fail-over"),
    ];
    let mut x = LEFT;
    for (what, words) in words {
        x = explain(svg, x, y, colour_of_fault(what), words);
    }
    explain(svg, x, y, LEADERS[0], "leader, with the number of the term");
}

/// One entry of the legend; returns the x coordinate of the next.
fn explain(svg: &mut String, x: f64, y: f64, colour: &str, words: &str) -> f64 {
    let _ = writeln!(
        svg,
        r##"<rect x="{x:.1}" y="{y:.1}" width="10" height="10" rx="2" fill="{colour}"/>
<text x="{:.1}" y="{:.1}" font-size="11" fill="#555">{words}</text>"##,
        x + 15.0,
        y + 9.0
    );
    x + 30.0 + 5.8 * words.len() as f64
}
