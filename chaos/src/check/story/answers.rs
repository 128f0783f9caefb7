//! What people may be answered.

use super::super::Rule;
use super::Story;
use crate::history::{Call, Entry, Fault, FaultKind, Op, Outcome};

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
    assert_eq!(asked(29_998, 5), [], "it was on its way");
    assert_eq!(asked(29_990, 5), [Rule::Answers], "before it");
}

#[test]
fn a_broken_answer_is_one() {
    assert_eq!(Story::good().refused("kim", 1, 500).breaks(), [Rule::Answers]);
}

#[test]
fn trouble_without_a_time_to_come_back_is_a_broken_answer() {
    let told = |after| {
        let outcome = Outcome::Later { code: "UNAVAILABLE".into(), after };
        Story::good().call(Op::Poll, "kim", 1, 80, outcome).breaks()
    };
    assert_eq!(told(Some(2)), []);
    assert_eq!(told(None), [Rule::Answers]);
}

#[test]
fn who_asks_for_a_place_is_refused_only_while_items_are_lost() {
    let refused = |what, status, at| {
        let fault = Fault { what, target: "redis".into(), from: 29_990, to: 30_000 };
        let outcome = Outcome::Refused { status, code: "X".into() };
        let (user, item) = ("park".into(), "concert".into());
        let call = Call { op: Op::Join, user, item, number: None, from: at, to: at + 5, outcome };
        Story::good().with(Entry::Fault(fault)).with(Entry::Call(call)).breaks()
    };
    assert_eq!(refused(FaultKind::Flush, 404, 31_000), []);
    assert_eq!(refused(FaultKind::Flush, 404, 20_000), [Rule::Answers]);
    assert_eq!(refused(FaultKind::Flush, 404, 80_000), [Rule::Answers]);
    assert_eq!(refused(FaultKind::Flush, 409, 31_000), [Rule::Answers]);
    assert_eq!(refused(FaultKind::Pause, 404, 31_000), [Rule::Answers]);
}
