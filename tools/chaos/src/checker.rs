//! The rules that every history must satisfy. Each rule reads the whole history and reports violations.
//!
//! Order comes from `ce_sequence`, the position of an event in the store's outbox, and not from clocks, because the time of an
//! event is read by a process before the store commits. Clocks decide only where one call ended before another began; this
//! program reads both times.

mod capacity;
mod coverage;
mod data_loss;
mod delivery_windows;
mod draw;
mod events;
mod fencing;
mod fifo;
mod first_requests;
#[cfg(test)]
mod fixtures;
mod invitations;
mod lane_shares;
mod leadership;
mod lines;
mod lost_tickets;
mod membership;
mod openings;
mod responses;
mod serving_order;
mod uniqueness;

use std::collections::HashSet;
use std::fmt;

use crate::history::Millis;
use crate::{History, Verdict};
use lines::Lines;
use serving_order::ServingOrder;

/// A rule that a history must satisfy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Users are admitted in the order of their joins, and those of a drawn cohort in the order of their ranks.
    Fifo,
    /// A planned opening happens once, and its draw was committed to before the first user joined.
    Openings,
    /// Lanes share the rate by their weights.
    LaneShares,
    /// A code admits as many users as it has uses.
    Invitations,
    /// A user has at most one live ticket per line, and a number belongs to one user.
    UniqueTickets,
    /// Entries never exceed `maxActive` or the stock.
    Capacity,
    /// Every ticket is admitted or ends for a reason its user caused.
    LostTickets,
    /// Every state change of a ticket is published, and every received event takes effect.
    LostEvents,
    /// Events do not contradict each other.
    Contradictions,
    /// No leader admits after a newer term has begun.
    StaleAdmissions,
    /// At most one leader per term, and a leader without a fault keeps its term.
    Leadership,
    /// Errors are 503 with `Retry-After`, and no valid call is refused.
    Responses,
    /// The history contains enough to judge.
    Coverage,
}

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The violated rule.
    pub rule: Rule,
    /// Approximate time.
    pub at: Millis,
    /// Description.
    pub what: String,
}

impl Rule {
    /// All rules in the order of the report.
    pub const ALL: [Self; 13] = [
        Self::Fifo,
        Self::Openings,
        Self::LaneShares,
        Self::Invitations,
        Self::UniqueTickets,
        Self::Capacity,
        Self::LostTickets,
        Self::LostEvents,
        Self::Contradictions,
        Self::StaleAdmissions,
        Self::Leadership,
        Self::Responses,
        Self::Coverage,
    ];

    /// The name in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "FIFO inversions",
            Self::Openings => "contradictory openings and draws",
            Self::LaneShares => "lanes without their share",
            Self::Invitations => "invitation codes used too often",
            Self::UniqueTickets => "two tickets for one user",
            Self::Capacity => "admissions beyond capacity or stock",
            Self::LostTickets => "lost tickets",
            Self::LostEvents => "lost events",
            Self::Contradictions => "contradictory events",
            Self::StaleAdmissions => "admissions by a stale epoch",
            Self::Leadership => "two leaders, or a term lost without a fault",
            Self::Responses => "invalid responses",
            Self::Coverage => "too little to judge",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Checks all rules.
///
/// # Errors
/// If the history has no setup entry.
pub fn judge(history: &History) -> anyhow::Result<Verdict> {
    let setup = history.setup.as_ref();
    let setup = setup.ok_or_else(|| anyhow::anyhow!("the history has no setup entry"))?;
    let lines = Lines::from_history(setup, history);
    let mut violations = Violations::default();
    let openings = serving_order::openings(setup, history, &lines.losses);
    let order = ServingOrder::from_openings(&openings, &lines.losses);
    fifo::judge(history, &lines, &order, &mut violations);
    openings::judge(setup, history, &lines, (&openings, &order), &mut violations);
    let shares = lane_shares::judge(setup, history, &lines, &mut violations);
    invitations::judge(history, &lines.losses, &mut violations);
    uniqueness::judge(history, &lines, &mut violations);
    capacity::judge(setup, history, &lines, &mut violations);
    lost_tickets::judge(setup, history, &lines, &mut violations);
    events::judge(history, &lines, &mut violations);
    fencing::judge(&lines, &mut violations);
    leadership::judge(setup, history, &mut violations);
    responses::judge(history, &lines.losses, &mut violations);
    coverage::judge(setup, history, shares, &mut violations);
    violations.0.sort();
    // Several calls may show the same violation; report it once.
    let mut known = HashSet::new();
    violations.0.retain(|violation| known.insert((violation.rule, violation.what.clone())));
    Ok(Verdict::new(history, violations.0))
}

/// The violations found so far.
#[derive(Debug, Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, rule: Rule, at: Millis, what: String) {
        self.0.push(Violation { rule, at, what });
    }
}
