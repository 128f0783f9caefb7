//! What one tick does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use daegi_domain::{EndReason, ItemId, Number, UserId};
use daegi_scheduler::{DiscardSink, Relay, Ticker};
use daegi_store::{AdminStore, AdmissionStore, Error, LiveState, TicketState, TicketStore};
use daegi_testkit::{InterceptedStore, StoreInterceptor};

use crate::harness::{OUTBOX_MAX, START, SchedulerHarness, item, memory, put, user};

#[tokio::test]
async fn tickets_are_admitted_in_the_order_they_joined_up_to_the_quota() {
    let mut harness = SchedulerHarness::open(2).await;
    harness.put("concert", 100, "{}").await;
    harness.join("concert", &["kim", "lee", "park"]).await;
    harness.join("concert", &["choi", "kim"]).await;
    assert_eq!(harness.tick().await.admitted, 2);
    assert_eq!(harness.admitted().await, ["kim", "lee"]);
    assert_eq!(harness.tick().await.admitted, 2);
    assert_eq!(harness.admitted().await, ["kim", "lee", "park", "choi"]);
    assert_eq!(harness.tick().await.admitted, 0, "no ticket is left");
}

#[tokio::test]
async fn every_line_has_the_quota_and_its_policy_overrides_the_global_one() {
    let mut harness = SchedulerHarness::open(1).await;
    harness.put("slow", 100, "{}").await;
    harness.put("fast", 100, r#"{"tokensPerTick":3}"#).await;
    harness.put("closed", 100, r#"{"tokensPerTick":0}"#).await;
    for id in ["slow", "fast", "closed"] {
        harness.join(id, &["a", "b", "c", "d"]).await;
    }
    assert_eq!(harness.tick().await.admitted, 4);
    assert_eq!(harness.counts("slow").await.entered, 1);
    assert_eq!(harness.counts("fast").await.entered, 3);
    assert_eq!(harness.counts("closed").await.entered, 0);
}

#[tokio::test]
async fn a_tick_reports_which_lines_are_open_and_how_many_recover() {
    let mut harness = SchedulerHarness::open(1).await;
    harness.put("open", 100, "{}").await;
    harness.put("closed", 100, r#"{"tokensPerTick":0}"#).await;
    harness.put("lost", 100, "{}").await;
    harness.join("open", &["kim", "lee"]).await;
    harness.join("closed", &["kim"]).await;
    // A genuine ticket of one minute ago that the store does not know.
    harness.store.declare_loss(START).await.unwrap();
    harness.state("lost", "kim", Number((START - 60_000) * 64)).await;
    let round = harness.tick().await;
    assert_eq!((round.open, round.recovering), ([item("open")].into(), 1));
}

#[tokio::test]
async fn a_quota_larger_than_a_chunk_is_used_up_in_one_tick() {
    let mut harness = SchedulerHarness::open(1_200).await;
    harness.put("concert", 5_000, "{}").await;
    let users: Vec<_> = (0..1_500).map(|n| UserId::parse(&format!("u{n}")).unwrap()).collect();
    harness.join_users("concert", &users).await;
    assert_eq!(harness.tick().await.admitted, 1_200);
    assert_eq!(harness.tick().await.admitted, 300);
}

#[tokio::test]
async fn quota_and_tick_length_change_with_the_next_tick() {
    let mut harness = SchedulerHarness::open(1).await;
    harness.put("concert", 100, "{}").await;
    harness.join("concert", &["a", "b", "c", "d", "e"]).await;
    assert_eq!(harness.tick().await.admitted, 1);
    harness.store.set_settings(Some(3), Some(50)).await.unwrap();
    let report = harness.tick().await;
    assert_eq!((report.admitted, report.length().as_millis()), (3, 50));
    harness.store.set_settings(Some(0), None).await.unwrap();
    assert_eq!(harness.tick().await.admitted, 0, "0 pauses");
}

#[tokio::test]
async fn a_paused_line_keeps_its_tickets_and_continues_when_resumed() {
    let mut harness = SchedulerHarness::open(1).await;
    harness.put("concert", 100, "{}").await;
    let numbers = harness.join("concert", &["kim", "lee"]).await;
    harness.store.set_paused(&item("concert"), true, harness.clock.now_ms()).await.unwrap();
    assert_eq!(harness.tick().await.admitted, 0);
    assert_eq!(harness.counts("concert").await.waiting, 2);
    harness.store.set_paused(&item("concert"), false, harness.clock.now_ms()).await.unwrap();
    assert_eq!(harness.tick().await.admitted, 1);
    assert!(harness.is_entered("concert", "kim", numbers[0]).await);
}

#[tokio::test]
async fn sold_out_stops_with_the_next_tick_and_a_restock_continues_in_order() {
    let mut harness = SchedulerHarness::open(1).await;
    harness.put("concert", 10, "{}").await;
    harness.join("concert", &["kim", "lee", "park"]).await;
    assert_eq!(harness.tick().await.admitted, 1);
    harness.put("concert", 0, "{}").await;
    assert_eq!(harness.tick().await.admitted, 0);
    assert_eq!(harness.counts("concert").await.waiting, 2, "the line is kept");
    harness.put("concert", 5, "{}").await;
    assert_eq!(harness.tick().await.admitted, 1);
    assert_eq!(harness.admitted().await, ["kim", "lee"]);
}

#[tokio::test]
async fn no_ticket_is_admitted_beyond_the_stock_or_the_capacity() {
    let mut harness = SchedulerHarness::open(10).await;
    harness.put("stock", 2, "{}").await;
    harness.put("capacity", 100, r#"{"maxActive":3}"#).await;
    for id in ["stock", "capacity"] {
        harness.join(id, &["a", "b", "c", "d", "e"]).await;
    }
    assert_eq!(harness.tick().await.admitted, 5);
    assert_eq!(harness.counts("stock").await.entered, 2);
    assert_eq!(harness.counts("capacity").await.entered, 3);
}

#[tokio::test]
async fn capacity_of_an_expired_entry_is_used_in_the_same_tick() {
    let mut harness = SchedulerHarness::open(1).await;
    harness.put("concert", 100, r#"{"maxActive":1,"passTtlSeconds":5}"#).await;
    let numbers = harness.join("concert", &["kim", "lee"]).await;
    harness.tick().await;
    harness.pass(4);
    assert_eq!(harness.tick().await.expired, 0);
    harness.pass(1);
    let report = harness.tick().await;
    assert_eq!((report.expired, report.admitted), (1, 1));
    let kim = harness.state("concert", "kim", numbers[0]).await;
    assert_eq!(kim, TicketState::Ended(EndReason::Expired));
    assert!(harness.is_entered("concert", "lee", numbers[1]).await);
}

#[tokio::test]
async fn a_user_who_missed_their_turn_returns_ahead_of_the_line() {
    let mut harness = SchedulerHarness::open(1).await;
    harness.put("concert", 100, r#"{"graceSeconds":10}"#).await;
    let numbers = harness.join("concert", &["kim", "lee", "park"]).await;
    harness.pass(60);
    harness.see("concert", numbers[1..].iter().copied()).await;
    let report = harness.tick().await;
    assert_eq!((report.missed, report.admitted), (1, 1), "lee takes kim's turn");
    let kim = harness.state("concert", "kim", numbers[0]).await;
    assert_eq!(kim, TicketState::Live(LiveState::Waiting { position: Some(1) }));
    harness.tick().await;
    assert_eq!(harness.admitted().await, ["lee", "kim"]);
}

#[tokio::test]
async fn a_user_who_missed_their_turn_and_stays_absent_has_abandoned_it() {
    let mut harness = SchedulerHarness::open(1).await;
    harness.put("concert", 100, r#"{"graceSeconds":10,"missedKeepSeconds":30}"#).await;
    let numbers = harness.join("concert", &["kim"]).await;
    harness.pass(60);
    assert_eq!(harness.tick().await.missed, 1);
    harness.pass(30);
    assert_eq!(harness.tick().await.abandoned, 1);
    let kim = harness.state("concert", "kim", numbers[0]).await;
    assert_eq!(kim, TicketState::Ended(EndReason::Abandoned));
    assert!(harness.store.active_lines().await.unwrap().is_empty(), "the line is inactive");
}

#[tokio::test]
async fn a_long_line_is_swept_over_several_ticks() {
    let mut harness = SchedulerHarness::open(1).await;
    harness.put("concert", 100, r#"{"graceSeconds":10,"missedKeepSeconds":0,"maxActive":1}"#).await;
    harness.join("concert", &["entered"]).await;
    assert_eq!(harness.tick().await.admitted, 1, "the capacity is used up");
    let users: Vec<_> = (0..6_000).map(|n| UserId::parse(&format!("u{n}")).unwrap()).collect();
    let numbers = harness.join_users("concert", &users).await;
    harness.pass(60);
    let here: Vec<Number> = numbers[..3_000].to_vec();
    harness.see("concert", here.iter().copied()).await;
    assert_eq!(harness.tick().await.abandoned, 0, "the first 2,500 are here");
    let mut abandoned = 0;
    for _ in 0..2 {
        abandoned += harness.tick().await.abandoned;
    }
    assert_eq!(abandoned, 3_000, "the rest, in one tick or two");
    assert_eq!(harness.tick().await.abandoned, 0, "from the front again");
    assert_eq!(harness.counts("concert").await.waiting, 3_000);
}

#[tokio::test]
async fn a_stale_leader_changes_nothing() {
    let mut harness = SchedulerHarness::open(5).await;
    harness.put("concert", 100, "{}").await;
    harness.join("concert", &["kim"]).await;
    harness.store.begin_term(0).await.unwrap();
    let refused = harness.try_tick().await;
    assert!(matches!(refused, Err(Error::StaleEpoch(1))), "{refused:?}");
    assert_eq!(harness.counts("concert").await.waiting, 1);
}

#[tokio::test]
async fn a_full_outbox_stops_admission_until_the_relay_has_drained_it() {
    let mut harness = SchedulerHarness::with_outbox(2, 2).await;
    harness.put("concert", 100, "{}").await;
    harness.join("concert", &["a", "b", "c"]).await;
    assert_eq!(harness.tick().await.outbox_full, 0);
    let report = harness.tick().await;
    assert_eq!((report.admitted, report.outbox_full), (0, 1));
    let relay = Relay::new(harness.store.clone(), Arc::new(DiscardSink));
    assert_eq!(relay.publish_all().await.unwrap(), 2);
    assert_eq!(harness.tick().await.admitted, 1);
}

#[tokio::test]
async fn the_relay_drops_every_event_of_every_partition_when_kafka_is_off() {
    let mut harness = SchedulerHarness::open(10).await;
    for id in ["a", "b", "c", "d", "e", "f"] {
        harness.put(id, 100, "{}").await;
        harness.join(id, &["kim", "lee"]).await;
    }
    harness.tick().await;
    let relay = Relay::new(harness.store.clone(), Arc::new(DiscardSink));
    assert_eq!(relay.publish_all().await.unwrap(), 12);
    assert_eq!(relay.publish_all().await.unwrap(), 0);
    for partition in 0..harness.store.partitions() {
        assert_eq!(harness.store.outbox_len(partition).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn an_empty_line_becomes_inactive_and_active_again_by_the_next_join() {
    let mut harness = SchedulerHarness::open(1).await;
    harness.put("concert", 100, r#"{"passTtlSeconds":1}"#).await;
    harness.join("concert", &["kim"]).await;
    harness.tick().await;
    harness.pass(1);
    assert_eq!(harness.tick().await.expired, 1);
    assert!(harness.tick().await.lines.is_empty());
    harness.join("concert", &["lee"]).await;
    assert_eq!(harness.tick().await.admitted, 1);
}

#[tokio::test]
async fn direct_admissions_do_not_keep_a_sold_out_line_active() {
    let mut harness = SchedulerHarness::open(5).await;
    harness.put("concert", 100, r#"{"mode":"auto","passTtlSeconds":1}"#).await;
    harness.join("concert", &["kim"]).await;
    assert_eq!(harness.counts("concert").await.entered, 1, "admitted directly");
    harness.put("concert", 0, r#"{"mode":"auto","passTtlSeconds":1}"#).await;
    harness.pass(1);
    harness.tick().await;
    harness.tick().await;
    assert!(harness.store.active_lines().await.unwrap().is_empty());
}

#[tokio::test]
async fn entries_of_a_removed_item_last_until_they_expire() {
    let mut harness = SchedulerHarness::open(1).await;
    harness.put("concert", 100, r#"{"passTtlSeconds":5}"#).await;
    harness.join("concert", &["kim", "lee"]).await;
    harness.tick().await;
    harness.store.remove_item(&item("concert"), harness.clock.now_ms()).await.unwrap();
    assert_eq!(harness.tick().await.admitted, 0);
    harness.pass(5);
    assert_eq!(harness.tick().await.expired, 1);
    assert!(harness.store.active_lines().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_reserved_line_is_kept_for_a_minute_and_then_purged() {
    let mut harness = SchedulerHarness::open(5).await;
    let id = ItemId::reserved("warm-up");
    harness.put(id.as_str(), 100, "{}").await;
    harness.join(id.as_str(), &["absent"]).await;
    let report = harness.tick().await;
    assert_eq!((report.admitted, report.lines.len(), report.purged), (0, 0, 0));
    harness.pass(59);
    assert_eq!(harness.tick().await.purged, 0);
    harness.pass(1);
    assert_eq!(harness.tick().await.purged, 1);
    assert_eq!(harness.store.item(&id).await.unwrap(), None);
}

/// Fails the first call for active lines.
#[derive(Debug, Default)]
struct FirstUnavailable(AtomicU16);

impl StoreInterceptor for FirstUnavailable {
    async fn before(&self, call: &'static str) -> daegi_store::Result<()> {
        let fails = |call| call == "active_lines_in" && self.0.fetch_add(1, Ordering::SeqCst) == 0;
        if fails(call) { Err(Error::Unavailable("unavailable".into())) } else { Ok(()) }
    }
}

#[tokio::test]
async fn an_unavailable_server_delays_only_its_own_lines() {
    let memory = memory(1);
    for line in 0..8 {
        put(&*memory, &format!("line-{line}"), 10, None).await;
        let settings = memory.settings().await.unwrap();
        let kim = [UserId::parse("kim").unwrap()];
        memory.join(&item(&format!("line-{line}")), &kim, &settings, START).await.unwrap();
    }
    let unreachable = memory.active_lines_in(0).await.unwrap();
    assert!((1..8).contains(&unreachable.len()), "some lines are in that partition");
    let epoch = memory.begin_term(0).await.unwrap();
    let intercepted =
        InterceptedStore { store: memory.clone(), interceptor: FirstUnavailable::default() };
    let mut ticker = Ticker::new(Arc::new(intercepted), epoch, OUTBOX_MAX);
    let round = ticker.tick(START).await.unwrap();
    assert_eq!(round.admitted as usize, 8 - unreachable.len());
    assert!(round.unavailable.is_some(), "the report names the failure");
    let again = ticker.tick(START + 500).await.unwrap();
    assert_eq!(again.admitted as usize, unreachable.len(), "as soon as it is available");
}

/// Refuses every admission.
#[derive(Debug)]
struct NoAdmission;

impl StoreInterceptor for NoAdmission {
    async fn before(&self, call: &'static str) -> daegi_store::Result<()> {
        if call == "admit" { Err(Error::Unavailable("OOM".into())) } else { Ok(()) }
    }
}

#[tokio::test]
async fn an_admission_that_fails_does_not_stop_the_sweep() {
    let memory = memory(1);
    for line in ["concert", "other"] {
        put(&*memory, line, 10, None).await;
        let settings = memory.settings().await.unwrap();
        memory.join(&item(line), &[user("kim")], &settings, START).await.unwrap();
    }
    let epoch = memory.begin_term(0).await.unwrap();
    let intercepted = InterceptedStore { store: memory.clone(), interceptor: NoAdmission };
    let mut ticker = Ticker::new(Arc::new(intercepted), epoch, OUTBOX_MAX);
    let round = ticker.tick(START + 400_000).await.unwrap();
    assert_eq!((round.admitted, round.abandoned), (0, 2), "both lines are swept");
    assert!(round.unavailable.is_some(), "the report names the failure");
}

// Time stands still, so that only the number of absent users decides how far a tick sweeps.
#[tokio::test(start_paused = true)]
async fn many_absent_users_are_swept_within_a_tick_and_few_slowly() {
    let mut harness = SchedulerHarness::open(1).await;
    harness.put("concert", 100, "{}").await;
    let users: Vec<_> = (0..26_310).map(|n| user(&format!("u{n}"))).collect();
    let mut numbers = Vec::new();
    for users in users.chunks(1000) {
        numbers.extend(harness.join_users("concert", users).await);
    }
    harness.pass(400);
    // The first 5,000 are present: the sweep passes them at its slow pace, 2,500 per tick.
    harness.see("concert", numbers[..5_000].iter().copied()).await;
    let mut swept = Vec::new();
    while swept.iter().sum::<u32>() < 21_310 {
        swept.push(harness.tick().await.abandoned);
        assert!(swept.len() < 10, "{swept:?}");
    }
    assert_eq!(swept[0], 0, "a chunk without absent users is followed by few others");
    assert!(swept.len() <= 3, "{swept:?}");
    assert_eq!(harness.tick().await.abandoned, 0);
}

/// Counts the copies of the settings and fails the next one on request.
#[derive(Debug, Clone, Default)]
struct CopyCounter {
    copies: Arc<AtomicU16>,
    fails_next: Arc<AtomicBool>,
}

impl StoreInterceptor for CopyCounter {
    async fn before(&self, call: &'static str) -> daegi_store::Result<()> {
        if call != "copy_settings" {
            return Ok(());
        }
        self.copies.fetch_add(1, Ordering::SeqCst);
        let fails = self.fails_next.swap(false, Ordering::SeqCst);
        if fails { Err(Error::Unavailable("unavailable".into())) } else { Ok(()) }
    }
}

#[tokio::test]
async fn the_settings_are_copied_when_a_term_begins_when_they_change_and_every_ten_seconds() {
    let (store, counter) = (memory(1), CopyCounter::default());
    let epoch = store.begin_term(0).await.unwrap();
    let intercepted = InterceptedStore { store: store.clone(), interceptor: counter.clone() };
    let mut ticker = Ticker::new(Arc::new(intercepted), epoch, OUTBOX_MAX);
    let mut copies_at = async |seconds: u64| {
        ticker.tick(START + seconds * 1_000).await.unwrap();
        counter.copies.swap(0, Ordering::SeqCst)
    };
    assert_eq!(copies_at(0).await, 1, "the term begins");
    for second in 1..10 {
        assert_eq!(copies_at(second).await, 0, "{second} s");
    }
    assert_eq!(copies_at(10).await, 1, "10 s after the last copy");
    store.set_settings(Some(7), None).await.unwrap();
    assert_eq!(copies_at(11).await, 1, "an operator's call may have failed part-way");
    assert_eq!(copies_at(20).await, 0);
    counter.fails_next.store(true, Ordering::SeqCst);
    assert_eq!(copies_at(21).await, 1);
    assert_eq!(copies_at(22).await, 1, "a copy that failed is repeated by the next tick");
    assert_eq!(copies_at(23).await, 0);
}
