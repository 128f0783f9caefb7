//! Lines whose rate follows the origin.

use daegi_domain::pace::origin::{OriginReport, OriginTotals};
use daegi_domain::{PaceReason, UserId};
use daegi_scheduler::Ticker;

use crate::harness::{OUTBOX_MAX, SchedulerHarness, item};

/// 10 to 1,000 users per second, 95 % of the responses within 500 ms.
const ADAPTIVE: &str = r#"{"pace":{"adaptive":{"minPerMinute":600,"maxPerMinute":60000,"targetP95Ms":500}},
    "admitUpToStock":false}"#;

/// The reports of one pod.
#[derive(Default)]
struct Pod(OriginTotals);

impl Pod {
    /// Reports further requests that took so many milliseconds.
    async fn report(&mut self, harness: &SchedulerHarness, requests: u64, ms: u32) {
        self.0.requests += requests;
        self.0.latency.add(f64::from(ms), requests);
        let (at, totals) = (harness.clock.now_ms(), self.0.clone());
        let report = OriginReport { pod: "api-1".into(), instances: 1, at, totals };
        assert!(harness.store.put_origin_report(&item("concert"), &report, at).await.unwrap());
    }
}

async fn crowd(harness: &SchedulerHarness, count: usize) {
    let users: Vec<_> = (0..count).map(|n| UserId::parse(&format!("u{n}")).unwrap()).collect();
    for users in users.chunks(1_000) {
        harness.join_users("concert", users).await;
    }
}

/// Ticks for some seconds while the origin answers what is admitted within `ms`. Returns the admissions of each.
async fn seconds(harness: &mut SchedulerHarness, pod: &mut Pod, count: usize, ms: u32) -> Vec<u32> {
    let mut admitted = Vec::new();
    for _ in 0..count {
        harness.pass(1);
        pod.report(harness, 60, ms).await;
        admitted.push(harness.tick().await.admitted);
    }
    admitted
}

#[tokio::test]
async fn the_rate_rises_while_the_origin_is_well_and_is_cut_when_it_is_not() {
    let mut harness = SchedulerHarness::open(2).await;
    harness.put("concert", 1, ADAPTIVE).await;
    crowd(&harness, 3_000).await;
    let mut pod = Pod::default();
    assert_eq!(harness.tick().await.admitted, 10, "the minimum, not the global quota");
    let rising = seconds(&mut harness, &mut pod, 15, 20).await;
    let last = *rising.last().unwrap();
    assert!(last > 25 && rising.is_sorted(), "{rising:?}");
    let cut = seconds(&mut harness, &mut pod, 1, 2_000).await;
    assert!(cut[0] < last * 8 / 10, "{cut:?} after {last}");
    let pace = harness.store.item(&item("concert")).await.unwrap().unwrap().pace.unwrap();
    assert_eq!(pace.reason, PaceReason::CutLatency);
}

#[tokio::test]
async fn the_next_leader_continues_the_rate() {
    let mut harness = SchedulerHarness::open(2).await;
    harness.put("concert", 1, ADAPTIVE).await;
    crowd(&harness, 3_000).await;
    let mut pod = Pod::default();
    let before = *seconds(&mut harness, &mut pod, 15, 20).await.last().unwrap();
    let epoch = harness.store.begin_term(harness.clock.now_ms()).await.unwrap();
    let mut next = Ticker::new(harness.store.clone(), epoch, OUTBOX_MAX);
    harness.pass(1);
    pod.report(&harness, 60, 20).await;
    let admitted = next.tick(harness.clock.now_ms()).await.unwrap().admitted;
    assert!(
        admitted.abs_diff(before) <= 1,
        "{admitted} after {before}: it does not know what is new"
    );
    harness.pass(1);
    pod.report(&harness, 60, 20).await;
    let admitted = next.tick(harness.clock.now_ms()).await.unwrap().admitted;
    assert!(admitted > before, "{admitted} after {before}");
    harness.pass(1);
    assert!(harness.try_tick().await.is_err(), "the former leader is fenced");
}

#[tokio::test]
async fn half_a_user_per_second_enters_every_other_tick_of_an_open_line() {
    let mut harness = SchedulerHarness::open(7).await;
    let slow = r#"{"pace":{"adaptive":{"minPerMinute":30,"maxPerMinute":30,"targetP95Ms":500}}}"#;
    harness.put("concert", 100, slow).await;
    crowd(&harness, 20).await;
    let mut admitted = Vec::new();
    for _ in 0..6 {
        let report = harness.tick().await;
        assert!(report.open.contains(&item("concert")));
        admitted.push(report.admitted);
        harness.pass(1);
    }
    assert_eq!(admitted, [0, 1, 0, 1, 0, 1]);
}

#[tokio::test]
async fn quota_0_pause_and_capacity_still_stop_an_adaptive_line() {
    let mut harness = SchedulerHarness::open(7).await;
    harness.put("concert", 1, &ADAPTIVE.replacen('{', r#"{"maxActive":4,"#, 1)).await;
    crowd(&harness, 50).await;
    harness.store.set_settings(Some(0), None).await.unwrap();
    assert_eq!(harness.tick().await.admitted, 0);
    harness.store.set_settings(Some(7), None).await.unwrap();
    harness.store.set_paused(&item("concert"), true, harness.clock.now_ms()).await.unwrap();
    harness.pass(1);
    assert_eq!(harness.tick().await.admitted, 0);
    harness.store.set_paused(&item("concert"), false, harness.clock.now_ms()).await.unwrap();
    harness.pass(1);
    assert_eq!(harness.tick().await.admitted, 4, "maxActive");
    harness.pass(1);
    assert_eq!(harness.tick().await.admitted, 0);
}

#[tokio::test]
async fn an_automatic_line_is_empty_until_the_origin_comes_under_pressure() {
    let mut harness = SchedulerHarness::open(2).await;
    harness.put("concert", 1, &ADAPTIVE.replacen('{', r#"{"mode":"auto","#, 1)).await;
    let mut pod = Pod::default();
    let mut joined = 0;
    let mut join = async |harness: &SchedulerHarness, count: u32| {
        let users: Vec<_> =
            (0..count).map(|n| UserId::parse(&format!("v{}", joined + n)).unwrap()).collect();
        joined += count;
        harness.join_users("concert", &users).await;
        harness.counts("concert").await.waiting
    };
    for _ in 0..10 {
        assert_eq!(join(&harness, 10).await, 0, "no line");
        seconds(&mut harness, &mut pod, 1, 20).await;
    }
    assert_eq!(join(&harness, 800).await, 0, "below the maximum");
    seconds(&mut harness, &mut pod, 1, 3_000).await;
    assert!(join(&harness, 800).await > 0, "the first report of pressure forms a line");
    for _ in 0..60 {
        seconds(&mut harness, &mut pod, 1, 20).await;
    }
    assert_eq!(harness.counts("concert").await.waiting, 0);
    assert_eq!(join(&harness, 800).await, 0, "the line is gone");
}
