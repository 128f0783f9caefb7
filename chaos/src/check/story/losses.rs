//! What a loss excuses, and what not.

use super::super::Rule;
use super::Story;
use crate::history::{Entry, Fault, FaultKind, Op, Outcome, Seen};

/// Everything is lost at 30,000; Kim was inside, Lee and Park waited.
pub(super) fn lost() -> Story {
    let fault = Fault { what: FaultKind::Flush, target: "redis".into(), from: 29_990, to: 30_000 };
    let story = Story::new().joined("kim", 1, 10).joined("lee", 2, 20).joined("park", 3, 30);
    story.activated("kim", 1, 1).with(Entry::Fault(fault))
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
    let unexplained = [Rule::LostPeople, Rule::LostEvents, Rule::Contradictions];
    assert_eq!(inside(50_000), unexplained);
    let story =
        lost().polled("lee", 2, "ENTERABLE", 29_000).closed("lee", 2, "COMPLETED").at(31_000);
    assert_eq!(story.activated("park", 3, 5).at(41_000).ended(0, 1).breaks(), []);
}

#[test]
fn what_had_time_to_be_published_is_not_taken_along() {
    let inside = |heard, struck: Option<(&str, u64, u64)>| {
        let story = lost().polled("lee", 2, "ENTERABLE", heard);
        let story =
            struck.into_iter().fold(story, |story, (who, from, to)| story.fault(who, from, to));
        let story = story.closed("lee", 2, "LEFT").at(31_000);
        story.activated("park", 3, 5).at(41_000).ended(0, 1).breaks()
    };
    let unexplained = [Rule::LostPeople, Rule::LostEvents];
    assert_eq!(inside(27_500, None), []);
    assert_eq!(inside(25_000, None), unexplained);
    assert_eq!(inside(12_000, Some(("kafka", 14_000, 24_000))), [], "nobody could hear of it");
    assert_eq!(inside(10_000, Some(("kafka", 14_000, 24_000))), unexplained);
    assert_eq!(inside(12_000, Some(("kafka", 10_000, 15_000))), unexplained, "Kafka was back");
    assert_eq!(inside(25_000, Some(("api-1", 14_000, 29_000))), unexplained);
}

#[test]
fn what_comes_before_something_that_was_published_is_not_taken_along() {
    let story = lost().polled("lee", 2, "ENTERABLE", 28_000).closed("lee", 2, "LEFT").at(31_000);
    let story = story.activated("park", 3, 5).at(29_000).closed("park", 3, "LEFT").at(41_000);
    let published = story.ended(0, 0).breaks();
    assert!(published.contains(&Rule::LostEvents), "{published:?}");
}

#[test]
fn who_came_after_a_loss_has_lost_nothing() {
    let story = lost().polled("lee", 2, "WAITING", 36_000).polled("park", 3, "WAITING", 36_000);
    let story = story.activated("lee", 2, 5).at(40_000).activated("park", 3, 5).at(41_000);
    let left = story.closed("lee", 2, "LEFT").at(42_000).joined("choi", 9, 43_000);
    let story = left.closed("choi", 9, "COMPLETED").at(44_000).ended(0, 1);
    assert_eq!(story.breaks(), [Rule::LostPeople, Rule::Contradictions]);
}

#[test]
fn an_order_that_had_time_to_take_effect_is_not_taken_along() {
    let ordered = |at| {
        let story = lost().call(Op::Order, "kim", 1, at, Outcome::Ok(Seen::default()));
        let story = story.activated("lee", 2, 5).at(40_000).activated("park", 3, 5).at(41_000);
        story.ended(0, 2).breaks()
    };
    assert_eq!(ordered(25_000), []);
    assert_eq!(ordered(20_000), [Rule::LostEvents]);
}

#[test]
fn terms_go_on_where_everything_is_lost_but_not_where_a_replica_takes_over() {
    let admitted = |what| {
        let story = Story::new().joined("kim", 1, 10).joined("lee", 2, 20);
        let fault = Fault { what, target: "redis".into(), from: 29_990, to: 30_000 };
        let story = story.activated("kim", 1, 7).at(1_000).with(Entry::Fault(fault));
        let story = story.polled("kim", 1, "WAITING", 36_000).polled("lee", 2, "WAITING", 36_000);
        let story = story.activated("kim", 1, 6).at(40_000).activated("lee", 2, 6).at(41_000);
        story.ended(0, 2).breaks()
    };
    assert_eq!(admitted(FaultKind::Wipe), [Rule::StaleAdmissions]);
    assert_eq!(admitted(FaultKind::Rollback), []);
}

#[test]
fn an_end_by_time_is_told_before_it_is_written() {
    let ended = |status| {
        let story = lost().polled("kim", 1, status, 29_500).activated("lee", 2, 1).at(29_000);
        let story = story.closed("lee", 2, "COMPLETED").at(29_700);
        story.activated("park", 3, 5).at(41_000).ended(0, 1).breaks()
    };
    assert_eq!(ended("EXPIRED"), [], "the leader had not come by");
    assert_eq!(ended("LEFT"), [Rule::LostEvents], "that was before Lee's end, which was heard of");
}
