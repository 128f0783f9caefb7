//! Draws with a beacon: the cohort and its root are fixed, then the round is published, then the line opens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use daegi_beacon::{RelayClient, Signature, parse_signature};
use daegi_domain::{
    DrawRecord, LineEvent, LineOpened, LineState, Number, Ticket, TicketKeys, beacon_of, rfc3339,
    round_published_at,
};
use daegi_runtime::Shutdown;
use daegi_scheduler::{Beacons, Ticker};
use daegi_store::{BeaconOutcome, Epoch, PolicyUpdateOutcome};
use daegi_testkit::eventually;
use std::time::Duration;

use crate::harness::{OUTBOX_MAX, SchedulerHarness, item, user};
use crate::openings::{draw_of, line_events, plan, state};

/// A round of quicknet whose signature `docs/DRAW.md` has.
pub(crate) const ROUND: u64 = 657_413;
pub(crate) const SIGNATURE: &str = "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be\
    41076862b98fad56e91a6b85b89cd97b";

const TEST_TIMEOUT: Duration = Duration::from_secs(10);

/// When the line opens: 10 s before the round.
pub(crate) fn opens_at() -> u64 {
    round_published_at(ROUND) - 10_000
}

fn signature() -> Signature {
    parse_signature(SIGNATURE).unwrap()
}

pub(crate) fn from_relays(relays: &[&str]) -> Arc<Beacons> {
    let relays = relays.iter().map(|relay| relay.parse().unwrap()).collect();
    Arc::new(Beacons::new(RelayClient::new(relays).unwrap()))
}

/// A leader in its first term whose line opens in 60 s, with the beacon of [`ROUND`].
async fn planned() -> (SchedulerHarness, TicketKeys) {
    let keys = TicketKeys::generate();
    let harness = SchedulerHarness::open_at(10, opens_at() - 60_000).await.with_ticket_keys(&keys);
    harness.put("concert", 100, "{}").await;
    let opening = format!(
        r#"{{"opensAt":"{}","order":"draw","beacon":{{"kind":"drand","round":{ROUND}}}}}"#,
        rfc3339(opens_at())
    );
    assert!(matches!(plan(&harness, &opening).await, PolicyUpdateOutcome::Changed(_)));
    (harness, keys)
}

async fn draw(harness: &SchedulerHarness) -> daegi_domain::Draw {
    harness.store.item(&item("concert")).await.unwrap().unwrap().draw.unwrap()
}

async fn hand_in(harness: &SchedulerHarness) -> BeaconOutcome {
    let now = harness.clock.now_ms();
    harness.store.put_beacon(&item("concert"), ROUND, &signature(), now).await.unwrap()
}

fn opened(events: &[LineEvent]) -> usize {
    events.iter().filter(|event| matches!(event, LineEvent::Opened { .. })).count()
}

#[tokio::test]
async fn a_cohort_is_fixed_at_the_opening_and_the_line_opens_when_its_round_is_known() {
    let (mut harness, keys) = planned().await;
    let early = harness.join("concert", &["a", "b", "c"]).await;
    harness.pass(60);
    assert_eq!(harness.tick().await.admitted, 0);
    let fixed = draw(&harness).await;
    assert_eq!((fixed.cohort.unwrap().size, fixed.drawn), (3, None));
    let root = fixed.root.unwrap();
    assert_eq!(state(&harness).await, LineState::Lobby);
    // The cohort is complete: a user who joins now is behind it, and one who leaves does not change the root.
    harness.join("concert", &["late"]).await;
    let left = Ticket::new(item("concert"), user("b"), early[1]);
    assert!(harness.store.leave(&left, harness.clock.now_ms()).await.unwrap().is_ended());
    harness.pass(12);
    let waiting = harness.tick().await;
    assert_eq!((waiting.admitted, waiting.beacon_overdue.len()), (0, 0), "2 s are no delay");
    assert_eq!(hand_in(&harness).await, BeaconOutcome::Stored);
    assert_eq!(harness.tick().await.admitted, 3);
    let events = line_events(&*harness.store).await;
    let result = draw_of(&events);
    assert_eq!((result.root, result.drawn.unwrap().root), (Some(root), root));
    assert_eq!(result.drawn.unwrap().beacon, Some(beacon_of(&signature())));
    assert_eq!(harness.admitted().await.last().unwrap(), "late");
    assert_eq!(hand_in(&harness).await, BeaconOutcome::Known, "a repeat changes nothing");

    // The public record is complete: all checks hold, and quicknet signed the round.
    let (cohort, drawn) = (result.cohort.unwrap(), result.drawn.unwrap());
    let numbers = (cohort.first, cohort.size);
    let record =
        DrawRecord::drawn(item("concert"), result.reveal.0, numbers, drawn.root, drawn.beacon)
            .with_beacon(&result);
    let leaves = harness.store.leaves(&item("concert"), &root, 0).await.unwrap();
    let token = keys.token(&left);
    let path = daegi_domain::draw::merkle_path(&leaves, 1);
    let record = record.with_ticket(early[1], leaves[1], &path);
    let checks = record.check(Some(&token));
    assert!(checks.iter().all(|check| check.ok), "{checks:?}");
    assert_eq!(
        (record.beacon_round, record.beacon_signature.unwrap().0),
        (Some(ROUND), signature())
    );
    let body = LineOpened::new(item("concert"), events[0].id(&item("concert")), 0, Some(&result))
        .draw
        .unwrap();
    assert_eq!(
        (body.beacon_round, body.beacon_signature.as_deref()),
        (Some(ROUND), Some(SIGNATURE))
    );
}

