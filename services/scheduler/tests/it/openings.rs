//! Openings: when a line opens and closes, in which order its lobby is served, and what a leader that dies
//! leaves to the next one.

use std::collections::HashMap;

use daegi_domain::draw::{Cohort, cohort_root, draw_seed, leaf};
use daegi_domain::{
    Draw, LineEvent, LineState, Number, OpeningChange, Policy, PolicyChange, Reveal, Settings,
    Ticket, TicketKeys, UserId, line_rules,
};
use daegi_scheduler::Ticker;
use daegi_store::{Epoch, Error, PolicyUpdateOutcome, Store};

use crate::harness::{OUTBOX_MAX, START, SchedulerHarness, item, policy, user};

const REVEAL: Reveal = Reveal([7; 32]);

/// Plans an opening; times are RFC 3339 text.
pub(crate) async fn plan(harness: &SchedulerHarness, opening: &str) -> PolicyUpdateOutcome {
    let policy = Policy { ..policy(&format!(r#"{{"opening":{opening}}}"#)) };
    let reveal = opening.contains("draw").then_some(REVEAL);
    let change = PolicyChange { policy, opening: OpeningChange::Replaced, reveal };
    let revision = harness.store.item(&item("concert")).await.unwrap().unwrap().revision;
    let now = harness.clock.now_ms();
    harness.store.set_policy(&item("concert"), &change, revision, now).await.unwrap()
}

fn in_seconds(seconds: u64) -> String {
    daegi_domain::rfc3339(START + seconds * 1000)
}

/// A leader in its first term whose line opens in 60 s.
async fn planned(quota: u32, order: &str) -> (SchedulerHarness, TicketKeys) {
    let keys = TicketKeys::generate();
    let harness = SchedulerHarness::open(quota).await.with_ticket_keys(&keys);
    harness.put("concert", 10_000, "{}").await;
    let opening = format!(r#"{{"opensAt":"{}","order":"{order}"}}"#, in_seconds(60));
    assert!(matches!(plan(&harness, &opening).await, PolicyUpdateOutcome::Changed(_)));
    (harness, keys)
}

pub(crate) async fn state(harness: &SchedulerHarness) -> LineState {
    let stored = harness.store.item(&item("concert")).await.unwrap().unwrap();
    let settings: Settings = harness.store.settings().await.unwrap();
    line_rules::line_state(&stored, true, &settings, harness.clock.now_ms())
}

pub(crate) async fn line_events(store: &dyn Store) -> Vec<LineEvent> {
    let mut events = Vec::new();
    for partition in 0..store.partitions() {
        let batches = store.outbox_read(partition, None, u32::MAX).await.unwrap();
        events.extend(batches.into_iter().filter_map(|batch| batch.line));
    }
    events
}

pub(crate) fn draw_of(events: &[LineEvent]) -> Draw {
    match events {
        [LineEvent::Opened { draw: Some(draw), .. }] => draw.clone(),
        other => panic!("one drawn opening expected: {other:?}"),
    }
}

#[tokio::test]
async fn a_line_opens_with_the_first_tick_at_its_time_and_admits_in_that_tick() {
    let (mut harness, _) = planned(2, "arrival").await;
    harness.join("concert", &["kim", "lee", "park"]).await;
    harness.pass(59);
    assert_eq!(harness.tick().await.admitted, 0);
    assert_eq!(state(&harness).await, LineState::Lobby);
    harness.pass(1);
    assert_eq!(harness.tick().await.admitted, 2);
    assert_eq!(harness.admitted().await, ["kim", "lee"]);
    assert_eq!(state(&harness).await, LineState::Open);
    let opened = LineEvent::Opened { at: START + 60_000, draw: None };
    harness.tick().await;
    assert_eq!(line_events(&*harness.store).await, [opened], "one event");
}

#[tokio::test]
async fn an_empty_line_opens_too() {
    let (mut harness, _) = planned(2, "draw").await;
    harness.tick().await;
    harness.pass(61);
    harness.tick().await;
    assert_eq!(draw_of(&line_events(&*harness.store).await).cohort.unwrap().size, 0);
    assert_eq!(state(&harness).await, LineState::Open);
}

#[tokio::test]
async fn absence_in_the_lobby_does_not_cost_the_turn() {
    let (mut harness, _) = planned(2, "arrival").await;
    let numbers = harness.join("concert", &["kim"]).await;
    harness.clock.advance(std::time::Duration::from_secs(50));
    harness.tick().await;
    harness.pass(1_000);
    assert_eq!(harness.tick().await.admitted, 1);
    assert!(harness.is_entered("concert", "kim", numbers[0]).await);
}

/// Recomputes the order from the published event, and from tokens alone.
fn expected_order(draw: &Draw, tickets: &[(UserId, Number)], keys: &TicketKeys) -> Vec<String> {
    let cohort = draw.cohort.unwrap();
    let users: HashMap<Number, &UserId> =
        tickets.iter().map(|(user, number)| (*number, user)).collect();
    let leaves: Vec<_> = (cohort.first.0..=cohort.last().0)
        .map(|number| match users.get(&Number(number)) {
            Some(user) => {
                let ticket = Ticket::new(item("concert"), (*user).clone(), Number(number));
                leaf(&keys.token(&ticket))
            }
            None => [0; 32],
        })
        .collect();
    let drawn = draw.drawn.unwrap();
    assert_eq!(drawn.root, cohort_root(&leaves));
    assert_eq!(drawn.seed, draw_seed(&item("concert"), &REVEAL.0, &drawn.root, None));
    let order = Cohort::new(cohort.first, cohort.size, drawn.seed);
    let mut tickets: Vec<_> = tickets.to_vec();
    tickets.sort_by_key(|(_, number)| order.rank(*number));
    tickets.into_iter().map(|(user, _)| user.to_string()).collect()
}

#[tokio::test]
async fn a_lobby_is_served_in_the_drawn_order_and_before_everyone_who_came_later() {
    let (mut harness, keys) = planned(70, "draw").await;
    let users: Vec<_> = (0..450).map(|n| user(&format!("u{n}"))).collect();
    let numbers = harness.join_users("concert", &users).await;
    let mut tickets: Vec<_> = users.into_iter().zip(numbers).collect();
    for (user, number) in tickets.extract_if(.., |(_, number)| number.0 % 9 == 3) {
        let ticket = Ticket::new(item("concert"), user, number);
        assert!(harness.store.leave(&ticket, harness.clock.now_ms()).await.unwrap().is_ended());
    }
    harness.pass(60);
    harness.tick().await;
    harness.join("concert", &["late-1", "late-2"]).await;
    for _ in 0..8 {
        harness.see("concert", tickets.iter().map(|(_, number)| *number)).await;
        harness.pass(1);
        harness.tick().await;
    }
    let draw = draw_of(&line_events(&*harness.store).await);
    let mut expected = expected_order(&draw, &tickets, &keys);
    assert_ne!(expected[..5], ["u0", "u1", "u2", "u3", "u4"], "not the order of arrival");
    expected.extend(["late-1".to_owned(), "late-2".to_owned()]);
    assert_eq!(harness.admitted().await, expected);
}

#[tokio::test]
async fn a_leader_that_dies_between_two_steps_of_a_draw_leaves_one_cohort_and_one_seed() {
    let (mut harness, keys) = planned(5, "draw").await;
    let early = harness.join("concert", &["a", "b", "c"]).await;
    harness.pass(60);
    let now = harness.clock.now_ms();
    let frozen = harness.store.freeze_cohort(Epoch(1), &item("concert"), now).await.unwrap();
    assert_eq!(frozen.unwrap().size, 3);
    // The first leader is gone. A user joins and another one leaves before the next leader ticks.
    harness.join("concert", &["late"]).await;
    let left = Ticket::new(item("concert"), user("b"), early[1]);
    assert!(harness.store.leave(&left, now).await.unwrap().is_ended());
    let epoch = harness.store.begin_term(now).await.unwrap();
    let mut next =
        Ticker::new(harness.store.clone(), epoch, OUTBOX_MAX).with_ticket_keys(keys.clone());
    assert!(matches!(harness.try_tick().await, Err(Error::StaleEpoch(_))));
    next.tick(now).await.unwrap();
    next.tick(now + 1_000).await.unwrap();
    let draw = draw_of(&line_events(&*harness.store).await);
    assert_eq!(draw.cohort, frozen);
    let tickets = [(user("a"), early[0]), (user("c"), early[2])];
    let mut expected = expected_order(&draw, &tickets, &keys);
    expected.push("late".to_owned());
    assert_eq!(harness.admitted().await, expected);
}

#[tokio::test]
async fn a_line_closes_once_and_opens_again_with_a_later_closing_time() {
    let (mut harness, _) = planned(1, "arrival").await;
    harness.join("concert", &["kim", "lee", "park"]).await;
    let opening = |closes: u64| {
        let opens = in_seconds(60);
        policy(&format!(
            r#"{{"opening":{{"opensAt":"{opens}","closesAt":"{}"}}}}"#,
            in_seconds(closes)
        ))
    };
    let reschedule = async |harness: &SchedulerHarness, closes| {
        let revision = harness.store.item(&item("concert")).await.unwrap().unwrap().revision;
        let change = opening(closes).into();
        harness.store.set_policy(&item("concert"), &change, revision, START).await.unwrap();
    };
    reschedule(&harness, 70).await;
    harness.pass(60);
    assert_eq!(harness.tick().await.admitted, 1);
    harness.pass(10);
    assert_eq!(harness.tick().await.admitted, 0);
    harness.tick().await;
    assert_eq!(state(&harness).await, LineState::Closed);
    let closed = |events: Vec<LineEvent>| {
        events.iter().filter(|event| matches!(event, LineEvent::Closed { .. })).count()
    };
    assert_eq!(closed(line_events(&*harness.store).await), 1);
    reschedule(&harness, 100).await;
    assert_eq!(harness.tick().await.admitted, 1, "the line kept its tickets");
    harness.pass(40);
    harness.tick().await;
    assert_eq!(closed(line_events(&*harness.store).await), 2);
}

#[tokio::test]
async fn an_opening_cannot_be_replaced_while_tickets_are_in_the_line() {
    let (harness, _) = planned(1, "draw").await;
    harness.join("concert", &["kim"]).await;
    let arrival = format!(r#"{{"opensAt":"{}"}}"#, in_seconds(90));
    assert_eq!(plan(&harness, &arrival).await, PolicyUpdateOutcome::LineNotEmpty);
    harness.store.reset(&item("concert"), START).await.unwrap();
    assert!(matches!(plan(&harness, &arrival).await, PolicyUpdateOutcome::Changed(_)));
    assert_eq!(harness.store.item(&item("concert")).await.unwrap().unwrap().draw, None);
}
