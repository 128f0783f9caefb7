//! One lane per process: when it led, and when it was broken.

use std::fmt::Write as _;

use super::{LEADERS, LEFT, RIGHT, Time, WIDTH};
use crate::History;
use crate::history::{Fault, FaultKind, Term};

const LANE: f64 = 24.0;
const BAR: f64 = 16.0;

/// Draws all lanes and returns where they end.
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
        history
            .terms
            .iter()
            .filter(|term| term.member == name)
            .for_each(|of| term(svg, of, time, y));
        let faults = history.faults.iter().filter(|fault| fault.target == name);
        faults.for_each(|of| fault(svg, of, time, y));
        y += LANE;
    }
    legend(svg, y + 4.0);
    y + 10.0
}

/// Servers first, then everybody who led or was broken.
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

fn term(svg: &mut String, term: &Term, time: &Time, y: f64) {
    let (x, end) = (time.x(term.from), time.x(term.to));
    let (width, colour) = ((end - x).max(1.5), colour_of(&term.member));
    let _ = writeln!(
        svg,
        r#"<rect x="{x:.1}" y="{:.1}" width="{width:.1}" height="10" rx="2" fill="{colour}" fill-opacity="0.85"/>"#,
        y + 3.0
    );
    if width > 16.0 {
        let _ = writeln!(
            svg,
            r##"<text x="{:.1}" y="{:.1}" font-size="9" fill="#fff">{}</text>"##,
            x + 3.0,
            y + 11.5,
            term.epoch
        );
    }
}

fn fault(svg: &mut String, fault: &Fault, time: &Time, y: f64) {
    let (x, end) = (time.x(fault.from), time.x(fault.to));
    let (width, colour) = ((end - x).max(2.0), colour_of_fault(fault.what));
    let _ = writeln!(
        svg,
        r##"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{BAR}" rx="2" fill="{colour}" fill-opacity="0.9"/>"##
    );
    if width > 24.0 {
        let _ = writeln!(
            svg,
            r##"<text x="{:.1}" y="{:.1}" font-size="9" fill="#fff">{}</text>"##,
            x + 3.0,
            y + 11.5,
            fault.what.name()
        );
    }
}

fn colour_of_fault(what: FaultKind) -> &'static str {
    match what {
        FaultKind::Kill => "#c8352b",
        FaultKind::Stop => "#8d6e63",
        FaultKind::Pause => "#e08a1e",
        FaultKind::Slow => "#c9b037",
        FaultKind::Cut => "#d1477a",
        FaultKind::Deaf => "#7a7a8c",
        FaultKind::Dead => "#40404f",
    }
}

fn legend(svg: &mut String, y: f64) {
    use FaultKind::{Cut, Dead, Deaf, Kill, Pause, Slow, Stop};
    let words = [
        (Kill, "SIGKILL"),
        (Stop, "SIGTERM"),
        (Pause, "SIGSTOP"),
        (Slow, "slow link"),
        (Cut, "link cut"),
        (Deaf, "answers held back"),
        (Dead, "link dead, looks alive"),
    ];
    let mut x = LEFT;
    for (what, words) in words {
        let colour = colour_of_fault(what);
        let _ = writeln!(
            svg,
            r##"<rect x="{x:.1}" y="{y:.1}" width="10" height="10" rx="2" fill="{colour}"/>
<text x="{:.1}" y="{:.1}" font-size="11" fill="#555">{words}</text>"##,
            x + 15.0,
            y + 9.0
        );
        x += 36.0 + 6.4 * words.len() as f64;
    }
    let _ = writeln!(
        svg,
        r##"<rect x="{x:.1}" y="{y:.1}" width="10" height="10" rx="2" fill="{}"/>
<text x="{:.1}" y="{:.1}" font-size="11" fill="#555">leads (the number is the term's epoch)</text>"##,
        LEADERS[0],
        x + 15.0,
        y + 9.0
    );
}