/// A relay of drand that has the round from `published` on.
async fn relay(published: Arc<AtomicBool>, shutdown: &Shutdown) -> String {
    let answer = move || async move {
        match published.load(Ordering::Relaxed) {
            true => (StatusCode::OK, format!(r#"{{"round":{ROUND},"signature":"{SIGNATURE}"}}"#)),
            false => (StatusCode::NOT_FOUND, String::new()),
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = axum::serve(listener, Router::new().fallback(get(answer)));
    shutdown.spawn_until_stopped("relay", async move { server.await.unwrap() });
    url
}

#[tokio::test]
async fn the_leader_fetches_the_round_from_a_relay() {
    let (shutdown, published) = (Shutdown::new(), Arc::new(AtomicBool::new(false)));
    let url = relay(published.clone(), &shutdown).await;
    let beacons = from_relays(&["http://127.0.0.1:1", &url]);
    let task = beacons.clone();
    shutdown.spawn_until_stopped("beacons", async move { task.run().await });
    let (harness, _) = planned().await;
    let mut harness = harness.with_beacons(beacons.clone());
    harness.join("concert", &["a", "b"]).await;
    harness.pass(60);
    harness.tick().await;
    harness.pass(10);
    harness.tick().await;
    assert_eq!(opened(&line_events(&*harness.store).await), 0, "the relay does not have it yet");
    published.store(true, Ordering::Relaxed);
    let fetched = async || beacons.signature(ROUND).is_some();
    eventually(TEST_TIMEOUT, "the round is fetched", fetched).await;
    assert_eq!(harness.tick().await.admitted, 2);
    assert_eq!(draw(&harness).await.beacon.unwrap().signature, Some(signature()));
    shutdown.stop_now();
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn a_round_that_does_not_arrive_is_reported_and_the_line_waits() {
    let (mut harness, _) = planned().await;
    harness.join("concert", &["a"]).await;
    harness.pass(60);
    assert_eq!(harness.tick().await.beacon_overdue, []);
    harness.pass(600);
    let report = harness.tick().await;
    assert_eq!((report.admitted, report.beacon_overdue.len()), (0, 1));
    let overdue = &report.beacon_overdue[0];
    assert_eq!((overdue.round, overdue.published_at), (ROUND, opens_at() + 10_000));
    let text = overdue.to_string();
    assert!(text.contains("657413") && text.contains("opening/beacon"), "{text}");
    assert_eq!(state(&harness).await, LineState::Lobby);
    // Its rules cannot change meanwhile, apart from the order of the lobby being given up with its tickets.
    let without = format!(r#"{{"opensAt":"{}","order":"draw"}}"#, rfc3339(opens_at() + 900_000));
    assert_eq!(plan(&harness, &without).await, PolicyUpdateOutcome::LineNotEmpty);
    hand_in(&harness).await;
    let report = harness.tick().await;
    assert_eq!((report.admitted, report.beacon_overdue.len()), (1, 0));
}

#[tokio::test]
async fn a_leader_that_dies_before_the_round_leaves_one_cohort_and_one_root() {
    let (mut harness, keys) = planned().await;
    let early = harness.join("concert", &["a", "b", "c"]).await;
    harness.pass(60);
    // The first leader dies after it has fixed the cohort, the second one after it has fixed the root.
    let now = harness.clock.now_ms();
    let frozen = harness.store.freeze_cohort(Epoch(1), &item("concert"), now).await.unwrap();
    harness.join("concert", &["late"]).await;
    let leave = async |harness: &SchedulerHarness, name: &str, number: Number| {
        let ticket = Ticket::new(item("concert"), user(name), number);
        assert!(harness.store.leave(&ticket, now).await.unwrap().is_ended());
    };
    leave(&harness, "a", early[0]).await;
    let epoch = harness.store.begin_term(now).await.unwrap();
    let mut second =
        Ticker::new(harness.store.clone(), epoch, OUTBOX_MAX).with_ticket_keys(keys.clone());
    second.tick(now).await.unwrap();
    let root = draw(&harness).await.root.unwrap();
    leave(&harness, "b", early[1]).await;
    let epoch = harness.store.begin_term(now).await.unwrap();
    assert!(second.tick(now + 1_000).await.is_err(), "another replica leads");
    let mut third = Ticker::new(harness.store.clone(), epoch, OUTBOX_MAX).with_ticket_keys(keys);
    hand_in(&harness).await;
    third.tick(now + 12_000).await.unwrap();
    third.tick(now + 13_000).await.unwrap();
    let events = line_events(&*harness.store).await;
    assert_eq!(opened(&events), 1);
    let result = draw_of(&events);
    assert_eq!((result.cohort, result.drawn.unwrap().root), (frozen, root));
    assert_eq!(harness.admitted().await, ["c", "late"]);
    assert!(matches!(harness.try_tick().await, Err(daegi_store::Error::StaleEpoch(_))));
}
