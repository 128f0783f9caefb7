//! What one round does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use daegi_domain::{EndReason, ItemId, Number, UserId};
use daegi_scheduler::{Outlet, Relay, Ticker};
use daegi_store::{Error, Place, Standing, Store};
use daegi_testkit::{Gate, Gated};

use crate::room::{OUTBOX_MAX, Room, START, item, memory, put, user};

#[tokio::test]
async fn people_are_let_in_in_the_order_they_joined_up_to_the_quota() {
    let mut room = Room::open(2).await;
    room.put("concert", 100, "{}").await;
    room.join("concert", &["kim", "lee", "park"]).await;
    room.join("concert", &["choi", "kim"]).await;
    assert_eq!(room.tick().await.admitted, 2);
    assert_eq!(room.admitted().await, ["kim", "lee"]);
    assert_eq!(room.tick().await.admitted, 2);
    assert_eq!(room.admitted().await, ["kim", "lee", "park", "choi"]);
    assert_eq!(room.tick().await.admitted, 0, "nobody is left");
}

#[tokio::test]
async fn every_line_has_the_quota_and_its_own_goes_before_the_global_one() {
    let mut room = Room::open(1).await;
    room.put("slow", 100, "{}").await;
    room.put("fast", 100, r#"{"tokensPerTick":3}"#).await;
    room.put("closed", 100, r#"{"tokensPerTick":0}"#).await;
    for id in ["slow", "fast", "closed"] {
        room.join(id, &["a", "b", "c", "d"]).await;
    }
    assert_eq!(room.tick().await.admitted, 4);
    assert_eq!(room.counts("slow").await.entered, 1);
    assert_eq!(room.counts("fast").await.entered, 3);
    assert_eq!(room.counts("closed").await.entered, 0);
}

#[tokio::test]
async fn a_round_tells_which_lines_are_open_and_how_many_recover() {
    let mut room = Room::open(1).await;
    room.put("open", 100, "{}").await;
    room.put("closed", 100, r#"{"tokensPerTick":0}"#).await;
    room.put("lost", 100, "{}").await;
    room.join("open", &["kim", "lee"]).await;
    room.join("closed", &["kim"]).await;
    // Somebody with a genuine ticket of a minute ago, of whom the store knows nothing.
    room.store.declare_loss(START).await.unwrap();
    room.standing("lost", "kim", Number((START - 60_000) * 64)).await;
    let round = room.tick().await;
    assert_eq!((round.open, round.recovering), ([item("open")].into(), 1));
}

#[tokio::test]
async fn a_quota_larger_than_a_chunk_is_used_up_in_one_tick() {
    let mut room = Room::open(1_200).await;
    room.put("concert", 5_000, "{}").await;
    let users: Vec<_> = (0..1_500).map(|n| UserId::parse(&format!("u{n}")).unwrap()).collect();
    room.join_users("concert", &users).await;
    assert_eq!(room.tick().await.admitted, 1_200);
    assert_eq!(room.tick().await.admitted, 300);
}

#[tokio::test]
async fn quota_and_tick_length_change_with_the_next_tick() {
    let mut room = Room::open(1).await;
    room.put("concert", 100, "{}").await;
    room.join("concert", &["a", "b", "c", "d", "e"]).await;
    assert_eq!(room.tick().await.admitted, 1);
    room.store.set_settings(Some(3), Some(50)).await.unwrap();
    let report = room.tick().await;
    assert_eq!((report.admitted, report.length().as_millis()), (3, 50));
    room.store.set_settings(Some(0), None).await.unwrap();
    assert_eq!(room.tick().await.admitted, 0, "0 pauses");
}

#[tokio::test]
async fn a_paused_line_keeps_its_people_and_goes_on_when_resumed() {
    let mut room = Room::open(1).await;
    room.put("concert", 100, "{}").await;
    let numbers = room.join("concert", &["kim", "lee"]).await;
    room.store.set_paused(&item("concert"), true, room.clock.now_ms()).await.unwrap();
    assert_eq!(room.tick().await.admitted, 0);
    assert_eq!(room.counts("concert").await.waiting, 2);
    room.store.set_paused(&item("concert"), false, room.clock.now_ms()).await.unwrap();
    assert_eq!(room.tick().await.admitted, 1);
    assert!(room.is_inside("concert", "kim", numbers[0]).await);
}

#[tokio::test]
async fn sold_out_stops_with_the_next_tick_and_a_restock_goes_on_in_order() {
    let mut room = Room::open(1).await;
    room.put("concert", 10, "{}").await;
    room.join("concert", &["kim", "lee", "park"]).await;
    assert_eq!(room.tick().await.admitted, 1);
    room.put("concert", 0, "{}").await;
    assert_eq!(room.tick().await.admitted, 0);
    assert_eq!(room.counts("concert").await.waiting, 2, "the line is kept");
    room.put("concert", 5, "{}").await;
    assert_eq!(room.tick().await.admitted, 1);
    assert_eq!(room.admitted().await, ["kim", "lee"]);
}

#[tokio::test]
async fn nobody_is_let_in_beyond_the_stock_or_the_capacity() {
    let mut room = Room::open(10).await;
    room.put("stock", 2, "{}").await;
    room.put("capacity", 100, r#"{"maxActive":3}"#).await;
    for id in ["stock", "capacity"] {
        room.join(id, &["a", "b", "c", "d", "e"]).await;
    }
    assert_eq!(room.tick().await.admitted, 5);
    assert_eq!(room.counts("stock").await.entered, 2);
    assert_eq!(room.counts("capacity").await.entered, 3);
}

#[tokio::test]
async fn an_entry_that_expires_is_somebody_elses_in_the_same_tick() {
    let mut room = Room::open(1).await;
    room.put("concert", 100, r#"{"maxActive":1,"passTtlSeconds":5}"#).await;
    let numbers = room.join("concert", &["kim", "lee"]).await;
    room.tick().await;
    room.pass(4);
    assert_eq!(room.tick().await.expired, 0);
    room.pass(1);
    let report = room.tick().await;
    assert_eq!((report.expired, report.admitted), (1, 1));
    let kim = room.standing("concert", "kim", numbers[0]).await;
    assert_eq!(kim, Standing::Ended(EndReason::Expired));
    assert!(room.is_inside("concert", "lee", numbers[1]).await);
}

#[tokio::test]
async fn whoever_missed_their_turn_comes_back_ahead_of_the_line() {
    let mut room = Room::open(1).await;
    room.put("concert", 100, r#"{"graceSeconds":10}"#).await;
    let numbers = room.join("concert", &["kim", "lee", "park"]).await;
    room.pass(60);
    room.see("concert", numbers[1..].iter().copied()).await;
    let report = room.tick().await;
    assert_eq!((report.missed, report.admitted), (1, 1), "lee takes kim's turn");
    let kim = room.standing("concert", "kim", numbers[0]).await;
    assert_eq!(kim, Standing::At(Place::Waiting { position: 1 }));
    room.tick().await;
    assert_eq!(room.admitted().await, ["lee", "kim"]);
}

#[tokio::test]
async fn whoever_missed_their_turn_and_stays_away_has_abandoned_it() {
    let mut room = Room::open(1).await;
    room.put("concert", 100, r#"{"graceSeconds":10,"missedKeepSeconds":30}"#).await;
    let numbers = room.join("concert", &["kim"]).await;
    room.pass(60);
    assert_eq!(room.tick().await.missed, 1);
    room.pass(30);
    assert_eq!(room.tick().await.abandoned, 1);
    let kim = room.standing("concert", "kim", numbers[0]).await;
    assert_eq!(kim, Standing::Ended(EndReason::Abandoned));
    assert!(room.store.active_lines().await.unwrap().is_empty(), "the line is retired");
}

#[tokio::test]
async fn a_long_line_is_swept_over_several_ticks() {
    let mut room = Room::open(1).await;
    room.put("concert", 100, r#"{"graceSeconds":10,"missedKeepSeconds":0,"maxActive":1}"#).await;
    room.join("concert", &["entered"]).await;
    assert_eq!(room.tick().await.admitted, 1, "the capacity is used up");
    let users: Vec<_> = (0..6_000).map(|n| UserId::parse(&format!("u{n}")).unwrap()).collect();
    let numbers = room.join_users("concert", &users).await;
    room.pass(60);
    let here: Vec<Number> = numbers[..3_000].to_vec();
    room.see("concert", here.iter().copied()).await;
    assert_eq!(room.tick().await.abandoned, 0, "the first 2,500 are here");
    let mut abandoned = 0;
    for _ in 0..2 {
        abandoned += room.tick().await.abandoned;
    }
    assert_eq!(abandoned, 3_000, "the rest, in one tick or two");
    assert_eq!(room.tick().await.abandoned, 0, "from the front again");
    assert_eq!(room.counts("concert").await.waiting, 3_000);
}

#[tokio::test]
async fn a_stale_leader_changes_nothing() {
    let mut room = Room::open(5).await;
    room.put("concert", 100, "{}").await;
    room.join("concert", &["kim"]).await;
    room.store.begin_term(0).await.unwrap();
    let refused = room.try_tick().await;
    assert!(matches!(refused, Err(Error::StaleEpoch(1))), "{refused:?}");
    assert_eq!(room.counts("concert").await.waiting, 1);
}

#[tokio::test]
async fn a_full_outbox_stops_admission_until_the_relay_has_drained_it() {
    let mut room = Room::with_outbox(2, 2).await;
    room.put("concert", 100, "{}").await;
    room.join("concert", &["a", "b", "c"]).await;
    assert_eq!(room.tick().await.outbox_full, 0);
    let report = room.tick().await;
    assert_eq!((report.admitted, report.outbox_full), (0, 1));
    let relay = Relay::new(room.store.clone(), Outlet::Nowhere);
    assert_eq!(relay.step().await.unwrap(), 2);
    assert_eq!(room.tick().await.admitted, 1);
}

#[tokio::test]
async fn the_relay_drops_every_event_of_every_partition_when_kafka_is_off() {
    let mut room = Room::open(10).await;
    for id in ["a", "b", "c", "d", "e", "f"] {
        room.put(id, 100, "{}").await;
        room.join(id, &["kim", "lee"]).await;
    }
    room.tick().await;
    let relay = Relay::new(room.store.clone(), Outlet::Nowhere);
    assert_eq!(relay.step().await.unwrap(), 12);
    assert_eq!(relay.step().await.unwrap(), 0);
    for partition in 0..room.store.partitions() {
        assert_eq!(room.store.outbox_len(partition).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn an_empty_line_is_retired_and_woken_by_the_next_person() {
    let mut room = Room::open(1).await;
    room.put("concert", 100, r#"{"passTtlSeconds":1}"#).await;
    room.join("concert", &["kim"]).await;
    room.tick().await;
    room.pass(1);
    assert_eq!(room.tick().await.expired, 1);
    assert!(room.tick().await.lines.is_empty());
    room.join("concert", &["lee"]).await;
    assert_eq!(room.tick().await.admitted, 1);
}

#[tokio::test]
async fn people_who_passed_through_do_not_keep_a_sold_out_line_active() {
    let mut room = Room::open(5).await;
    room.put("concert", 100, r#"{"mode":"auto","passTtlSeconds":1}"#).await;
    room.join("concert", &["kim"]).await;
    assert_eq!(room.counts("concert").await.entered, 1, "passed through");
    room.put("concert", 0, r#"{"mode":"auto","passTtlSeconds":1}"#).await;
    room.pass(1);
    room.tick().await;
    room.tick().await;
    assert!(room.store.active_lines().await.unwrap().is_empty());
}

#[tokio::test]
async fn entries_of_a_removed_item_run_to_their_end() {
    let mut room = Room::open(1).await;
    room.put("concert", 100, r#"{"passTtlSeconds":5}"#).await;
    room.join("concert", &["kim", "lee"]).await;
    room.tick().await;
    room.store.remove_item(&item("concert")).await.unwrap();
    assert_eq!(room.tick().await.admitted, 0);
    room.pass(5);
    assert_eq!(room.tick().await.expired, 1);
    assert!(room.store.active_lines().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_reserved_line_is_left_alone_for_a_minute_and_then_purged() {
    let mut room = Room::open(5).await;
    let id = ItemId::reserved("warm-up");
    room.put(id.as_str(), 100, "{}").await;
    room.join(id.as_str(), &["nobody"]).await;
    let report = room.tick().await;
    assert_eq!((report.admitted, report.lines.len(), report.purged), (0, 0, 0));
    room.pass(59);
    assert_eq!(room.tick().await.purged, 0);
    room.pass(1);
    assert_eq!(room.tick().await.purged, 1);
    assert_eq!(room.store.item(&id).await.unwrap(), None);
}

/// Answers for all partitions but the first.
#[derive(Debug, Default)]
struct FirstAway(AtomicU16);

impl Gate for FirstAway {
    async fn before(&self, call: &'static str) -> daegi_store::Result<()> {
        let asked = |call| call == "active_lines_of" && self.0.fetch_add(1, Ordering::SeqCst) == 0;
        if asked(call) { Err(Error::Unavailable("away".into())) } else { Ok(()) }
    }
}

#[tokio::test]
async fn a_server_that_is_away_costs_its_own_lines_their_turn_and_nobody_elses() {
    let memory = memory(1);
    for line in 0..8 {
        put(&*memory, &format!("line-{line}"), 10, None).await;
        let settings = memory.settings().await.unwrap();
        let kim = [UserId::parse("kim").unwrap()];
        memory.join(&item(&format!("line-{line}")), &kim, &settings, START).await.unwrap();
    }
    let cut_off = memory.active_lines_of(0).await.unwrap();
    assert!((1..8).contains(&cut_off.len()), "some lines live there");
    let epoch = memory.begin_term(0).await.unwrap();
    let gated = Gated { store: memory.clone(), gate: FirstAway::default() };
    let mut ticker = Ticker::new(Arc::new(gated), epoch, OUTBOX_MAX);
    let round = ticker.tick(START).await.unwrap();
    assert_eq!(round.admitted as usize, 8 - cut_off.len());
    assert!(round.away.is_some(), "and it is told");
    let again = ticker.tick(START + 500).await.unwrap();
    assert_eq!(again.admitted as usize, cut_off.len(), "as soon as it is back");
}

/// Refuses every admission.
#[derive(Debug)]
struct NoAdmission;

impl Gate for NoAdmission {
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
    let gated = Gated { store: memory.clone(), gate: NoAdmission };
    let mut ticker = Ticker::new(Arc::new(gated), epoch, OUTBOX_MAX);
    let round = ticker.tick(START + 400_000).await.unwrap();
    assert_eq!((round.admitted, round.abandoned), (0, 2), "both lines are swept");
    assert!(round.away.is_some(), "the report names the failure");
}

// Time stands still, so that only the number of absent users decides how far a tick sweeps.
#[tokio::test(start_paused = true)]
async fn many_absent_users_are_swept_within_a_tick_and_few_slowly() {
    let mut room = Room::open(1).await;
    room.put("concert", 100, "{}").await;
    let users: Vec<_> = (0..26_310).map(|n| user(&format!("u{n}"))).collect();
    let mut numbers = Vec::new();
    for users in users.chunks(1000) {
        numbers.extend(room.join_users("concert", users).await);
    }
    room.pass(400);
    // The first 5,000 are present: the sweep passes them at its slow pace, 2,500 per tick.
    room.see("concert", numbers[..5_000].iter().copied()).await;
    let mut swept = Vec::new();
    while swept.iter().sum::<u32>() < 21_310 {
        swept.push(room.tick().await.abandoned);
        assert!(swept.len() < 10, "{swept:?}");
    }
    assert_eq!(swept[0], 0, "a chunk without absent users is followed by few others");
    assert!(swept.len() <= 3, "{swept:?}");
    assert_eq!(room.tick().await.abandoned, 0);
}
