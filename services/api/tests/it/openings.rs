//! Openings: what users see of a line before it opens, in its lobby, after a draw and after its close.

use axum::http::StatusCode;
use daegi_domain::draw::{CohortTree, DrawRecord, DrawState, draw_seed, leaf, verify_path};
use daegi_domain::{
    Beacon, BeaconKind, Drawn, Number, Opening, OpeningChange, Order, Policy, PolicyChange, Reveal,
    Ticket, UserId, first_round_from, round_published_at,
};
use daegi_store::{AdmissionStore, ItemStore, OpeningStore};
use daegi_testkit::eventually;
use serde_json::Value;

use crate::harness::{Harness, TEST_TIMEOUT, id, line};

const REVEAL: Reveal = Reveal([9; 32]);

/// An api with an item that has this opening.
async fn planned(opening: impl FnOnce(u64) -> Opening) -> Harness {
    let harness = Harness::with_item("concert").await;
    let now = harness.clock.now_ms();
    let opening = opening(now);
    let state = if opening.lobby_at.is_some() { "SCHEDULED" } else { "LOBBY" };
    let reveal = (opening.order == Order::Draw).then_some(REVEAL);
    let policy = Policy { opening: Some(opening), ..Policy::default() };
    let change = PolicyChange { policy, opening: OpeningChange::Replaced, reveal };
    let revision = harness.store.item(&id("concert")).await.unwrap().unwrap().revision;
    harness.store.set_policy(&id("concert"), &change, revision, now).await.unwrap();
    until_line_state(&harness, state).await;
    harness
}

/// Opens the line as the leader does.
async fn open(harness: &Harness) {
    let concert = id("concert");
    let epoch = harness.store.begin_term(0).await.unwrap();
    harness.clock.advance(std::time::Duration::from_secs(60));
    let now = harness.clock.now_ms();
    let mut drawn = None;
    if let Some(cohort) = harness.store.freeze_cohort(epoch, &concert, now).await.unwrap() {
        let tickets = harness.store.waiting_from(&concert, cohort.first, 100).await.unwrap();
        let token = |(user, number): (UserId, Number)| {
            harness.keys.token(&Ticket::new(concert.clone(), user, number))
        };
        let leaves: Vec<_> = tickets.into_iter().map(|ticket| leaf(&token(ticket))).collect();
        let root = CohortTree::new(leaves.clone()).root();
        harness.store.put_leaves(&concert, &root, 0, &leaves).await.unwrap();
        let seed = draw_seed(&concert, &REVEAL.0, &root, None);
        drawn = Some(Drawn { root, beacon: None, seed });
    }
    assert!(harness.store.open_line(epoch, &concert, drawn, now).await.unwrap());
    until_line_state(harness, "OPEN").await;
}

/// Waits until the pod has refreshed its copy of the line.
async fn until_line_state(harness: &Harness, state: &str) {
    eventually(TEST_TIMEOUT, state, async || {
        harness.get(&line("concert")).await.json()["lineState"] == state
    })
    .await;
}

fn lobby(order: Order) -> impl FnOnce(u64) -> Opening {
    move |now| Opening { opens_at: Some(now + 60_000), order, ..Opening::default() }
}

