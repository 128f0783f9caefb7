//! Hand-written histories: a clean one, and one for each violation.

mod data_loss;
mod lanes;
mod openings;
mod responses;
mod rules;
mod uniqueness;

use super::{Rule, judge};
use crate::History;
use crate::history::{
    Call, Entry, EventKind, Fault, FaultKind, FinalState, ItemSetup, ObservedEvent, Op, Outcome,
    ReplyFields, Setup, Term, TermEnd, TicketNumber,
};

/// Builds a history. At most two entries; events are in the order in which they are added.
struct HistoryBuilder(Vec<Entry>);

impl HistoryBuilder {
    fn new() -> Self {
        let item = ItemSetup {
            item: "concert".into(),
            max_active: Some(2),
            stock: 10,
            ..ItemSetup::default()
        };
        Self::with_item(item)
    }

    fn with_item(item: ItemSetup) -> Self {
        let items = vec![item];
        let (from, calm_from, to, max_staleness) =
            (0, 90_000, 100_000, Setup::default_max_staleness());
        let (max_delivery, users) = (Setup::default_max_delivery(), 0);
        let setup = Setup {
            seed: 1,
            from,
            calm_from,
            to,
            lease: 2_000,
            max_staleness,
            max_delivery,
            clock_skew: 0,
            users,
            items,
        };
        Self(vec![Entry::Setup(setup)])
    }

    /// Kim and Lee join, are admitted and order; the final state is empty.
    fn good() -> Self {
        Self::new()
            .joined("kim", 1, 10)
            .joined("lee", 2, 20)
            .activated("kim", 1, 1)
            .polled("kim", 1, "ENTERABLE", 40)
            .activated("lee", 2, 1)
            .polled("lee", 2, "ENTERABLE", 50)
            .closed("kim", 1, "COMPLETED")
            .polled("kim", 1, "COMPLETED", 60)
            .closed("lee", 2, "COMPLETED")
            .ended(0, 0)
    }

    fn with(mut self, entry: Entry) -> Self {
        self.0.push(entry);
        self
    }

    fn call(
        self,
        op: Op,
        user: &str,
        number: impl Into<TicketNumber>,
        at: u64,
        outcome: Outcome,
    ) -> Self {
        let (user, item, number) = (user.into(), "concert".into(), Some(number.into()));
        let (code, from, to) = (None, at, at + 5);
        self.with(Entry::Call(Call { op, user, item, number, code, from, to, outcome }))
    }

    fn joined(self, user: &str, number: impl Into<TicketNumber>, at: u64) -> Self {
        let number = number.into();
        let reply = ReplyFields {
            number: Some(number),
            status: Some("WAITING".into()),
            ..ReplyFields::default()
        };
        self.call(Op::Join, user, number, at, Outcome::Ok(reply))
    }

    fn polled(self, user: &str, number: impl Into<TicketNumber>, status: &str, at: u64) -> Self {
        let number = number.into();
        let reply = ReplyFields {
            number: Some(number),
            status: Some(status.into()),
            ..ReplyFields::default()
        };
        self.call(Op::Poll, user, number, at, Outcome::Ok(reply))
    }

    fn refused(self, user: &str, number: u64, status: u16) -> Self {
        let code = "X".to_owned();
        let outcome = match status {
            503 => Outcome::Unavailable { code, after: Some(1) },
            500.. => Outcome::Malformed { status, what: code },
            _ => Outcome::Refused { status, code },
        };
        self.call(Op::Poll, user, number, 80, outcome)
    }

    fn observed(&self, event: EventKind, user: &str, number: TicketNumber) -> ObservedEvent {
        let place = self.0.len() as u64;
        ObservedEvent {
            event,
            id: format!("{event:?} {number}"),
            item: "concert".into(),
            user: user.into(),
            number,
            at: 1_000 + place,
            expires: (event == EventKind::Activated).then_some(60_000),
            reason: None,
            epoch: None,
            sequence: format!("{:016}-0", 1_000 + place),
            partition: 0,
            offset: place.cast_signed(),
            received_at: 1_000 + place,
        }
    }

    fn activated(self, user: &str, number: impl Into<TicketNumber>, epoch: u64) -> Self {
        let observed = ObservedEvent {
            epoch: Some(epoch),
            ..self.observed(EventKind::Activated, user, number.into())
        };
        self.with(Entry::Event(observed))
    }

    fn closed(self, user: &str, number: impl Into<TicketNumber>, reason: &str) -> Self {
        let observed = ObservedEvent {
            reason: Some(reason.into()),
            ..self.observed(EventKind::Closed, user, number.into())
        };
        self.with(Entry::Event(observed))
    }

    fn ended(self, waiting: u64, entered: u64) -> Self {
        let (item, version, stock) = ("concert".into(), None, 10);
        self.with(Entry::Final(FinalState { item, version, stock, waiting, entered }))
    }

    fn term(self, member: &str, epoch: u64, to: u64, end: TermEnd) -> Self {
        let member = member.into();
        self.with(Entry::Term(Term { member, epoch, from: to - 10_000, to, end }))
    }

    fn fault(self, target: &str, from: u64, to: u64) -> Self {
        let (what, target) = (FaultKind::Pause, target.into());
        self.with(Entry::Fault(Fault { what, target, from, to }))
    }

    /// Sets the time of the last event.
    fn at(mut self, at: u64) -> Self {
        if let Some(Entry::Event(observed)) = self.0.last_mut() {
            let expires = observed.expires.map(|_| at + 8_000);
            (observed.at, observed.sequence, observed.expires) =
                (at, format!("{at:016}-0"), expires);
        }
        self
    }

    /// The violated rules.
    fn violated_rules(self) -> Vec<Rule> {
        let history: History = self.0.into_iter().collect();
        let mut rules: Vec<_> =
            judge(&history).unwrap().violations.iter().map(|found| found.rule).collect();
        rules.dedup();
        rules
    }
}
