//! The result of a check as text.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use crate::History;
use crate::checker::{Rule, Violation};
use crate::history::{EventKind, Op, Outcome};

/// Violations shown per rule.
const MAX_SHOWN: usize = 5;

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Empty if the run is clean.
    pub violations: Vec<Violation>,
    seed: u64,
    tally: Vec<(&'static str, u64)>,
    faults: BTreeMap<(String, &'static str), u64>,
}

impl Verdict {
    pub(crate) fn new(history: &History, violations: Vec<Violation>) -> Self {
        let seed = history.setup.as_ref().map_or(0, |setup| setup.seed);
        let mut faults = BTreeMap::new();
        for fault in &history.faults {
            let target = fault.target.trim_end_matches(|c: char| c == '-' || c.is_ascii_digit());
            *faults.entry((target.to_owned(), fault.what.name())).or_default() += 1;
        }
        Self { violations, seed, tally: tally(history), faults }
    }

    /// Whether there is no violation.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// Number of violations of a rule.
    #[must_use]
    pub fn count(&self, rule: Rule) -> usize {
        self.of_rule(rule).count()
    }

    fn of_rule(&self, rule: Rule) -> impl Iterator<Item = &Violation> {
        self.violations.iter().filter(move |violation| violation.rule == rule)
    }

    /// The size of the history in one line.
    #[must_use]
    pub fn tally(&self) -> String {
        let tally = self.tally.iter().map(|(what, count)| format!("{count} {what}"));
        tally.collect::<Vec<_>>().join(", ")
    }

    /// The result in one line.
    #[must_use]
    pub fn headline(&self) -> String {
        let Self { seed, violations, .. } = self;
        match violations.len() {
            0 => format!("seed {seed}: clean"),
            1 => format!("seed {seed}: 1 VIOLATION"),
            some => format!("seed {seed}: {some} VIOLATIONS"),
        }
    }
}

/// The size of the history, which shows how much the verdict covers.
fn tally(history: &History) -> Vec<(&'static str, u64)> {
    let calls = |is: &dyn Fn(&Outcome) -> bool| {
        history.calls.iter().filter(|call| is(&call.outcome)).count() as u64
    };
    let of = |op: Op| history.calls.iter().filter(|call| call.op == op).count() as u64;
    let users: HashSet<_> = history.calls.iter().map(|call| (&call.item, &call.user)).collect();
    let first: HashSet<_> = history.events.iter().map(|event| (event.event, &event.id)).collect();
    let event = |kind| first.iter().filter(|(event, _)| *event == kind).count() as u64;
    vec![
        ("users", users.len() as u64),
        ("calls", history.calls.len() as u64),
        ("joins", of(Op::Join)),
        ("polls", of(Op::Poll)),
        ("refused", calls(&|outcome| matches!(outcome, Outcome::Refused { .. }))),
        ("unknown", calls(&Outcome::has_unknown_effect)),
        ("admitted", event(EventKind::Activated)),
        ("ended", event(EventKind::Closed)),
        ("repeats", (history.events.len() - first.len()) as u64),
        ("terms", history.terms.len() as u64),
        ("faults", history.faults.len() as u64),
    ]
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.tally())?;
        let faults = self.faults.iter();
        let faults = faults.map(|((target, what), count)| format!("{count}x {what} {target}"));
        writeln!(f, "faults: {}", faults.collect::<Vec<_>>().join(", "))?;
        for rule in Rule::ALL {
            let count = self.count(rule);
            writeln!(f, "  {} {count:>5} {rule}", if count == 0 { "ok " } else { "BAD" })?;
            for violation in self.of_rule(rule).take(MAX_SHOWN) {
                writeln!(f, "            {}", violation.what)?;
            }
        }
        write!(f, "{}", self.headline())
    }
}
