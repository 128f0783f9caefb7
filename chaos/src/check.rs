//! What must never be in a history. Each rule reads it by itself and says what it found.
//!
//! Order is taken from `ce_sequence`, the place of an event in the store's outbox, never from clocks:
//! the times of events are those of whoever acted, read before the step was taken. Only where one
//! call was answered before another one was made do clocks decide, and both were read by this
//! program.

mod answers;
mod births;
mod capacity;
mod events;
mod fifo;
mod leadership;
mod lines;
mod losses;
mod people;
mod places;
mod presence;
mod stale;
#[cfg(test)]
mod story;
mod vacuity;
mod ways;

use std::collections::HashSet;
use std::fmt;

use crate::history::Millis;
use crate::{History, Verdict};
use lines::Lines;

/// What a history is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// People are let in in the order in which they came.
    Fifo,
    /// One place per person, one person per place.
    Places,
    /// Nobody is let in beyond the room or the stock.
    Capacity,
    /// Nobody loses their place.
    LostPeople,
    /// Whatever happens to a ticket is told, and whatever was told takes effect.
    LostEvents,
    /// What is told fits together.
    Contradictions,
    /// Nothing happens in a term that is over.
    StaleAdmissions,
    /// One leader at a time, and nobody takes over from one that is well.
    Leadership,
    /// Trouble is told as trouble, and nobody is refused without a reason.
    Answers,
    /// There is enough to judge.
    Vacuity,
}

/// Something that must never be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Of what.
    pub rule: Rule,
    /// About when.
    pub at: Millis,
    /// What was seen.
    pub what: String,
}

impl Rule {
    /// All of them, as they are shown.
    pub const ALL: [Self; 10] = [
        Self::Fifo,
        Self::Places,
        Self::Capacity,
        Self::LostPeople,
        Self::LostEvents,
        Self::Contradictions,
        Self::StaleAdmissions,
        Self::Leadership,
        Self::Answers,
        Self::Vacuity,
    ];

    /// As people read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "FIFO inversions",
            Self::Places => "two places for one person",
            Self::Capacity => "admissions beyond capacity or stock",
            Self::LostPeople => "lost people",
            Self::LostEvents => "lost events",
            Self::Contradictions => "contradictory events",
            Self::StaleAdmissions => "admissions by a stale epoch",
            Self::Leadership => "two leaders, or one deposed without a reason",
            Self::Answers => "broken answers",
            Self::Vacuity => "too little to judge",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Judges a history.
///
/// # Errors
/// If it does not say what was run.
pub fn judge(history: &History) -> anyhow::Result<Verdict> {
    let setup = history.setup.as_ref();
    let setup = setup.ok_or_else(|| anyhow::anyhow!("the history does not say what was run"))?;
    let lines = Lines::of(setup, history);
    let mut found = Findings::default();
    fifo::judge(history, &lines, &mut found);
    places::judge(history, &lines, &mut found);
    capacity::judge(setup, history, &lines, &mut found);
    people::judge(setup, history, &lines, &mut found);
    events::judge(history, &lines, &mut found);
    stale::judge(&lines, &mut found);
    leadership::judge(setup, history, &mut found);
    answers::judge(history, &lines.losses, &mut found);
    vacuity::judge(setup, history, &mut found);
    found.0.sort();
    // Many calls may show the same, and it is told once.
    let mut known = HashSet::new();
    found.0.retain(|violation| known.insert((violation.rule, violation.what.clone())));
    Ok(Verdict::of(history, found.0))
}

/// What the rules have found.
#[derive(Debug, Default)]
struct Findings(Vec<Violation>);

impl Findings {
    fn add(&mut self, rule: Rule, at: Millis, what: String) {
        self.0.push(Violation { rule, at, what });
    }
}
