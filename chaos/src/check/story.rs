//! Histories written by hand: a good one, and each way in which one can be bad.

mod answers;
mod losses;
mod places;
mod rules;

use super::{Rule, judge};
use crate::History;
use crate::history::{
    Call, Ending, Entry, Fault, FaultKind, Final, ItemSetup, Kind, Op, Outcome, Seen, Setup, Term,
    Told,
};

/// A history in the making. Room is for two; events happen in the order in which they are written.
struct Story(Vec<Entry>);

impl Story {
    fn new() -> Self {
        let items = vec![ItemSetup { item: "concert".into(), max_active: Some(2), stock: 10 }];
        let (from, calm, to, old_news) = (0, 90_000, 100_000, Setup::usual_old_news());
        let (on_its_way, people) = (Setup::usual_way(), 0);
        let setup =
            Setup { seed: 1, from, calm, to, lease: 2_000, old_news, on_its_way, people, items };
        Self(vec![Entry::Setup(setup)])
    }

    /// Kim and Lee come, are let in and order; an operator sees nobody at the end.
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

    fn call(self, op: Op, user: &str, number: u64, at: u64, outcome: Outcome) -> Self {
        let (user, item, number) = (user.into(), "concert".into(), Some(number));
        self.with(Entry::Call(Call { op, user, item, number, from: at, to: at + 5, outcome }))
    }

    fn joined(self, user: &str, number: u64, at: u64) -> Self {
        let seen = Seen { number: Some(number), status: Some("WAITING".into()), ..Seen::default() };
        self.call(Op::Join, user, number, at, Outcome::Ok(seen))
    }

    fn polled(self, user: &str, number: u64, status: &str, at: u64) -> Self {
        let seen = Seen { number: Some(number), status: Some(status.into()), ..Seen::default() };
        self.call(Op::Poll, user, number, at, Outcome::Ok(seen))
    }

    fn refused(self, user: &str, number: u64, status: u16) -> Self {
        let code = "X".to_owned();
        let outcome = match status {
            503 => Outcome::Later { code, after: Some(1) },
            500.. => Outcome::Broken { status, what: code },
            _ => Outcome::Refused { status, code },
        };
        self.call(Op::Poll, user, number, 80, outcome)
    }

    fn told(&self, event: Kind, user: &str, number: u64) -> Told {
        let place = self.0.len() as u64;
        Told {
            event,
            id: format!("{event:?} {number}"),
            item: "concert".into(),
            user: user.into(),
            number,
            at: 1_000 + place,
            expires: (event == Kind::Activated).then_some(60_000),
            reason: None,
            epoch: None,
            sequence: format!("{:016}-0", 1_000 + place),
            partition: 0,
            offset: place.cast_signed(),
            heard: 1_000 + place,
        }
    }

    fn activated(self, user: &str, number: u64, epoch: u64) -> Self {
        let told = Told { epoch: Some(epoch), ..self.told(Kind::Activated, user, number) };
        self.with(Entry::Told(told))
    }

    fn closed(self, user: &str, number: u64, reason: &str) -> Self {
        let told = Told { reason: Some(reason.into()), ..self.told(Kind::Closed, user, number) };
        self.with(Entry::Told(told))
    }

    fn ended(self, waiting: u64, entered: u64) -> Self {
        let (item, version, stock) = ("concert".into(), None, 10);
        self.with(Entry::Final(Final { item, version, stock, waiting, entered }))
    }

    fn term(self, member: &str, epoch: u64, to: u64, ending: Ending) -> Self {
        let member = member.into();
        self.with(Entry::Term(Term { member, epoch, from: to - 10_000, to, ending }))
    }

    fn fault(self, target: &str, from: u64, to: u64) -> Self {
        let (what, target) = (FaultKind::Pause, target.into());
        self.with(Entry::Fault(Fault { what, target, from, to }))
    }

    /// The latest event was at this moment.
    fn at(mut self, at: u64) -> Self {
        if let Some(Entry::Told(told)) = self.0.last_mut() {
            let expires = told.expires.map(|_| at + 8_000);
            (told.at, told.sequence, told.expires) = (at, format!("{at:016}-0"), expires);
        }
        self
    }

    /// Which rules it breaks.
    fn breaks(self) -> Vec<Rule> {
        let history: History = self.0.into_iter().collect();
        let mut rules: Vec<_> =
            judge(&history).unwrap().violations.iter().map(|found| found.rule).collect();
        rules.dedup();
        rules
    }
}