async fn draw(harness: &Harness, token: &str) -> DrawRecord {
    let uri = format!("{}/draw?token={token}", line("concert"));
    serde_json::from_str(&harness.get(&uri).await.text).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_join_before_the_lobby_is_told_when_to_come() {
    let harness = planned(|now| Opening {
        opens_at: Some(now + 60_000),
        lobby_at: Some(now + 30_000),
        ..Opening::default()
    })
    .await;
    let refused = harness.join("concert", "kim").await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let problem = refused.json();
    assert_eq!(problem["code"], "NOT_OPEN_YET");
    assert!(problem["opensAt"].is_string() && problem["lobbyAt"].is_string(), "{problem}");
    assert_eq!(refused.headers["retry-after"], "30");
    let shown = harness.get(&line("concert")).await.json();
    assert_eq!(shown["lineState"], "SCHEDULED");
    assert_eq!((&shown["opensInMs"], &shown["lobbyInMs"]), (&60_000.into(), &30_000.into()));
    assert_eq!(shown["order"], "arrival");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_lobby_shows_the_place_by_arrival_or_none_before_a_draw() {
    for (order, expected) in [(Order::Arrival, Value::from(2)), (Order::Draw, Value::Null)] {
        let harness = planned(lobby(order)).await;
        harness.token("concert", "kim").await;
        let token = harness.token("concert", "lee").await;
        let ticket = harness.poll("concert", &token).await.json();
        assert_eq!((&ticket["lineState"], &ticket["status"]), (&"LOBBY".into(), &"WAITING".into()));
        assert_eq!(ticket["position"], expected, "{order:?}");
        assert_eq!(ticket["opensInMs"], 60_000);
        let again = harness.join("concert", "lee").await.json();
        assert_eq!((&again["token"], &again["position"]), (&Value::from(token), &expected));
        harness.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_draw_positions_follow_the_ranks_and_newcomers_stand_behind() {
    let harness = planned(lobby(Order::Draw)).await;
    let mut tokens = Vec::new();
    for n in 0..20 {
        tokens.push(harness.token("concert", &format!("u{n}")).await);
    }
    open(&harness).await;
    let late = harness.token("concert", "late").await;
    assert_eq!(harness.poll("concert", &late).await.json()["position"], 21);
    let mut positions = Vec::new();
    for (n, token) in tokens.iter().enumerate() {
        let ticket = harness.poll("concert", token).await.json();
        assert_eq!(ticket["position"], ticket["cohortRank"], "no ticket has left");
        let again = harness.join("concert", &format!("u{n}")).await.json();
        assert_eq!(again["position"], ticket["position"], "a reload gains nothing");
        positions.push(ticket["position"].as_u64().unwrap());
    }
    assert_ne!(positions, (1..=20).collect::<Vec<_>>(), "not the order of arrival");
    // The user at position 7 leaves: everyone behind moves up by one, the others do not.
    let seventh = positions.iter().position(|position| *position == 7).unwrap();
    harness.leave("concert", &tokens[seventh]).await;
    for (token, before) in tokens.iter().zip(&positions).filter(|(_, before)| **before != 7) {
        let now = harness.poll("concert", token).await.json()["position"].as_u64().unwrap();
        assert_eq!(now, before - u64::from(*before > 7));
    }
    positions.sort_unstable();
    assert_eq!(positions, (1..=20).collect::<Vec<_>>());
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_record_of_a_draw_proves_that_a_ticket_took_part() {
    let harness = planned(lobby(Order::Draw)).await;
    let mut tokens = Vec::new();
    for n in 0..5 {
        tokens.push(harness.token("concert", &format!("u{n}")).await);
    }
    let before = draw(&harness, &tokens[0]).await;
    assert_eq!((before.reveal, before.seed, before.ticket), (None, None, None));
    open(&harness).await;
    let late = harness.token("concert", "late").await;
    for token in &tokens {
        let shown = harness.poll("concert", token).await.json();
        let record = draw(&harness, token).await;
        assert_eq!(record.commitment, before.commitment);
        let proof = record.ticket.clone().unwrap();
        assert_eq!(
            (proof.leaf.0, Value::from(proof.rank)),
            (leaf(token), shown["cohortRank"].clone())
        );
        let path: Vec<_> = proof.path.iter().map(|hash| hash.0).collect();
        let root = record.cohort_root.unwrap().0;
        assert!(verify_path(&proof.leaf.0, proof.index, 5, &path, &root));
    }
    assert_eq!(draw(&harness, &late).await.ticket, None, "too late for the draw");
    let forged = harness.get(&format!("{}/draw?token=kim-concert-x", line("concert"))).await;
    assert_eq!(forged.status, StatusCode::UNAUTHORIZED);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_line_without_a_draw_has_no_record() {
    let harness = Harness::with_item("concert").await;
    let missing = harness.get(&format!("{}/draw", line("concert"))).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_closed_line_refuses_newcomers_and_tells_those_who_wait() {
    let harness = planned(|now| Opening {
        opens_at: Some(now + 60_000),
        closes_at: Some(now + 61_000),
        ..Opening::default()
    })
    .await;
    let token = harness.token("concert", "kim").await;
    open(&harness).await;
    harness.clock.advance(std::time::Duration::from_secs(1));
    let refused = harness.join("concert", "lee").await;
    assert_eq!(refused.json()["code"], "LINE_CLOSED");
    eventually(TEST_TIMEOUT, "the waiting ticket shows it", async || {
        harness.poll("concert", &token).await.json()["lineState"] == "CLOSED"
    })
    .await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_draw_that_waits_for_its_beacon_says_so_and_shows_the_fixed_cohort() {
    let round = |now: u64| first_round_from(now + 70_000);
    let harness = planned(|now| Opening {
        beacon: Some(Beacon { kind: BeaconKind::Drand, round: Some(round(now)) }),
        ..lobby(Order::Draw)(now)
    })
    .await;
    let (concert, round) = (id("concert"), round(harness.clock.now_ms()));
    let token = harness.token("concert", "kim").await;
    let ticket = harness.poll("concert", &token).await.json();
    assert_eq!((&ticket["beaconRound"], &ticket["drawing"]), (&round.into(), &false.into()));
    let announced = draw(&harness, &token).await;
    assert_eq!((announced.beacon_round, announced.frozen), (Some(round), None));

    // The leader fixes the cohort and its root; then the round is awaited.
    let epoch = harness.store.begin_term(0).await.unwrap();
    harness.clock.advance(std::time::Duration::from_secs(60));
    let now = harness.clock.now_ms();
    let cohort = harness.store.freeze_cohort(epoch, &concert, now).await.unwrap().unwrap();
    harness.store.fix_root(epoch, &concert, &[3; 32], now).await.unwrap().unwrap();
    let drawing = async || harness.get(&line("concert")).await.json()["drawing"] == true;
    eventually(TEST_TIMEOUT, "the pod knows that the draw has begun", drawing).await;
    let late = harness.token("concert", "lee").await;
    for token in [&token, &late] {
        let ticket = harness.poll("concert", token).await.json();
        let shown = (&ticket["lineState"], &ticket["position"], &ticket["drawing"]);
        assert_eq!(shown, (&"LOBBY".into(), &Value::Null, &true.into()));
        assert_eq!(ticket["opensInMs"], round_published_at(round) - now);
    }
    let fixed = draw(&harness, &token).await;
    assert_eq!(
        (fixed.state, fixed.cohort_root, fixed.ticket.is_some()),
        (DrawState::Committed, None, false)
    );
    let frozen = fixed.frozen.clone().unwrap();
    assert_eq!((frozen.cohort_first, frozen.cohort_size), (cohort.first, 1));
    assert_eq!(frozen.cohort_root.0, [3; 32]);
    assert!(fixed.check(None).iter().all(|check| check.ok));

    // A late round: no time is known, and clients poll more and more rarely.
    harness.clock.advance(std::time::Duration::from_secs(10 + 3 + 20));
    let ticket = harness.poll("concert", &token).await.json();
    assert_eq!((&ticket["opensInMs"], &ticket["drawing"]), (&Value::Null, &true.into()));
    assert!((20_000..=36_000).contains(&ticket["pollAfterMs"].as_u64().unwrap()), "{ticket}");
    harness.end().await;
}
