//! Each way in which a history without a loss can be bad.

use super::super::{Rule, judge};
use super::Story;
use crate::History;
use crate::history::{Announced, Ending, Entry, Final, Op, Outcome, Seen, Told};

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
fn a_history_can_be_written_and_read_again() {
    let story = Story::good().term("scheduler-1", 4, 50_000, Ending::Open).fault("redis", 1, 2);
    let mut file = Vec::new();
    for entry in &story.0 {
        crate::history::write(&mut file, entry).unwrap();
    }
    assert_eq!(History::read(file.as_slice()).unwrap(), story.0.into_iter().collect());
    assert!(History::read("nonsense".as_bytes()).is_err());
}

#[test]
fn a_line_whose_end_nobody_saw_is_too_little_to_judge() {
    let mut entries = Story::good().0;
    entries.retain(|entry| !matches!(entry, Entry::Final(_)));
    assert_eq!(Story(entries).breaks(), [Rule::Vacuity]);
}

#[test]
fn a_run_in_which_hardly_anybody_is_let_in_is_too_little_to_judge() {
    let of = |people| {
        let mut story = Story::good().term("scheduler-1", 1, 90_000, Ending::Open);
        if let Some(Entry::Setup(setup)) = story.0.first_mut() {
            setup.people = people;
        }
        story.breaks()
    };
    assert_eq!(of(2), []);
    assert_eq!(of(3), [Rule::Vacuity]);
}
