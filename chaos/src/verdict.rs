//! What was found, for people.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use crate::History;
use crate::check::{Rule, Violation};
use crate::history::{Kind, Op, Outcome};

/// So many violations of a rule are shown.
const SHOWN: usize = 5;

/// What a history has shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Must be empty.
    pub violations: Vec<Violation>,
    seed: u64,
    tally: Vec<(&'static str, u64)>,
    faults: BTreeMap<(String, &'static str), u64>,
}

impl Verdict {
    pub(crate) fn of(history: &History, violations: Vec<Violation>) -> Self {
        let seed = history.setup.as_ref().map_or(0, |setup| setup.seed);
        let mut faults = BTreeMap::new();
        for fault in &history.faults {
            let target = fault.target.trim_end_matches(|c: char| c == '-' || c.is_ascii_digit());
            *faults.entry((target.to_owned(), fault.what.name())).or_default() += 1;
        }
        Self { violations, seed, tally: tally(history), faults }
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// How many violations of a rule there are.
    #[must_use]
    pub fn count(&self, rule: Rule) -> usize {
        self.of_rule(rule).count()
    }

    fn of_rule(&self, rule: Rule) -> impl Iterator<Item = &Violation> {
        self.violations.iter().filter(move |violation| violation.rule == rule)
    }

    /// What was judged, in one line.
    #[must_use]
    pub fn tally(&self) -> String {
        let tally = self.tally.iter().map(|(what, count)| format!("{count} {what}"));
        tally.collect::<Vec<_>>().join(", ")
    }

    /// One line.
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

/// What the history consists of: a verdict on nothing is worth nothing.
fn tally(history: &History) -> Vec<(&'static str, u64)> {
    let calls = |is: &dyn Fn(&Outcome) -> bool| {
        history.calls.iter().filter(|call| is(&call.outcome)).count() as u64
    };
    let of = |op: Op| history.calls.iter().filter(|call| call.op == op).count() as u64;
    let people: HashSet<_> = history.calls.iter().map(|call| (&call.item, &call.user)).collect();
    let first: HashSet<_> = history.told.iter().map(|told| (told.event, &told.id)).collect();
    let told = |kind| first.iter().filter(|(event, _)| *event == kind).count() as u64;
    vec![
        ("people", people.len() as u64),
        ("calls", history.calls.len() as u64),
        ("joins", of(Op::Join)),
        ("polls", of(Op::Poll)),
        ("refused", calls(&|outcome| matches!(outcome, Outcome::Refused { .. }))),
        ("unknown", calls(&Outcome::is_unsure)),
        ("let in", told(Kind::Activated)),
        ("ended", told(Kind::Closed)),
        ("repeats", (history.told.len() - first.len()) as u64),
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
            for violation in self.of_rule(rule).take(SHOWN) {
                writeln!(f, "            {}", violation.what)?;
            }
        }
        write!(f, "{}", self.headline())
    }
}
