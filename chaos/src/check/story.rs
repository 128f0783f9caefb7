//! Histories written by hand: a good one, and each way in which one can be bad.

use super::{Rule, judge};
use crate::History;
use crate::history::{
    Announced, Call, Ending, Entry, Fault, FaultKind, Final, ItemSetup, Kind, Op, Outcome, Seen,
    Setup, Term, Told,
};

/// A history in the making. Room is for two; events happen in the order in which they are written.
struct Story(Vec<Entry>);

impl Story {
    fn new() -> Self {
        let items = vec![ItemSetup { item: "concert".into(), max_active: Some(2), stock: 10 }];
        let (from, calm, to, old_news) = (0, 90_000, 100_000, Setup::usual_old_news());
        let setup = Setup { seed: 1, from, calm, to, lease: 2_000, old_news, items };
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
        let outcome = Outcome::Refused { status, code: "X".into() };
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

    /// Which rules it breaks.
    fn breaks(self) -> Vec<Rule> {
        let history: History = self.0.into_iter().collect();
        let mut rules: Vec<_> =
            judge(&history).unwrap().violations.iter().map(|found| found.rule).collect();
        rules.dedup();
        rules
    }
}

#[test]
fn a_good_history_is_clean() {
    assert_eq!(Story::good().breaks(), []);
}

#[test]
fn a_history_of_nothing_cannot_be_judged() {
    assert!(judge(&History::default()).is_err());
}

#[test]
fn who_is_let_in_before_a_lower_number_is_an_inversion() {
    let story = Story::new().joined("kim", 1, 10).joined("lee", 2, 20);
    let story = story.activated("lee", 2, 1).activated("kim", 1, 1).ended(0, 2);
    assert_eq!(story.breaks(), [Rule::Fifo]);
}

#[test]
fn who_comes_later_and_has_a_lower_number_is_an_inversion() {
    let story = Story::new().joined("lee", 2, 10).joined("kim", 1, 20);
    let story = story.activated("kim", 1, 1).activated("lee", 2, 1).ended(0, 2);
    assert_eq!(story.breaks(), [Rule::Fifo]);
}

#[test]
fn who_comes_at_the_same_time_may_have_any_number() {
    let story = Story::new().joined("lee", 2, 10).joined("kim", 1, 12);
    let story = story.activated("kim", 1, 1).activated("lee", 2, 1).ended(0, 2);
    assert_eq!(story.breaks(), []);
}

#[test]
fn a_second_place_without_the_end_of_the_first_is_one_too_many() {
    let story = Story::new().joined("kim", 1, 10).joined("kim", 2, 20);
    let story = story.activated("kim", 1, 1).closed("kim", 1, "LEFT").activated("kim", 2, 1);
    assert_eq!(story.ended(0, 1).breaks(), []);
    let story = Story::new().joined("kim", 1, 10).joined("kim", 2, 20);
    let story = story.activated("kim", 1, 1).activated("kim", 2, 1).ended(0, 2);
    assert_eq!(story.breaks(), [Rule::Places]);
}

#[test]
fn a_number_of_two_people_is_one_person_too_many() {
    let story = Story::good().polled("lee", 1, "ENTERABLE", 70);
    assert_eq!(story.breaks(), [Rule::Places]);
}

#[test]
fn one_more_than_there_is_room_for_is_too_many() {
    let people = |story: Story| {
        let story = story.joined("kim", 1, 10).joined("lee", 2, 20).joined("park", 3, 30);
        story.activated("kim", 1, 1).activated("lee", 2, 1)
    };
    let story = people(Story::new()).activated("park", 3, 1).ended(0, 3);
    assert_eq!(story.breaks(), [Rule::Capacity]);
    let story = people(Story::new()).closed("kim", 1, "EXPIRED");
    assert_eq!(story.activated("park", 3, 1).ended(0, 2).breaks(), [Rule::Contradictions]);
    let story = people(Story::new()).closed("kim", 1, "LEFT");
    assert_eq!(story.activated("park", 3, 1).ended(0, 2).breaks(), []);
}

#[test]
fn who_is_never_let_in_is_lost() {
    assert_eq!(Story::good().joined("park", 3, 30).breaks(), [Rule::LostPeople]);
    let story = Story::good().joined("park", 3, 30).closed("park", 3, "ABANDONED");
    assert_eq!(story.breaks(), [Rule::LostPeople]);
}

#[test]
fn who_leaves_is_not_lost() {
    let story = Story::good().joined("park", 3, 30);
    let story = story.call(Op::Leave, "park", 3, 40, Outcome::Ok(Seen::default()));
    assert_eq!(story.closed("park", 3, "LEFT").breaks(), []);
}

#[test]
fn a_ticket_that_is_not_known_any_more_is_lost() {
    assert_eq!(Story::good().refused("kim", 1, 410).breaks(), [Rule::LostPeople]);
    assert_eq!(Story::good().refused("kim", 1, 503).breaks(), []);
}

#[test]
fn who_waits_again_is_lost_unless_it_is_old_news() {
    assert_eq!(Story::good().polled("kim", 1, "WAITING", 1_000).breaks(), []);
    assert_eq!(Story::good().polled("kim", 1, "WAITING", 9_000).breaks(), [Rule::LostPeople]);
}

#[test]
fn an_entry_without_an_event_is_a_lost_event() {
    let story = Story::new().joined("kim", 1, 10).polled("kim", 1, "ENTERABLE", 40);
    assert_eq!(story.ended(0, 1).breaks(), [Rule::LostPeople, Rule::LostEvents]);
    assert_eq!(Story::good().ended(0, 1).breaks(), [Rule::LostEvents]);
}

#[test]
fn an_end_without_an_event_is_a_lost_event() {
    let order = |op| {
        let story = Story::new().joined("kim", 1, 10).activated("kim", 1, 1);
        let seen = Seen { released: Some(true), ..Seen::default() };
        story.call(op, "kim", 1, 40, Outcome::Ok(seen)).ended(0, 1)
    };
    assert_eq!(order(Op::Order).breaks(), [Rule::LostEvents]);
    assert_eq!(order(Op::Complete).breaks(), [Rule::LostEvents]);
    assert_eq!(order(Op::Leave).breaks(), [Rule::LostEvents]);
}

#[test]
fn a_repeat_must_be_the_same() {
    let mut entries = Story::good().0;
    let again = entries.iter().rfind(|entry| matches!(entry, Entry::Told(_))).unwrap().clone();
    let Entry::Told(told) = again else { unreachable!() };
    entries.push(Entry::Told(Told { offset: 99, heard: 99, ..told.clone() }));
    assert_eq!(Story(entries.clone()).breaks(), []);
    entries.push(Entry::Told(Told { offset: 100, at: 7, ..told }));
    assert_eq!(Story(entries).breaks(), [Rule::Contradictions]);
}

#[test]
fn what_happened_earlier_must_be_heard_earlier() {
    let story = Story::new().joined("kim", 1, 10).joined("lee", 2, 20);
    let mut story = story.activated("kim", 1, 1).activated("lee", 2, 1).ended(0, 2);
    for entry in &mut story.0 {
        if let Entry::Told(told) = entry {
            told.offset = -told.offset;
        }
    }
    assert_eq!(story.breaks(), [Rule::Contradictions]);
}

#[test]
fn an_admission_in_a_term_that_is_over_is_stale() {
    let story = Story::new().joined("kim", 1, 10).joined("lee", 2, 20);
    let story = story.activated("kim", 1, 2).activated("lee", 2, 1).ended(0, 2);
    assert_eq!(story.breaks(), [Rule::StaleAdmissions]);
}

#[test]
fn a_leader_that_is_well_keeps_its_term() {
    let lost = |story: Story| story.term("scheduler-1", 4, 50_000, Ending::Refused);
    assert_eq!(lost(Story::good()).breaks(), [Rule::Leadership]);
    assert_eq!(lost(Story::good()).fault("scheduler-1", 45_000, 49_000).breaks(), []);
    assert_eq!(lost(Story::good()).fault("redis", 45_000, 49_000).breaks(), []);
    assert_eq!(
        lost(Story::good()).fault("scheduler-2", 45_000, 49_000).breaks(),
        [Rule::Leadership]
    );
    assert_eq!(lost(Story::good()).fault("redis", 30_000, 40_000).breaks(), [Rule::Leadership]);
}

#[test]
fn a_term_has_one_leader() {
    let story = Story::good().term("scheduler-1", 4, 50_000, Ending::Killed);
    let story = story.term("scheduler-2", 4, 60_000, Ending::Open);
    assert_eq!(story.breaks(), [Rule::Leadership]);
}

#[test]
fn what_the_product_service_said_last_must_hold() {
    let (item, at) = ("concert".to_owned(), 5);
    let announced = Announced { item: item.clone(), version: 3, stock: 10, at };
    let held = |version| {
        let end = Final { item: item.clone(), version, stock: 10, waiting: 0, entered: 0 };
        Story::new().with(Entry::Announced(announced.clone())).with(Entry::Final(end))
    };
    assert_eq!(held(Some(3)).breaks(), []);
    assert_eq!(held(Some(2)).breaks(), [Rule::LostEvents]);
}

#[test]
fn while_a_replica_takes_over_nobody_waits_for_long_and_soon_all_are_served() {
    let (what, target) = (FaultKind::FailOver, "redis".to_owned());
    let fault = Entry::Fault(Fault { what, target, from: 30_000, to: 32_000 });
    let asked = |from, took| {
        let (user, item, outcome) =
            ("kim".into(), "concert".into(), Outcome::Unknown("503".into()));
        let call =
            Call { op: Op::Poll, user, item, number: Some(1), from, to: from + took, outcome };
        Story::good().with(fault.clone()).with(Entry::Call(call)).breaks()
    };
    assert_eq!(asked(31_000, 2_000), []);
    assert_eq!(asked(31_000, 2_001), [Rule::Answers]);
    assert_eq!(asked(39_999, 5), []);
    assert_eq!(asked(40_000, 5), [Rule::Answers]);
}

#[test]
fn a_broken_answer_is_one() {
    assert_eq!(Story::good().refused("kim", 1, 500).breaks(), [Rule::Answers]);
}

#[test]
fn a_history_can_be_written_and_read_again() {
    let story = Story::good().term("scheduler-1", 4, 50_000, Ending::Open).fault("redis", 1, 2);
    let mut file = Vec::new();
    for entry in &story.0 {
        crate::history::write(&mut file, entry).unwrap();
    }
    assert_eq!(History::read(file.as_slice()).unwrap(), story.0.into_iter().collect());
    assert!(History::read("nonsense".as_bytes()).is_err());
}

/// Everything is lost at 30,000; Kim was inside, Lee and Park waited.
fn lost() -> Story {
    let fault = Fault { what: FaultKind::Flush, target: "redis".into(), from: 29_990, to: 30_000 };
    let story = Story::new().joined("kim", 1, 10).joined("lee", 2, 20).joined("park", 3, 30);
    story.activated("kim", 1, 1).with(Entry::Fault(fault))
}

impl Story {
    /// The latest event was at this moment.
    fn at(mut self, at: u64) -> Self {
        if let Some(Entry::Told(told)) = self.0.last_mut() {
            let expires = told.expires.map(|_| at + 8_000);
            (told.at, told.sequence, told.expires) = (at, format!("{at:016}-0"), expires);
        }
        self
    }
}

#[test]
fn after_a_loss_whoever_asks_again_is_let_in_again_in_the_old_order() {
    let story = lost().polled("kim", 1, "WAITING", 36_000).polled("lee", 2, "WAITING", 36_000);
    let story = story.polled("park", 3, "WAITING", 36_000);
    let story = story.activated("kim", 1, 5).at(40_000).activated("lee", 2, 5).at(41_000);
    let story = story.closed("kim", 1, "EXPIRED").at(48_000).activated("park", 3, 5).at(49_000);
    assert_eq!(story.ended(0, 2).breaks(), []);
}

#[test]
fn after_a_loss_nobody_who_is_back_is_overtaken() {
    let overtaken = |story: Story| {
        let story = story.polled("park", 3, "WAITING", 36_000).activated("park", 3, 5).at(40_000);
        let story = story.polled("lee", 2, "WAITING", 50_000).activated("lee", 2, 5).at(60_000);
        story.ended(0, 2).breaks()
    };
    assert_eq!(overtaken(lost()), [], "she came when he was inside");
    let back = lost().polled("lee", 2, "WAITING", 37_000);
    assert_eq!(overtaken(back), [Rule::Fifo], "she was back before him");
    let told_by_a_pod = lost().polled("lee", 2, "WAITING", 31_000);
    assert_eq!(overtaken(told_by_a_pod), [], "nobody knows whether the store heard her");
}

#[test]
fn after_a_loss_newcomers_are_behind_everybody_and_have_numbers_of_their_own() {
    let newcomer = |number| {
        let story = lost().polled("lee", 2, "WAITING", 36_000).polled("park", 3, "WAITING", 36_000);
        let story = story.joined("choi", number, 37_000).activated("lee", 2, 5).at(40_000);
        let story = story.activated("park", 3, 5).at(41_000).closed("lee", 2, "LEFT").at(42_000);
        story.activated("choi", number, 5).at(43_000).ended(0, 2).breaks()
    };
    assert_eq!(newcomer(9), []);
    assert!(newcomer(3).contains(&Rule::Places), "this is Park's");
    assert_eq!(newcomer(0), [Rule::Fifo], "he came before them");
}

#[test]
fn a_loss_excuses_nobody_who_kept_asking() {
    let story = lost().polled("lee", 2, "WAITING", 36_000).polled("park", 3, "WAITING", 36_000);
    let story = story.activated("lee", 2, 5).at(40_000);
    assert_eq!(story.ended(0, 1).breaks(), [Rule::LostPeople]);
    let story = lost().refused("lee", 2, 410).activated("lee", 2, 5).at(40_000);
    let story = story.activated("park", 3, 5).at(41_000).ended(0, 2);
    assert_eq!(story.breaks(), [Rule::LostPeople]);
}

#[test]
fn a_loss_takes_along_what_nobody_had_heard_yet_and_nothing_later() {
    let inside = |at| {
        let story = lost().joined("choi", 9, 38_000).polled("choi", 9, "ENTERABLE", at);
        let story = story.activated("lee", 2, 5).at(40_000).activated("park", 3, 5).at(41_000);
        story.closed("choi", 9, "COMPLETED").at(at + 100).ended(0, 2).breaks()
    };
    assert_eq!(inside(50_000), [Rule::LostPeople, Rule::LostEvents]);
    let story =
        lost().polled("lee", 2, "ENTERABLE", 29_000).closed("lee", 2, "COMPLETED").at(31_000);
    assert_eq!(story.activated("park", 3, 5).at(41_000).ended(0, 1).breaks(), []);
}
